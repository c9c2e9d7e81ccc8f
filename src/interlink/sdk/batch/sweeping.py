"""The directories of deleted jobs go some time after their end, and not before."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from interlink.aio.supervising import KeyedLocks
from interlink.model.ids import PodUID, Tag
from interlink.sdk.batch import jobdir
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.known import GONE
from interlink.sdk.batch.scheduler import Scheduler

log = structlog.get_logger(__name__)


class Sweeper:
    """locks: by pod UID, shared with whoever else changes a job. forget: called for each that was removed."""

    def __init__(self, root: Path, scheduler: Scheduler, locks: KeyedLocks, forget: Callable[[PodUID], None]) -> None:
        self._root = root
        self._scheduler = scheduler
        self._locks = locks
        self._forget = forget

    async def sweep(self, *, keep_s: float) -> int:
        """Remove the directories of jobs that were deleted more than `keep_s` seconds ago and have ended; how many.

        Until then they keep the logs, and the mark that lets no late create start the job. Whether a job has ended is
        asked of the batch system: nothing is removed when it cannot be asked. What was secret goes at once, for a
        runner that was killed, or never began, has left it there.
        """
        deadline = time.time() - keep_s
        jobs, empty = await asyncio.to_thread(_deleted, self._root, deadline)
        seen = await self._scheduler.poll(jobs) if jobs else {}
        over = [directory for tag, directory in jobs if not seen.get(tag, GONE).is_alive]
        removed = 0
        for directory in (*over, *empty):
            async with self._locks.hold(directory.pod_uid):
                is_removed = await asyncio.to_thread(_removed, directory, deadline)
            if is_removed:
                self._forget(directory.pod_uid)
                removed += 1
        return removed


def _deleted(root: Path, deadline: float) -> tuple[list[tuple[Tag, JobDirectory]], list[JobDirectory]]:
    """Jobs that were deleted before a moment or have secrets left, and tombstones of that age that never were a job.

    Only the intent is read: what else cannot be, does not matter any more.
    """
    jobs, empty = [], []
    for directory in jobdir.below(root):
        try:
            cancelled_at = directory.cancelled_at()
            if cancelled_at is None or not (cancelled_at <= deadline or directory.has_secrets()):
                continue
            intention = directory.intention()
            if intention is not None:
                jobs.append((directory.tag_of(intention), directory))
            elif cancelled_at <= deadline:
                empty.append(directory)
        except OSError as error:
            log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
    return jobs, empty


def _removed(directory: JobDirectory, deadline: float) -> bool:
    """Whether it has gone, and not only its secrets."""
    try:
        cancelled_at = directory.cancelled_at()
        if cancelled_at is None or directory.runner_process() is not None:
            return False
    except OSError as error:
        log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
        return False
    if cancelled_at > deadline:
        directory.remove_secrets()
        return False
    directory.remove()
    return True
