"""How one container becomes an argument list."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from interlink.model.pods import Container, Pod
from interlink.sdk.batch.jobdir import JobDirectory


class Mount(msgspec.Struct, frozen=True):
    """Make `source` (on the host) appear at `target` (in the container)."""

    source: Path
    target: str
    read_only: bool = False


class Login(msgspec.Struct, frozen=True):
    """How to log in at a registry; the file that it is written to is the job user's alone."""

    registry: str
    username: str
    password: str


class Pull(msgspec.Struct, frozen=True):
    """How the runner gets an image that is not there yet.

    argv: with the file or directory to make in place of the word `{target}`. key: the image's name in `folder`, in
    which the runner keeps a folder for each user; `~` is the home of the job's user. policy: as in Kubernetes.
    max_age_s: how old an image may be where the policy says that it is always pulled. environment: of the pull alone,
    with which it may log in. passed: as of a Launch.
    """

    argv: list[str]
    folder: str
    key: str
    policy: str
    max_age_s: float
    environment: list[tuple[str, str]] = []
    passed: dict[str, str] = {}


class Launch(msgspec.Struct, frozen=True):
    """How the runner runs a container.

    argv: runs it, from `working_directory` of the host where that is not None. inside: put before a command, runs that
    in the container: with its mounts and its environment. program_at: the word of both that names a program of the
    machine. image_at: the word of both that the runner replaces by the path of the pulled image. launcher: put before
    argv alone: a program of the machine and its words, where a pair is a variable of the job's own environment and what
    stands for a missing one. passed: variables of the job's own environment, with the names that they get. scratch:
    directories that the runner makes below `directory.node_tmp`. files: to be written into the job's directory first.
    notes: what the pod asks for and does not get. enforced: settings of the
    container's securityContext that hold as the pod asks for them.
    """

    argv: list[str]
    environment: list[tuple[str, str]]
    working_directory: str | None = None
    files: dict[Path, bytes] = {}
    inside: list[str] = []
    launcher: list[str | tuple[str, str]] = []
    program_at: int | None = None
    image_at: int | None = None
    pull: Pull | None = None
    passed: dict[str, str] = {}
    scratch: list[Path] = []
    notes: list[str] = []
    enforced: list[str] = []


class Runtime(Protocol):
    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        """Pure. Raises Rejected for a container that this runtime cannot run, with the reason."""
        ...
