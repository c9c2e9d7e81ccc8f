"""What a run of the demo leaves while it runs, and how it is ended: by process ids that are still ours.

    .demo/lock            held by the running demo
    .demo/pids            the three programs, one `pid name` a line
    .demo/control-plane   the folder of our control plane, which holds `pids` of its own
    .demo/jobs/           job directories; a living runner holds its lock

A process is ours if its command line names one of our folders; process ids are reused, folders are not.
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from interlink.aio import files
from interlink.sdk.batch import jobdir
from interlink.testing import waiting
from interlink.testing.programs import Programs

GRACE_S = 10
PLANE_PREFIX = "interlink-kube-"  # of ControlPlane.folder


class InUseError(Exception):
    """Another demo runs in this checkout."""


class Found(msgspec.Struct, frozen=True):
    programs: list[int]
    jobs: list[int]
    control_plane: list[int]

    @property
    def all(self) -> list[int]:
        return [*self.programs, *self.jobs, *self.control_plane]

    def __str__(self) -> str:
        return f"{len(self.programs)} programs, {len(self.jobs)} jobs, {len(self.control_plane)} of the control plane"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Own the folder. Raises InUseError when another demo does."""
    folder.mkdir(exist_ok=True)
    try:
        lock = files.lock_exclusively(folder / "lock", str(os.getpid()))
    except files.LockedError as error:
        raise InUseError(f"a demo runs already (process {error.holder}); wait for it or end it") from error
    with lock:
        yield


def note_programs(folder: Path, programs: Programs) -> None:
    lines = [f"{program.pid} {name}\n" for name, program in programs.all().items() if program.pid]
    (folder / "pids").write_text("".join(lines))


def note_control_plane(folder: Path, plane: Path) -> None:
    (folder / "control-plane").write_text(f"{plane}\n")


def find(folder: Path) -> Found:
    plane = _plane(folder)
    return Found(
        programs=_ours(_read_pids(folder / "pids"), folder),
        jobs=_runners(folder / "jobs"),
        control_plane=_ours(_read_pids(plane / "pids"), plane) if plane else [],
    )


def end(folder: Path) -> None:
    """End what runs, remove the control plane's folder; says so when there is anything. Takes the lock."""
    with locked(folder):
        clear(folder)


def clear(folder: Path) -> None:
    """Afterwards nothing of an earlier run lives, and its files are gone. The lock must be held."""
    found = find(folder)
    if found.all:
        print(f"ending what an earlier demo left running: {found}")
    _end(found.programs, signal.SIGTERM)
    end_jobs(folder / "jobs")
    _end(found.control_plane, signal.SIGKILL)
    if plane := _plane(folder):
        shutil.rmtree(plane, ignore_errors=True)
    for path in folder.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def end_jobs(jobs: Path) -> None:
    """Kill every runner; the process that guards it then kills all that it had started."""
    waiting.until(lambda: not _end(_runners(jobs), signal.SIGKILL), deadline_s=GRACE_S)


def _end(process_ids: list[int], number: signal.Signals) -> list[int]:
    """The given process ids. On return they are gone, or have been killed."""
    _signal(process_ids, number)
    if not waiting.until(lambda: not any(map(_is_alive, process_ids)), deadline_s=GRACE_S):
        _signal(process_ids, signal.SIGKILL)
    return process_ids


def _signal(process_ids: Iterable[int], number: signal.Signals) -> None:
    for process_id in process_ids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, number)


def _is_alive(process_id: int) -> bool:
    """False for one that has ended and was not collected by its parent."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ours(process_ids: Iterable[int], folder: Path) -> list[int]:
    return [process_id for process_id in process_ids if names(command_line(process_id), folder)]


def command_line(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def names(command: str, folder: Path) -> bool:
    """Whether this command line is that of a program of ours that works in the folder."""
    return "interlink" in command and f"{folder}/" in command


def _read_pids(file: Path) -> list[int]:
    """The first word of each line."""
    return [int(line.split()[0]) for line in file.read_text().splitlines()] if file.exists() else []


def _runners(jobs: Path) -> list[int]:
    directories = jobdir.below(jobs) if jobs.exists() else ()
    return [process_id for job in directories if (process_id := job.runner_process())]


def _plane(folder: Path) -> Path | None:
    note = folder / "control-plane"
    plane = Path(note.read_text().strip()) if note.exists() else None
    return plane if plane and plane.name.startswith(PLANE_PREFIX) and plane.is_dir() else None
