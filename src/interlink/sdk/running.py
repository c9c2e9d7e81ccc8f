"""A program's life: its loops run until a signal comes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog

from interlink.sdk import hosting

T = TypeVar("T")

log = structlog.get_logger(__name__)


def log_failure(name: str, error: Exception) -> None:
    log.error("loop.failed", loop=name, error=repr(error), exc_info=error)


async def unless_stopped(work: Coroutine[None, None, T], stopped: asyncio.Event) -> T | None:
    """The result of `work`; None when the signal to stop came first, which cancels it."""
    task = asyncio.create_task(work)
    signal = asyncio.create_task(stopped.wait(), name="signals")
    await asyncio.wait([signal, task], return_when=asyncio.FIRST_COMPLETED)
    is_done = task.done()
    await _cancelled(signal, task)
    return task.result() if is_done else None


async def until_stopped(
    *loops: Coroutine[None, None, None],
    stopped: asyncio.Event | None = None,
    before_end: Callable[[], Coroutine[None, None, None]] | None = None,
) -> None:
    """Run `loops` until SIGTERM or SIGINT, then cancel them and wait for their end.

    A loop that ends by an error ends the program with that error. `before_end` runs after the signal, while the loops
    go on; a second signal cuts it short.
    """
    stopped = stopped or hosting.stop_signal()
    tasks = [asyncio.create_task(loop, name=f"loop-{number}") for number, loop in enumerate(loops)]
    signal = asyncio.create_task(stopped.wait(), name="signals")
    try:
        await asyncio.wait([signal, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        if before_end is not None:
            stopped.clear()
            await unless_stopped(before_end(), stopped)
    finally:
        await _cancelled(signal, *tasks)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
