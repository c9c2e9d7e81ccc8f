"""Work by key: each key is handled by one worker at a time, and again when it was named meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

from interlink.aio.backoff import Backoff


class WorkQueue:
    """`handle(key)` raises to be called again later: the pause grows with each failure of the key."""

    def __init__(
        self, handle: Callable[[str], Awaitable[None]], on_failure: Callable[[str, Exception], None], *, workers: int
    ) -> None:
        self._handle = handle
        self._on_failure = on_failure
        self._workers = workers
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._named: set[str] = set()
        self._busy: set[str] = set()
        self._delays: dict[str, Backoff] = {}

    def add(self, key: str) -> None:
        """Name a key; naming it twice before it is handled is naming it once."""
        if key in self._named:
            return
        self._named.add(key)
        if key not in self._busy:
            self._waiting.put_nowait(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"worker-{number}")

    async def _work(self) -> None:
        while True:
            key = await self._waiting.get()
            self._named.discard(key)
            self._busy.add(key)
            try:
                await self._handle(key)
                self._delays.pop(key, None)
            except Exception as error:  # the outer edge of a task: one key's trouble is not the others'
                self._on_failure(key, error)
                delay_s = self._delays.setdefault(key, Backoff()).next_s()
                asyncio.get_running_loop().call_later(delay_s, self.add, key)
            finally:
                self._busy.discard(key)
                if key in self._named:
                    self._waiting.put_nowait(key)
