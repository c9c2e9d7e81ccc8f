"""Loops that must go on: a failing round is logged and tried again, after a growing pause."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from interlink.aio.backoff import Backoff

T = TypeVar("T")


async def run_repeatedly(
    name: str,
    round_: Callable[[], Awaitable[None]],
    *,
    on_failure: Callable[[str, Exception], None],
    pause_s: float | Callable[[], float] = 0.0,
    backoff: Backoff | None = None,
) -> None:
    """Call `round_` for ever; ends only by cancellation.

    After a round that returned the next follows in `pause_s` seconds, computed after each round if it is a function;
    after one that raised, `on_failure` is told and the next follows after the back-off, which a good round resets.
    """
    delays = backoff or Backoff()
    while True:
        try:
            await round_()
        except Exception as error:  # the outer edge of a task: nothing may end the loop
            on_failure(name, error)
            await asyncio.sleep(delays.next_s())
        else:
            delays.reset()
            await asyncio.sleep(pause_s() if callable(pause_s) else pause_s)


class KeyedLocks:
    """One lock a key, kept only while somebody holds or wants it."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def is_held(self, key: str) -> bool:
        return key in self._locks

    def hold(self, key: str) -> "_Hold":
        return _Hold(self._locks, key)


class _Hold:
    def __init__(self, locks: dict[str, tuple[asyncio.Lock, int]], key: str) -> None:
        self._locks = locks
        self._key = key

    async def __aenter__(self) -> None:
        lock, users = self._locks.get(self._key, (asyncio.Lock(), 0))
        self._locks[self._key] = (lock, users + 1)
        try:
            await lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._locks[self._key][0].release()
        self._leave()

    def _leave(self) -> None:
        lock, users = self._locks[self._key]
        if users == 1:
            del self._locks[self._key]
        else:
            self._locks[self._key] = (lock, users - 1)


async def run_to_end(work: Awaitable[T]) -> T:
    """Finish `work` however often the caller is cancelled meanwhile; the cancellation is raised after the end."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        raise
