"""News of jobs: a file's time that every runner sets."""

import asyncio
import os
from pathlib import Path
from typing import Any

from interlink.sdk.batch import bell, runner

ring: Any = runner.ring


async def test_a_ring_is_heard(tmp_path: Path) -> None:
    """By who waits, and by who comes later with an old mark."""
    bell.hang(tmp_path)
    before = await bell.heard(tmp_path, "", 0)
    waiting = asyncio.create_task(bell.heard(tmp_path, before, 60))
    await asyncio.sleep(0)
    ring(str(tmp_path / "job"))

    async with asyncio.timeout(10):
        after = await waiting
        assert after != before
        assert await bell.heard(tmp_path, before, 60) == after


async def test_silence_ends_with_the_time(tmp_path: Path) -> None:
    """Hanging it once more is no ring."""
    bell.hang(tmp_path)
    before = await bell.heard(tmp_path, "", 0)
    bell.hang(tmp_path)

    assert await bell.heard(tmp_path, before, 0.15) == before


async def test_without_a_bell_there_is_silence(tmp_path: Path) -> None:
    """Neither its absence nor a directory that cannot be written is an error."""
    ring(str(tmp_path / "gone" / "job"))
    bell.hang(tmp_path / "gone")

    mark = await bell.heard(tmp_path / "gone", "", 0)
    assert await bell.heard(tmp_path / "gone", mark, 0.15) == mark


def test_what_a_job_puts_in_the_bells_place_holds_nobody_up(tmp_path: Path) -> None:
    """A pipe that nobody reads, a link to somewhere else."""
    os.mkfifo(tmp_path / ".bell")
    bell.hang(tmp_path)
    (tmp_path / ".bell").unlink()
    (tmp_path / ".bell").symlink_to(tmp_path / "elsewhere")
    bell.hang(tmp_path)

    assert not (tmp_path / "elsewhere").exists()


def test_a_ring_leaves_no_bell_of_its_own(tmp_path: Path) -> None:
    """Whether one hangs is the plugin's business."""
    ring(str(tmp_path / "job"))

    assert not list(tmp_path.iterdir())
