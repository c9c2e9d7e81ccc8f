"""A container launched by a runtime, in few words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlink.model.pods import Container
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount, Runtime
from tests.unit.builders import Document, pod

HERE = JobDirectory(Path("/jobs/uid-1"))
DATA = Mount(source=Path("/jobs/uid-1/volumes/empty/v"), target="/data", read_only=True)
LOGIN = Login(registry="reg.example:5000", username="me", password="s3cret")
VALUES = {
    "JSON": '{"a": "b"}', "EVAL": "$HOME $(date) `id`", "QUOTE": "it's", "LITERAL": "a\\nb", "BRACKETS": "x(y)",
    "PERCENT": "100%", "BACKSLASH": "back\\", "BLANKS": "  x  ", "EMPTY": "", "BIG": "z" * 100_000, "UNICODE": "é",
}  # fmt: skip
"""What a shell would change if it came near."""


def launched(
    runtime: Runtime,
    *mounts: Mount,
    annotations: Document | None = None,
    env: dict[str, str] | None = None,
    logins: Sequence[Login] = (),
    **container: Any,
) -> Launch:
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    spec = {"name": "c", "image": "busybox:1.36", "command": ["sh"], "env": variables} | container
    spec = {key: value for key, value in spec.items() if value is not None}
    asking = pod(metadata={"annotations": annotations or {}})
    return runtime.launch(msgspec.convert(spec, Container), mounts, pod=asking, directory=HERE, logins=logins)
