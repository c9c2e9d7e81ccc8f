"""Reading a container's log: every option of `kubectl logs`."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlink.aio import files
from interlink.sdk.batch import logs
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.errors import NotFound, Rejected, SDKError
from interlink.wire.messages import LogOptions
from tests.unit.builders import NOW, Document, ended, running

STAMP = "2026-07-14T10:00:{:02}.{:09}Z"


def line(text: str, second: int = 0, *, nanos: int = 1, flag: str = "F", stream: str = "stdout") -> bytes:
    return f"{STAMP.format(second, nanos)} {stream} {flag} {text}\n".encode()


def lines(count: int) -> bytes:
    return b"".join(line(f"line {number}", number) for number in range(count))


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    return JobDirectory(tmp_path)


def write(directory: JobDirectory, *runs: bytes, container: str = "c") -> Path:
    """The logs of one run after another; the path of the last."""
    for number, data in enumerate(runs):
        path = directory.log(container, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


async def read(directory: JobDirectory, container: str = "c", **options: Any) -> bytes:
    async with asyncio.timeout(5):
        return b"".join([chunk async for chunk in logs.read(directory, container, LogOptions(**options))])


# --- the whole log ---------------------------------------------------------------------------------------------------


async def test_a_log_is_its_lines(directory: JobDirectory) -> None:
    """Of both streams in the order in which they came, byte by byte, empty ones included."""
    write(directory, line("a") + line("", stream="stderr") + line("  b  ") + line("é") + b"t stdout F \xff\x00\n")

    assert await read(directory) == b"a\n\n  b  \n" + "é\n".encode() + b"\xff\x00\n"


async def test_a_line_without_an_end_is_read_in_pieces(directory: JobDirectory) -> None:
    """The runner writes no such line, the job's user can: to keep all of it took the plugin minutes and its memory."""
    path = write(directory, b"")
    os.truncate(path, 32 * 1024 * 1024)

    assert 0 < len(await read(directory, tail=1)) < 1024 * 1024


async def test_an_empty_log_is_empty(directory: JobDirectory) -> None:
    """It is not missing."""
    write(directory, b"")

    assert await read(directory) == b""


async def test_pieces_of_a_line_are_one_line(directory: JobDirectory) -> None:
    """A long line is written in pieces; the reader does not see them."""
    write(directory, line("one ", flag="P") + line("two ", flag="P") + line("three") + line("next"))

    assert await read(directory) == b"one two three\nnext\n"


async def test_a_last_line_without_an_end_has_none(directory: JobDirectory) -> None:
    """A program that ends in the middle of a line."""
    write(directory, line("a") + line("prompt> ", flag="P"))

    assert await read(directory) == b"a\nprompt> "


async def test_half_a_record_is_not_shown(directory: JobDirectory) -> None:
    """What is being written at this moment."""
    write(directory, line("a") + line("b")[:-5])

    assert await read(directory) == b"a\n"


async def test_a_log_larger_than_one_read_is_whole(directory: JobDirectory) -> None:
    """Lines that lie across the border of two reads included."""
    many = [f"{number:07} " + "x" * 90 for number in range(6000)]
    write(directory, b"".join(line(text) for text in many))

    assert (await read(directory)).decode().split("\n")[:-1] == many


async def test_the_first_answer_comes_before_the_first_line(directory: JobDirectory) -> None:
    """So that the caller can answer as soon as it is clear that there is a log."""
    write(directory, line("a"))
    reader = logs.read(directory, "c", LogOptions())

    assert await anext(reader) == b""
    await reader.aclose()


# --- tail ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tail", "first"), [(1, 9), (3, 7), (10, 0), (99, 0), (0, 0), (None, 0)])
async def test_the_last_lines(directory: JobDirectory, tail: int | None, first: int) -> None:
    """As many as are asked, or all there are; zero and null are not set."""
    write(directory, lines(10))

    assert await read(directory, tail=tail) == b"".join(b"line %d\n" % number for number in range(first, 10))


async def test_a_split_line_counts_as_one(directory: JobDirectory) -> None:
    """In how many pieces it was written does not matter."""
    long = b"".join(line("x" * 1000, flag="P") for _ in range(300)) + line("end")
    write(directory, lines(3) + long + line("last"))

    assert await read(directory, tail=2) == b"x" * 300_000 + b"end\nlast\n"
    assert await read(directory, tail=3) == b"line 2\n" + b"x" * 300_000 + b"end\nlast\n"


# --- since -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "first"),
    [
        ("2026-07-14T10:00:05Z", 5),
        ("2026-07-14T10:00:05.5Z", 6),
        ("2026-07-14T12:00:05+02:00", 5),
        ("2026-07-14T10:00:05", 5),
        ("2026-07-14T09:00:00Z", 0),
        ("2026-07-14T11:00:00Z", 10),
        ("2026-07-14T10:00:05.123456789Z", 6),
        ("0001-01-01T00:00:00Z", 0),
        ("", 0),
        (None, 0),
    ],
)
async def test_lines_since_a_moment(directory: JobDirectory, moment: str | None, first: int) -> None:
    """In any time zone; Go's zero time is not set."""
    write(directory, b"".join(line(f"line {number}", number, nanos=100_000_000) for number in range(10)))

    assert await read(directory, since_time=moment) == b"".join(b"line %d\n" % number for number in range(first, 10))


@pytest.mark.parametrize("nanos", [0, 500])
async def test_a_line_of_exactly_that_moment_counts(directory: JobDirectory, nanos: int) -> None:
    """Since means from that moment on."""
    write(directory, line("a", 5, nanos=nanos))

    assert await read(directory, since_time="2026-07-14T10:00:05Z") == b"a\n"


def test_seconds_count_back_from_now() -> None:
    """They win over a moment."""
    found = logs.selection(LogOptions(since_seconds=60, since_time="2000-01-01T00:00:00Z"), NOW)

    assert found.since is not None
    assert (NOW - found.since).total_seconds() == 60


async def test_since_comes_before_tail(directory: JobDirectory) -> None:
    """The last lines of those that are recent."""
    write(directory, lines(10))

    assert await read(directory, since_time="2026-07-14T10:00:07.5Z", tail=5) == b"line 8\nline 9\n"


# --- timestamps, limit -----------------------------------------------------------------------------------------------


async def test_timestamps_stand_before_each_line(directory: JobDirectory) -> None:
    """One for a line, also for one that was written in pieces."""
    write(directory, line("a", 1) + line("b", 2, flag="P") + line("c", 3) + line("", 4))

    assert await read(directory, timestamps=True) == (
        b"2026-07-14T10:00:01.000000001Z a\n2026-07-14T10:00:02.000000001Z bc\n2026-07-14T10:00:04.000000001Z \n"
    )


async def test_a_very_long_line_has_one_timestamp(directory: JobDirectory) -> None:
    """However many reads it takes."""
    write(directory, b"".join(line("x" * 1000, flag="P") for _ in range(400)) + line("end"))

    assert (await read(directory, timestamps=True)).count(b"Z ") == 1


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, b"line 0\nline 1\n"), (1, b"l"), (7, b"line 0\n"), (9, b"line 0\nli")]
)
async def test_a_limit_cuts_at_the_byte(directory: JobDirectory, limit: int, expected: bytes) -> None:
    """Zero is not set."""
    write(directory, lines(2))

    assert await read(directory, limit_bytes=limit) == expected


@pytest.mark.parametrize("limit", [10, 300_000, 599_999])
async def test_a_limit_holds_over_many_reads(directory: JobDirectory, limit: int) -> None:
    """Timestamps count as well."""
    write(directory, b"".join(line("x" * 99) for _ in range(6000)))

    assert len(await read(directory, limit_bytes=limit)) == limit
    assert len(await read(directory, limit_bytes=limit, timestamps=True)) == limit


async def test_a_limit_is_of_the_last_lines(directory: JobDirectory) -> None:
    """First the tail, then the limit."""
    write(directory, lines(10))

    assert await read(directory, tail=1, limit_bytes=4) == b"line"


# --- which log -------------------------------------------------------------------------------------------------------


async def test_the_last_run_is_shown(directory: JobDirectory) -> None:
    """By number, not by name."""
    write(directory, *(line(f"run {number}") for number in range(11)))

    assert await read(directory) == b"run 10\n"
    assert await read(directory, previous=True) == b"run 9\n"


async def test_a_container_that_was_not_restarted_has_no_previous_run(directory: JobDirectory) -> None:
    """Which is said as a kubelet says it."""
    write(directory, line("a"))

    with pytest.raises(NotFound, match="previous terminated container 'c' in the pod not found"):
        await read(directory, previous=True)


@pytest.mark.parametrize("container", ["other", "", ".", "..", "../c", "c/../c", "/etc"])
async def test_a_container_without_a_log_is_not_found(directory: JobDirectory, container: str) -> None:
    """Nor is a name that leads elsewhere."""
    write(directory, line("a"))

    with pytest.raises(NotFound, match="container"):
        await read(directory, container)


async def test_a_pod_without_a_job_is_said_to_have_none(tmp_path: Path) -> None:
    """Nobody waits for a container of it to start."""
    with pytest.raises(NotFound, match="there is no job of pod nobody"):
        await read(JobDirectory(tmp_path / "nobody"))


BAD: list[tuple[Document, type[SDKError]]] = [
    ({"tail": -1}, Rejected),
    ({"limit_bytes": -1}, Rejected),
    ({"since_seconds": -1}, Rejected),
    ({"since_time": "yesterday"}, Rejected),
]


@pytest.mark.parametrize(("options", "kind"), BAD)
async def test_options_that_make_no_sense_are_refused(
    directory: JobDirectory, options: Document, kind: type[SDKError]
) -> None:
    """With a text that says so."""
    write(directory, line("a"))

    with pytest.raises(kind, match="log options: "):
        await read(directory, **options)


# --- following -------------------------------------------------------------------------------------------------------


def set_state(directory: JobDirectory, *containers: Document, phase: str = "running") -> None:
    files.write_durably(directory.path / "state.json", json.dumps({"phase": phase, "containers": containers}).encode())


@pytest.fixture
def living(directory: JobDirectory, monkeypatch: pytest.MonkeyPatch) -> JobDirectory:
    """A job whose runner lives; the reader looks again at once."""
    monkeypatch.setattr(logs, "_LOOK_S", 0.001)
    monkeypatch.setattr(JobDirectory, "runner_process", lambda _: 1)
    return directory


async def followed(directory: JobDirectory, *steps: Callable[[], Any], **options: Any) -> bytes:
    """What a follower has seen at the end; the steps follow once it has seen something."""
    remaining = list(steps)
    seen = b""
    async with asyncio.timeout(5):
        async for chunk in logs.read(directory, "c", LogOptions(follow=True, **options)):
            seen += chunk
            if seen and remaining:
                remaining.pop(0)()
    assert not remaining
    return seen


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


async def test_a_follower_sees_what_comes_until_the_end(living: JobDirectory) -> None:
    """The lines that were there, those that come, and those that were written just before the end."""
    path = write(living, line("a"))
    set_state(living, running())

    def end() -> None:
        append(path, line("b") + line("c"))
        set_state(living, ended())

    assert await followed(living, end) == b"a\nb\nc\n"


async def test_a_follower_may_begin_with_the_last_lines(living: JobDirectory) -> None:
    """What comes later is not counted."""
    path = write(living, lines(5))
    set_state(living, running())

    def end() -> None:
        append(path, line("new") + line("newer"))
        set_state(living, ended())

    assert await followed(living, end, tail=1) == b"line 4\nnew\nnewer\n"


ENDS = [
    ("ended", [ended()], "running"),
    (
        "waits to be restarted",
        [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 1}],
        "running",
    ),
    ("restarted", [running(restartCount=1)], "running"),
    ("unknown", [running("another")], "running"),
]


@pytest.mark.parametrize(("what", "containers", "phase"), ENDS)
async def test_following_ends_with_the_containers_run(
    living: JobDirectory, what: str, containers: Any, phase: str
) -> None:
    """When it has ended, and when another run has begun."""
    write(living, line("a"))
    set_state(living, *containers, phase=phase)

    assert await followed(living) == b"a\n", what


async def test_following_a_job_whose_runner_is_dead_ends(directory: JobDirectory) -> None:
    """Nobody is left to write."""
    write(directory, line("a"))
    set_state(directory, running())

    assert await followed(directory) == b"a\n"


async def test_following_stops_at_the_limit(living: JobDirectory) -> None:
    """Also while the container goes on."""
    write(living, line("abc"))
    set_state(living, running())

    assert await followed(living, limit_bytes=2) == b"ab"


# --- job scripts -----------------------------------------------------------------------------------------------------


async def test_a_container_without_output_of_its_own_shows_that_of_its_script(directory: JobDirectory) -> None:
    """A name that is no container's shows nothing."""
    set_state(directory, ended())
    write(directory, line("of the script"), container="jobScript")

    assert await read(directory) == b"of the script\n"
    with pytest.raises(NotFound):
        await read(directory, "other")


async def test_following_goes_over_to_the_containers_own_output(living: JobDirectory) -> None:
    """Once the script has begun to write it."""
    set_state(living, running())
    write(living, line("of the script"), container="jobScript")
    reading = logs.read(living, "c", LogOptions(follow=True))
    assert [await anext(reading), await anext(reading)] == [b"", b"of the script\n"]
    write(living, line("of its own"))
    set_state(living, ended())

    assert b"".join([chunk async for chunk in reading]) == b"of its own\n"


@pytest.mark.parametrize("part", ["0.log", "c", "logs"])
async def test_a_link_that_a_job_put_there_is_not_followed(directory: JobDirectory, tmp_path: Path, part: str) -> None:
    """A privileged plugin must not read to a job's user what that user may not read."""
    path = write(directory, line("mine"))
    target = {"0.log": path, "c": path.parent, "logs": path.parent.parent}[part]
    elsewhere = tmp_path / "elsewhere"
    target.rename(elsewhere)
    target.symlink_to(elsewhere)

    with pytest.raises(NotFound, match="cannot be read"):
        await read(directory)
