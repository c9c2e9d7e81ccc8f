"""What the plugin learns of its Slurm when it starts."""

from collections.abc import Mapping
from typing import Any

import pytest

from interlink.apps.slurm_plugin import Facts, facts
from tests.unit.plugins.slurm.test_slurm_directives import load

SLURM = {"accountingstoragetype": "accounting_storage/slurmdbd", "messagetimeout": "60 sec", "minjobage": "300 sec"}


@pytest.mark.parametrize(
    ("keys", "configuration", "expected"),
    [
        ({}, SLURM, Facts(uses_accounting=True, lost_after_s=65.0, kept_s=300.0)),
        ({"UseAccounting": False}, SLURM, Facts(uses_accounting=False, lost_after_s=65.0, kept_s=300.0)),
        ({"LostJobGrace": 90}, SLURM, Facts(uses_accounting=True, lost_after_s=90.0, kept_s=300.0)),
        ({}, {"messagetimeout": "?"}, Facts(uses_accounting=False, lost_after_s=15.0)),
        ({"UseAccounting": True}, {}, Facts(uses_accounting=True, lost_after_s=15.0)),
    ],
)
def test_what_slurm_says_of_itself(keys: dict[str, Any], configuration: Mapping[str, str], expected: Facts) -> None:
    """A submission is not taken for lost while a message of this Slurm may be on its way."""
    assert facts(load(**keys), configuration) == expected
