"""Accounting by tag: one sacct at a time, for all who asked before it began."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from interlink.model.ids import Tag
from interlink.plugins.slurm.parsing import QueuedJob

_ASKED_AT_ONCE = 500


class Accounts:
    def __init__(self, ask: Callable[[Sequence[Tag]], Awaitable[Sequence[QueuedJob]]]) -> None:
        self._ask = ask
        self._wanted: dict[Tag, None] = {}
        self._answers: dict[Tag, QueuedJob | None] = {}
        self._one_at_a_time = asyncio.Lock()

    async def last(self, tag: Tag) -> QueuedJob | None:
        """The last record of a job of this name, asked for after this call. Raises Unreachable."""
        self._answers.pop(tag, None)
        self._wanted[tag] = None
        async with self._one_at_a_time:
            if tag not in self._answers:
                tags = list({tag: None, **self._wanted})[:_ASKED_AT_ONCE]
                records = await self._ask(tags)
                self._wanted = {other: None for other in self._wanted if other not in tags}
                self._answers |= {**dict.fromkeys(tags), **{job.tag: job for job in records if job.tag in tags}}
            return self._answers.pop(tag)
