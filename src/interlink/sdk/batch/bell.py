"""News of jobs without asking the batch system: each runner rings when it has written its state.

    <root>/.bell        its time is that of the latest news of any job

A ring may be lost, as where jobs run as users who may not write here, or come late on a network file system. It only
brings a look forward that is taken anyway.
"""

import asyncio
import contextlib
import os
import time
from pathlib import Path

NAME = ".bell"
_LOOK_EVERY_S = 0.1
_NEVER = "0"


def hang(root: Path) -> None:
    """Harmless when it is there. Nothing depends on it, so nothing is synced and no error is raised."""
    with contextlib.suppress(OSError):
        os.close(os.open(root / NAME, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o600))


async def heard(root: Path, since: str, within_s: float) -> str:
    """The mark of the latest ring: another one than `since` as soon as there is, at the latest after `within_s`."""
    until = time.monotonic() + within_s
    while True:
        mark = await asyncio.to_thread(_mark, root)
        left_s = until - time.monotonic()
        if mark != since or left_s <= 0:
            return mark
        await asyncio.sleep(min(_LOOK_EVERY_S, left_s))


def _mark(root: Path) -> str:
    try:
        return str((root / NAME).stat().st_mtime_ns)
    except OSError:
        return _NEVER
