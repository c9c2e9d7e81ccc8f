"""The batch system that every host has: a job is a runner process in a session of its own.

Its tag is its id. What is known of a job lies in its directory: the claim says that it was started, the runner's lock
says that it lives.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from interlink.model.ids import JobID, Tag
from interlink.sdk.batch import jobdir
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.scheduler import Life, Observation, Scheduler
from interlink.sdk.errors import Unreachable
from interlink.wire.messages import Job, PingAnswer, Resources

log = structlog.get_logger(__name__)


class HostScheduler(Scheduler):
    """The directories are all there is, and the runner's lock lets nothing be there twice."""

    def __init__(self, root: Path, *, max_pods: int, python: str = sys.executable) -> None:
        self._root = root
        self._max_pods = max_pods
        self._python = python
        self._children: list[subprocess.Popen[bytes]] = []

    async def submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        """Starting twice is harmless: the second runner finds the lock or the claim and ends."""
        try:
            await asyncio.to_thread(self._start, directory)
        except OSError as error:
            raise Unreachable(f"cannot start a process on this host: {error.strerror}") from error
        return JobID(str(tag))

    def _start(self, directory: JobDirectory) -> None:
        """A process that outlives us: a session of its own, no descriptors of ours."""
        runner = subprocess.Popen(
            [self._python, "-I", "-S", str(directory.runner), "run", str(directory.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        self._children.append(runner)

    async def find(self, tag: Tag, directory: JobDirectory) -> JobID | None:
        has_started = directory.is_claimed(tag.attempt) or directory.runner_process() is not None
        return JobID(str(tag)) if has_started else None

    async def poll(self, jobs: Sequence[tuple[Tag, JobDirectory]]) -> Mapping[Tag, Observation]:
        self._children = [child for child in self._children if child.poll() is None]
        return await asyncio.to_thread(lambda: {tag: _observe(directory) for tag, directory in jobs})

    async def cancel(self, tag: Tag, directory: JobDirectory) -> None:
        """The runner also looks for the cancelled mark by itself, so a lost signal only costs a second."""
        process_id = directory.runner_process()
        if process_id is not None and process_id > 0:  # others have no number here, and to kill they mean many
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGTERM)

    async def jobs(self) -> Sequence[Job]:
        return await asyncio.to_thread(self._jobs)

    def _jobs(self) -> list[Job]:
        return [job for directory in jobdir.below(self._root) if (job := _job(directory)) is not None]

    async def capacity(self) -> PingAnswer:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return PingAnswer(
            status="ok",
            resources=Resources(cpu=str(os.cpu_count() or 1), memory=str(memory_bytes), pods=str(self._max_pods)),
        )


def _job(directory: JobDirectory) -> Job | None:
    """None for a directory that holds no job, and for one that cannot be read."""
    try:
        intention = directory.intention()
        if intention is None:
            return None
        tag = str(directory.tag_of(intention))
        return Job(tag=tag, job_id=tag, node=intention.node, is_alive=directory.runner_process() is not None)
    except OSError as error:
        log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
        return None


def _observe(directory: JobDirectory) -> Observation:
    if directory.runner_process() is not None:
        return Observation(life=Life.RUNNING)
    return Observation(life=Life.GONE)
