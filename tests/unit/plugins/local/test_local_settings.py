"""The local plugin's configuration file."""

from typing import Any

import pytest

from interlink.plugins.local import settings


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("", "log_level", "info"),
        ("ErrorsOnlyLogging: true", "log_level", "error"),
        ("VerboseLogging: true\nErrorsOnlyLogging: true", "log_level", "debug"),
        ("MaxPods: 7", "max_pods", 7),
        ("KeepDeletedJobs: 5", "keep_deleted_jobs_s", 5),
        ("Colour: red", "unknown_keys", ["Colour"]),
    ],
)
def test_a_key_by_itself(text: str, field: str, value: Any) -> None:
    """What stands alone in a file has its effect; what means nothing is reported."""
    found = settings.load(f"SidecarPort: 4000\n{text}", {}, source="plugin.yaml")

    assert getattr(found, field) == value
