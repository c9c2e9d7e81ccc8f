"""The directory of one job: what is to run, what the runner says of it, and whether it may run at all.

    <root>/<podUID>/
        pod.json        the pod's skeleton, attempt and cluster: the intent, durable before the job is submitted
        job-id          the batch system's id, durable before it is answered
        submitting      a submission was tried, at the file's time; its outcome is known when job-id is not older
        given-up        the ids of jobs that the batch system gave up before they began, one a line
        ending.json     how the batch system says that the job ended, kept for when it has forgotten it
        cancelled       present: nothing may start here any more
        spec.json       what the runner runs
        env/ volumes/   what the containers are given; env/ and volumes/secret/ go when the job ends
        env/jobScript   a ready-made job script, which runs in place of the containers' own commands
        run-<c>.out     written by such a script for a container, as run-<c>.status; init-<c>.… for an init container
        claim-<n>/      made by the runner: attempt n has been started
        runner.lock     held by the living runner
        state.json      the job's own truth, written by the runner
        usage.json      what running containers used when the runner last looked; may be lost
        logs/<c>/<n>.log
        logs/jobScript/0.log

All calls block; every write is durable on return.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from interlink.aio import files
from interlink.aio.beneath import Beneath
from interlink.model.ids import JobID, PodUID, Tag
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus, Terminated
from interlink.sdk.batch import runners

_T = TypeVar("_T")

_LONGEST_BYTES = 4 * 1024 * 1024
LOCK = ".plugin.lock"
"""Beside the job directories: held by the one plugin that uses them, for creates of a pod exclude each other there."""

SCRIPT = "jobScript"
"""The name of a ready-made job script among containers, none of which can have it."""


class Intention(msgspec.Struct, frozen=True):
    cluster: str
    node: str
    attempt: int
    pod: Pod


def encoded(intention: Intention) -> bytes:
    """As it stands in its file: for people to read too."""
    return msgspec.json.format(msgspec.json.encode(intention))


class Ending(msgspec.Struct, frozen=True):
    """How the batch system says that a job ended.

    exit_code: the job's, which is the highest of its programs'; None when it has none. overrules_success: the job
    failed although every program ended with 0.
    """

    reason: str
    message: str | None = None
    exit_code: int | None = None
    is_success: bool = False
    overrules_success: bool = False
    started_at: str | None = None
    finished_at: str | None = None


_SIGNALLED = (137, 143)
_TOGETHER_S = 2.0
"""Within which a job's runner and its programs get the signal when the job is stopped from outside; in any order."""


class RunnerState(msgspec.Struct, frozen=True):
    """`state.json`; the container states are Kubernetes container statuses."""

    phase: str
    reason: str | None = None
    message: str | None = None
    stopped_at: str | None = None
    finished_at: str | None = None
    containers: list[ContainerStatus] = []
    init_containers: list[ContainerStatus] = msgspec.field(name="initContainers", default_factory=list)

    @property
    def has_ended(self) -> bool:
        return self.phase == "ended"

    @property
    def was_stopped_from_outside(self) -> bool:
        """By a signal that nobody here had asked for: the batch system knows why. A runner whose programs hear of it
        first may not hear of it at all."""
        ends = [status.terminated for status in self.containers if status.terminated is not None]
        return self.reason == "Terminated" or (self.reason is None and any(map(self.was_signalled_before, ends)))

    def was_signalled_before(self, ended: Terminated) -> bool:
        """Whether a program was ended by a signal a moment before the runner got its own, or before its end."""
        try:
            earlier = datetime.fromisoformat(ended.finished_at or "")
            later = datetime.fromisoformat(self.stopped_at or self.finished_at or "")
            return ended.exit_code in _SIGNALLED and (later - earlier).total_seconds() < _TOGETHER_S
        except (ValueError, TypeError):
            return False


class ContainerUse(msgspec.Struct, frozen=True, rename="camel"):
    cpu_seconds: float
    memory_bytes: int


class JobUse(msgspec.Struct, frozen=True):
    """`usage.json`; containers by name."""

    at: datetime
    containers: dict[str, ContainerUse]


def below(root: Path) -> Iterator["JobDirectory"]:
    """Every job's; what begins with a dot is something else. Raises OSError."""
    return (JobDirectory(path) for path in root.iterdir() if not path.name.startswith(".") and path.is_dir())


class JobDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def pod_uid(self) -> PodUID:
        return PodUID(self.path.name)

    @property
    def intent(self) -> Path:
        return self.path / "pod.json"

    @property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @property
    def runner(self) -> Path:
        """Beside the directory: one for all jobs of a version."""
        return runners.place(self.path.parent)

    @property
    def env(self) -> Path:
        return self.path / "env"

    @property
    def node_memory(self) -> Path:
        """Of the machine where the job runs, as long as it runs: in memory."""
        return Path("/dev/shm") / f"interlink-{self.pod_uid}"  # noqa: S108 -- the runner makes it, 0700, and nobody else

    @property
    def node_tmp(self) -> Path:
        """Of the machine where the job runs, as long as it runs."""
        return Path("/tmp") / f"interlink-{self.pod_uid}"  # noqa: S108 -- as above

    def log(self, container: str, restart: int) -> Path:
        return self.path / "logs" / container / f"{restart}.log"

    def volume(self, kind: str, name: str) -> Path:
        return self.path / "volumes" / kind / name

    def create(self) -> None:
        files.make_directory(self.path)

    def intend(self, intention: Intention) -> None:
        files.write_durably(self.intent, encoded(intention))

    def intention(self) -> Intention | None:
        """None when the directory holds no intent, or one that says nothing."""
        return self._read("pod.json", Intention)

    def is_prepared(self) -> bool:
        """Whether it can be submitted from here: one that was lost, and whose job was found, holds the intent alone."""
        return self.spec.exists()

    def tag(self) -> Tag | None:
        intention = self.intention()
        return self.tag_of(intention) if intention else None

    def tag_of(self, intention: Intention) -> Tag:
        return Tag(cluster=intention.cluster, pod_uid=self.pod_uid, attempt=intention.attempt)

    def remember(self, job_id: JobID) -> None:
        """The id is durable on return, and the outcome of every submission known.

        The mark of the submission stays: a file system that has just lost a file a job is slow to make new ones.
        """
        files.write_durably(self.path / "job-id", job_id.encode())

    def job_id(self) -> JobID | None:
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return JobID(files.read_regular(self.path / "job-id").decode())
        return None

    def mark_cancelled(self, grace_s: int) -> None:
        """From here on nothing starts; a running job gets TERM and, `grace_s` seconds later, KILL."""
        files.make_directory(self.path)
        mark = msgspec.json.encode({"grace_s": grace_s})
        # The runner may be another user; nobody else enters the directory.
        try:
            files.write_durably(self.path / "cancelled", mark, mode=0o644)
        except IsADirectoryError:  # laid there by a job that does not want to end
            self._move_away("cancelled", ".cancelled.tmp")
            files.write_durably(self.path / "cancelled", mark, mode=0o644)

    def _move_away(self, *names: str) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                (self.path / name).rename(self.path / f".in-the-way-{uuid.uuid4()}")

    def is_cancelled(self) -> bool:
        return os.path.lexists(self.path / "cancelled")

    def cancelled_at(self) -> float | None:
        """When it was cancelled last, in seconds since the epoch; None when it never was."""
        try:
            return (self.path / "cancelled").lstat().st_mtime
        except FileNotFoundError:
            return None

    def cancel_grace_s(self) -> float:
        """The grace period of the last cancellation; 0 when it cannot be read."""
        with contextlib.suppress(OSError):
            return (self._read("cancelled", dict[str, float]) or {}).get("grace_s", 0)
        return 0

    def is_claimed(self, attempt: int) -> bool:
        return (self.path / f"claim-{attempt}").is_dir()

    def runner_process(self) -> int | None:
        """The process id of the living runner, or None."""
        return files.lock_holder(self.path / "runner.lock")

    def state(self) -> RunnerState | None:
        return self._read("state.json", RunnerState)

    def usage(self) -> JobUse | None:
        with contextlib.suppress(OSError):
            return self._read("usage.json", JobUse)
        return None

    def begin_submission(self) -> None:
        """From here on nobody knows whether there is a job, until `end_submission` or an id."""
        Beneath(self.path).write(self.path / "submitting", b"", mode=0o600)

    def end_submission(self) -> None:
        (self.path / "submitting").unlink(missing_ok=True)

    def unknown_submission_at(self) -> float | None:
        """When a submission of unknown outcome was tried last, in seconds since the epoch."""
        try:
            tried = (self.path / "submitting").lstat()
        except FileNotFoundError:
            return None
        with contextlib.suppress(FileNotFoundError):
            if (self.path / "job-id").lstat().st_mtime_ns >= tried.st_mtime_ns:
                return None
        return tried.st_mtime

    def given_up(self) -> list[JobID]:
        """The jobs that the batch system has given up before they began, in their order."""
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return [JobID(line) for line in files.read_regular(self.path / "given-up").decode().splitlines()]
        return []

    def note_given_up(self, job_id: JobID) -> None:
        """Once for each id."""
        known = self.given_up()
        if job_id not in known:
            files.write_durably(self.path / "given-up", "".join(f"{line}\n" for line in [*known, job_id]).encode())

    def conclude(self, ending: Ending) -> None:
        """Nobody else removes what was secret: the runner was killed, or never began."""
        files.write_durably(self.path / "ending.json", msgspec.json.encode(ending))
        self.remove_secrets()

    def ending(self) -> Ending | None:
        return self._read("ending.json", Ending)

    def has_secrets(self) -> bool:
        return any(os.path.lexists(path) for path in self._secrets)

    def remove_secrets(self) -> None:
        for path in self._secrets:
            Beneath(self.path).discard(path)

    @property
    def _secrets(self) -> tuple[Path, Path]:
        return self.env, self.path / "volumes" / "secret"

    def remove(self) -> None:
        Beneath(self.path).remove()

    def _read(self, name: str, kind: type[_T]) -> _T | None:
        """None when there is no such record, or one that says nothing. Raises OSError, for what cannot be read is not
        absent."""
        with contextlib.suppress(FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(files.read_regular(self.path / name, most_bytes=_LONGEST_BYTES), type=kind)
        return None
