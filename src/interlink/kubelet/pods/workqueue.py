"""Work by key: each key is handled by one worker at a time, and again when it was named meanwhile."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from interlink.aio.backoff import Backoff

_FINISH_WITHIN_S = 10.0


class WorkQueue:
    """`handle(key)` raises to be called again later: the pause grows with each failure of the key.

    Of the keys that wait, the one with the lowest `order(key)` is next; among equals the one that was named first.
    """

    def __init__(
        self,
        handle: Callable[[str], Awaitable[None]],
        on_failure: Callable[[str, Exception], None],
        *,
        workers: int,
        order: Callable[[str], Any] = lambda _: 0,
    ) -> None:
        self._handle = handle
        self._on_failure = on_failure
        self._workers = workers
        self._order = order
        self._count = 0
        self._waiting: asyncio.PriorityQueue[tuple[Any, int, str]] = asyncio.PriorityQueue()
        self._named: set[str] = set()
        self._busy: set[str] = set()
        self._delays: dict[str, Backoff] = {}

    @property
    def length(self) -> int:
        """Keys that wait for a worker."""
        return self._waiting.qsize()

    @property
    def failing(self) -> int:
        """Keys that failed and are tried again later."""
        return len(self._delays)

    def add(self, key: str) -> None:
        """Name a key; naming it twice before it is handled is naming it once."""
        if key in self._named:
            return
        self._named.add(key)
        if key not in self._busy:
            self._put(key)

    def _put(self, key: str) -> None:
        self._count += 1
        self._waiting.put_nowait((self._order(key), self._count, key))

    async def run(self) -> None:
        """Ends by cancellation; then no key is begun any more, and those at work may finish, for ten seconds."""
        workers = [asyncio.create_task(self._work(), name=f"worker-{number}") for number in range(self._workers)]
        try:
            await asyncio.wait(workers)
        finally:
            await _finished(workers)

    async def _work(self) -> None:
        while True:
            _, _, key = await self._waiting.get()
            self._named.discard(key)
            self._busy.add(key)
            try:
                await _to_its_end(self._handle(key))
                self._delays.pop(key, None)
            except Exception as error:  # the outer edge of a task: one key's trouble is not the others'
                self._on_failure(key, error)
                delay_s = self._delays.setdefault(key, Backoff()).next_s()
                asyncio.get_running_loop().call_later(delay_s, self.add, key)
            finally:
                self._busy.discard(key)
                if key in self._named:
                    self._put(key)


async def _to_its_end(work: Awaitable[None]) -> None:
    """A first cancellation waits for the work, a second one ends it."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await task
        raise


async def _finished(workers: list[asyncio.Task[None]]) -> None:
    """A first cancellation lets them finish what they are at, a second one does not."""
    for worker in workers:
        worker.cancel()
    _, late = await asyncio.wait(workers, timeout=_FINISH_WITHIN_S)
    for worker in late:
        worker.cancel()
    if late:
        await asyncio.wait(late)
