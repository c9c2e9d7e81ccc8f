"""Polling with a deadline: the one place in the test-bed that sleeps."""

import asyncio
import time
from collections.abc import Awaitable, Callable


def until(check: Callable[[], bool], *, deadline_s: float, interval_s: float = 0.05) -> bool:
    """Ask until the check holds: True then, False once the deadline has passed. Always asks at least once."""
    end = time.monotonic() + deadline_s
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(interval_s)
    return True


async def until_async(check: Callable[[], Awaitable[bool]], *, deadline_s: float, interval_s: float = 0.05) -> bool:
    """The same for a test that runs in an event loop."""
    end = time.monotonic() + deadline_s
    while not await check():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(interval_s)
    return True
