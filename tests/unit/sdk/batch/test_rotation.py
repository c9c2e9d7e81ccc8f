"""Logs that are cut by size while they are written and read; the runner's own code cuts them."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from interlink.sdk.batch import logs, rotation, runner
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.rotation import LogLimits
from interlink.sdk.errors import NotFound
from interlink.wire.messages import LogOptions
from tests.unit.builders import ended, running
from tests.unit.sdk.batch.test_job_logs import line, set_state

FILES = 4
KEPT = 120
"""How many lines four files of this size hold for certain."""


class Log:
    """A container's log as the runner writes it."""

    def __init__(self, directory: JobDirectory) -> None:
        self.path = directory.log("c", 0)
        self.written = 0
        self._file = cast("Any", runner).LogFile(str(self.path), max_bytes=2000, max_files=FILES)

    def write(self, count: int) -> None:
        for _ in range(count):
            self._file.write(line(f"{self.written:03}"))
            self.written += 1

    def close(self) -> None:
        self._file.close()


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    return JobDirectory(tmp_path)


@pytest.fixture
def log(directory: JobDirectory) -> Iterator[Log]:
    made = Log(directory)
    yield made
    made.close()


async def read(directory: JobDirectory, **options: object) -> list[int]:
    async with asyncio.timeout(10):
        chunks = [chunk async for chunk in logs.read(directory, "c", LogOptions(**options))]  # type: ignore[arg-type]
    return [int(number) for number in b"".join(chunks).split()]


@pytest.mark.parametrize("count", [1, 40, KEPT])
async def test_all_files_are_one_log(directory: JobDirectory, log: Log, count: int) -> None:
    """In the order in which it was written, whatever files it lies in."""
    log.write(count)

    assert await read(directory) == list(range(count))
    assert len(list(log.path.parent.iterdir())) <= FILES


async def test_the_oldest_lines_go(directory: JobDirectory, log: Log) -> None:
    """What is left is without a gap, up to the newest."""
    log.write(1000)

    found = await read(directory)
    assert found == list(range(1000 - len(found), 1000))
    assert KEPT <= len(found) < 1000


@pytest.mark.parametrize("tail", [1, 30, 90])
async def test_the_last_lines_may_lie_in_several_files(directory: JobDirectory, log: Log, tail: int) -> None:
    """As many as were asked for."""
    log.write(200)

    assert await read(directory, tail=tail) == list(range(200 - tail, 200))


@pytest.mark.parametrize("at_once", [1, 30, 70])
async def test_a_follower_misses_nothing(
    directory: JobDirectory, log: Log, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Also when the log is cut several times between two looks."""
    monkeypatch.setattr(logs, "_LOOK_S", 0.001)
    monkeypatch.setattr(JobDirectory, "runner_process", lambda _: 1)
    set_state(directory, running())
    log.write(1)
    seen = b""
    async with asyncio.timeout(20):
        async for chunk in logs.read(directory, "c", LogOptions(follow=True)):
            seen += chunk
            if chunk and log.written < 400 and len(seen.split()) == log.written:
                log.write(at_once)
            elif log.written >= 400:
                set_state(directory, ended())

    assert [int(number) for number in seen.split()] == list(range(log.written))


def test_a_file_that_is_being_renamed_is_not_missed(directory: JobDirectory, log: Log) -> None:
    """A moment in the middle of cutting: the first number is free, or the newest file has not been made yet."""
    log.write(100)
    names = sorted(path.name for path in log.path.parent.iterdir())
    assert len(names) > 2
    for name in ("0.log", "0.log.1"):
        hidden = log.path.with_name("hidden")
        log.path.with_name(name).rename(hidden)
        found = rotation.opened(directory, log.path)
        hidden.rename(log.path.with_name(name))
        for file in found:
            file.close()

        assert len(found) == len(names) - 1


async def test_what_is_no_log_is_not_read(directory: JobDirectory, log: Log, tmp_path: Path) -> None:
    """A link that a job has laid there, to a file of somebody else."""
    log.write(100)
    older = log.path.with_name("0.log.1")
    older.unlink()
    older.symlink_to(tmp_path / "elsewhere")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- iterdir would keep it open

    with pytest.raises(NotFound, match="cannot be read"):
        await read(directory)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 -- as above


@pytest.mark.parametrize(
    ("size", "files", "expected"),
    [
        ("", 5, LogLimits(None, 5)),
        (None, 1, LogLimits(None, 1)),
        ("10Mi", 5, LogLimits(10 * 1024 * 1024, 5)),
        (4096, 2, LogLimits(4096, 2)),
    ],
)
def test_the_limits_of_a_site(size: str | int | None, files: int, expected: LogLimits) -> None:
    """As a kubelet has them, without a size no limit."""
    assert rotation.limits(size, files) == expected


@pytest.mark.parametrize(
    ("size", "files", "words"),
    [
        ("ten", 5, "ContainerLogMaxSize: 'ten' is no quantity"),
        ("1", 5, "ContainerLogMaxSize: must be at least 1024 bytes, not 1"),
        ("-10Mi", 5, "ContainerLogMaxSize: "),
        ("10Mi", 0, "ContainerLogMaxFiles: must be between 1 and 1000, not 0"),
        ("10Mi", 1001, "ContainerLogMaxFiles: must be between 1 and 1000, not 1001"),
    ],
)
def test_wrong_limits_are_named(size: str, files: int, words: str) -> None:
    """By the key of the configuration."""
    with pytest.raises(ValueError, match=words):
        rotation.limits(size, files)
