"""Programs run to their end, within a time."""

import asyncio
import os
from pathlib import Path

import pytest

from interlink.aio import processes
from interlink.testing.waiting import until_async


async def test_a_program_is_given_its_input() -> None:
    """Its output, its errors and how it ended come back, byte by byte."""
    found = await processes.run(["sh", "-c", "cat; echo no >&2; exit 3"], stdin=b"\x00\xff", timeout_s=10)

    assert found == (3, b"\x00\xff", b"no\n")


async def test_arguments_are_passed_as_they_are() -> None:
    """No shell reads them."""
    assert (await processes.run(["printf", "%s", "$HOME; *"], timeout_s=10)).stdout == b"$HOME; *"


async def test_a_program_that_is_not_there_is_an_error() -> None:
    """Of the operating system's own kind."""
    with pytest.raises(FileNotFoundError):
        await processes.run(["/nowhere/program"], timeout_s=10)


async def test_a_program_that_does_not_read_its_input_is_no_error() -> None:
    """However much there is."""
    assert (await processes.run(["true"], stdin=b"x" * 1_000_000, timeout_s=10)).exit_code == 0


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_program_that_takes_too_long_is_killed_with_its_children(tmp_path: Path, is_cancelled: bool) -> None:
    """When its time is over, and when nobody waits for it any more."""
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    script = f"exec 9<>{pipe}; sleep 100 & sleep 100"
    task = asyncio.ensure_future(processes.run(["sh", "-c", script], timeout_s=10 if is_cancelled else 0.1))
    if is_cancelled:
        assert await until_async(lambda: _is_held(pipe), deadline_s=5)
        task.cancel()

    with pytest.raises((TimeoutError, asyncio.CancelledError)):
        await task
    assert await until_async(lambda: _is_free(pipe), deadline_s=5)


async def _is_held(pipe: Path) -> bool:
    """Whether any process has the pipe open."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


async def _is_free(pipe: Path) -> bool:
    return not await _is_held(pipe)
