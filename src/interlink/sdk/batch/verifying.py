"""What was acknowledged, held against what the batch system has: after a crash it may have forgotten it."""

import asyncio
import time
from pathlib import Path

import prometheus_client
import structlog

from interlink.aio.supervising import KeyedLocks, run_to_end
from interlink.model.ids import PodUID
from interlink.sdk.batch import jobdir, known
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.known import GONE, KnownJob
from interlink.sdk.batch.scheduler import Life, Observation, Scheduler
from interlink.sdk.batch.submitting import submit

log = structlog.get_logger(__name__)

REPEATED = prometheus_client.Counter(
    "interlink_jobs_submitted_again",
    "Jobs that never began and were submitted again: the batch system forgot them, or gave them up.",
    ["why"],
)

CANCELS_ARE_WATCHED_S = 120.0


class Verifier:
    """locks: by pod UID, shared with whoever else changes a job. lost_after_s: for how long a submitted job that never
    started must be missing before it is submitted again."""

    def __init__(self, root: Path, scheduler: Scheduler, locks: KeyedLocks, *, lost_after_s: float) -> None:
        self._root = root
        self._scheduler = scheduler
        self._locks = locks
        self._lost_after_s = lost_after_s
        self._missing_since: dict[PodUID, float] = {}
        self._verified: set[PodUID] = set()
        self._troubled: set[PodUID] = set()

    def forget(self, uid: PodUID) -> None:
        """What was found of this job is true no longer: it has been cancelled, or is gone."""
        self._verified.discard(uid)

    async def verify(self) -> None:
        """One round.

        A submitted job that never started is submitted again, under the same tag, when it has been missing for a while
        or the batch system has given it up; the claim in its directory lets only one of them run. A job that was
        cancelled and is there again is cancelled again. Nothing is asked when there is nothing to verify.
        """
        jobs = await asyncio.to_thread(_unverified, self._root, self._verified)
        if not jobs:
            self._missing_since.clear()
            return
        seen = await known.poll(self._scheduler, jobs)
        await self._scheduler.tidy([job.tag for job in jobs])
        self._troubled &= {job.directory.pod_uid for job in jobs}
        for job in sorted(jobs, key=lambda job: job.directory.pod_uid in self._troubled):
            self._troubled.add(job.directory.pod_uid)  # what fails ends the round, and is the last of the next one
            async with self._locks.hold(job.directory.pod_uid):
                await run_to_end(self._verify(job, seen.get(job.tag, GONE)))
            self._troubled.discard(job.directory.pod_uid)

    async def _verify(self, job: KnownJob, seen: Observation) -> None:
        uid, directory = job.directory.pod_uid, job.directory
        if seen.life is not Life.GONE:
            self._missing_since.pop(uid, None)
        cancelled_at = directory.cancelled_at()
        if cancelled_at is not None:
            if seen.is_alive:
                await self._scheduler.cancel(job.tag, directory)
            elif time.time() - cancelled_at > CANCELS_ARE_WATCHED_S:
                self._verified.add(uid)
        elif directory.is_claimed(job.tag.attempt) or directory.ending() is not None or seen.life is Life.ENDED:
            self._verified.add(uid)
        elif seen.is_to_be_repeated and directory.is_prepared() and not self._is_on_its_way(directory):
            await self._submit_again(job, "given-up")
        elif seen.life is Life.GONE and directory.is_prepared() and self._has_been_missing(uid):
            await self._submit_again(job, "forgotten")
            self._missing_since.pop(uid, None)

    async def _submit_again(self, job: KnownJob, why: str) -> None:
        uid = job.directory.pod_uid
        log.warning("job.submitted-again", pod_uid=uid, job_id=job.job_id, why=why)
        REPEATED.labels(why).inc()
        job_id = await submit(self._scheduler, job.tag, job.directory)
        await asyncio.to_thread(job.directory.remember, job_id)

    def _is_on_its_way(self, directory: JobDirectory) -> bool:
        """Whether a submission may still arrive whose outcome nobody knows."""
        tried_at = directory.unknown_submission_at()
        return tried_at is not None and time.time() - tried_at < self._lost_after_s

    def _has_been_missing(self, uid: PodUID) -> bool:
        since = self._missing_since.setdefault(uid, time.monotonic())
        return time.monotonic() - since >= self._lost_after_s


def _unverified(root: Path, verified: set[PodUID]) -> list[KnownJob]:
    """Submitted jobs, and deleted ones, of which nobody knows yet that the batch system has taken it in for good."""
    directories = [directory for directory in jobdir.below(root) if directory.pod_uid not in verified]
    return [job for job in known.each(directories) if job.job_id is not None]
