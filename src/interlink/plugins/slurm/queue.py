"""The queue as one list for everybody who asks: one squeue at a time, shared by all who asked before it began."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from interlink.model.ids import PodUID, Tag
from interlink.plugins.slurm import states
from interlink.plugins.slurm.parsing import QueuedJob

_RECENT_S = 30.0


class Look(msgspec.Struct, frozen=True):
    """All jobs of ours at one moment. began_at is monotonic."""

    began_at: float
    jobs: dict[Tag, list[QueuedJob]]

    def best(self, tag: Tag) -> QueuedJob | None:
        jobs = self.jobs.get(tag)
        return states.best(jobs) if jobs else None

    def alive(self, tag: Tag) -> list[QueuedJob]:
        return [job for job in self.jobs.get(tag, []) if states.is_alive(job)]

    def by_pod(self) -> dict[PodUID, QueuedJob]:
        """The newest attempt of each pod."""
        tags = sorted(self.jobs, key=lambda tag: tag.attempt)
        return {tag.pod_uid: states.best(self.jobs[tag]) for tag in tags}


class Queue:
    def __init__(self, ask: Callable[[], Awaitable[Sequence[QueuedJob]]]) -> None:
        self._ask = ask
        self._latest: Look | None = None
        self._one_at_a_time = asyncio.Lock()

    async def look(self) -> Look:
        """A list that was asked for after this call. Raises Unreachable."""
        asked_at = time.monotonic()
        async with self._one_at_a_time:
            if self._latest is None or self._latest.began_at < asked_at:
                self._latest = await self._look()
            return self._latest

    async def recent(self, *, after: float) -> Look:
        """A list that was asked for after this moment (monotonic), and not long ago. Raises Unreachable."""
        latest = self._latest
        if latest is not None and after <= latest.began_at and time.monotonic() - latest.began_at < _RECENT_S:
            return latest
        return await self.look()

    async def _look(self) -> Look:
        began_at = time.monotonic()
        jobs: dict[Tag, list[QueuedJob]] = {}
        for job in await self._ask():
            jobs.setdefault(job.tag, []).append(job)
        return Look(began_at=began_at, jobs=jobs)
