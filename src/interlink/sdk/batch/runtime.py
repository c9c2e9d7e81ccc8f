"""How one container becomes an argument list."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from interlink.model.pods import Container
from interlink.sdk.batch.jobdir import JobDirectory


class Mount(msgspec.Struct, frozen=True):
    """Make `source` (on the host) appear at `target` (in the container)."""

    source: Path
    target: str
    read_only: bool = False


class Launch(msgspec.Struct, frozen=True):
    """`argv` runs the container, from `working_directory` of the host where it is not None; `files` are to be written
    into the job directory first."""

    argv: list[str]
    environment: list[tuple[str, str]]
    working_directory: str | None = None
    files: dict[Path, bytes] = {}


class Runtime(Protocol):
    def launch(
        self, container: Container, mounts: Sequence[Mount], *, pod_name: str, directory: JobDirectory
    ) -> Launch:
        """Pure. Raises Rejected for a container that this runtime cannot run, with the reason."""
        ...
