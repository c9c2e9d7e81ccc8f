"""Reading a container's log with the options of `kubectl logs`.

A log is a file of lines `<RFC 3339 time> <stream> <F|P> <text>`, as container runtimes write them; `P` is a piece of a
line that goes on. Reading follows the file as it grows, from piece to piece, and holds one line at most in memory.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from interlink.aio import clock
from interlink.sdk.batch import rotation
from interlink.sdk.batch.jobdir import SCRIPT, JobDirectory
from interlink.sdk.errors import NotFound, Rejected
from interlink.wire.messages import LogOptions

_LOOK_S = 0.2
_READ_BYTES = 256 * 1024
_LONGEST_LINE_BYTES = 64 * 1024
_MOST_LINES = 10_000_000
_LONGEST_S = 50 * 365 * 86400
_ZERO_TIME = "0001-01-01T00:00:00Z"


class _Entry(msgspec.Struct, frozen=True):
    time: bytes
    is_partial: bool
    text: bytes


class Selection(msgspec.Struct, frozen=True):
    """What of a log is wanted."""

    tail: int | None
    limit_bytes: int | None
    since: datetime | None
    has_timestamps: bool


def selection(options: LogOptions, now: datetime) -> Selection:
    """Raises Rejected for options that contradict each other or cannot be read."""
    tail, limit_bytes = options.tail or 0, options.limit_bytes or 0
    if tail < 0 or limit_bytes < 0 or (options.since_seconds or 0) < 0:
        raise Rejected("log options: tail, limit and since must not be negative")
    return Selection(
        tail=min(tail, _MOST_LINES) or None,
        limit_bytes=limit_bytes or None,
        since=_since(options, now),
        has_timestamps=bool(options.timestamps),
    )


def _since(options: LogOptions, now: datetime) -> datetime | None:
    if options.since_seconds:
        return now - timedelta(seconds=min(options.since_seconds, _LONGEST_S))
    if not options.since_time or options.since_time == _ZERO_TIME:
        return None
    try:
        moment = datetime.fromisoformat(options.since_time)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Rejected(f"log options: {options.since_time!r} is no RFC 3339 time") from error


async def read(directory: JobDirectory, container: str, options: LogOptions) -> AsyncGenerator[bytes]:
    """The log's bytes; with `follow`, until the container's present run has ended. First yields `b""`.

    Raises NotFound when there is no such container or log, Rejected for bad options.
    """
    wanted = selection(options, clock.now())
    path = await asyncio.to_thread(_path, directory, container, is_previous=bool(options.previous))
    yield b""
    budget = _Budget(wanted.limit_bytes)
    renderer = _Renderer(has_timestamps=wanted.has_timestamps)
    paths = [path, directory.log(container, 0)] if _is_of_script(path) and options.follow else [path]
    for present in paths:
        if not await asyncio.to_thread(present.exists):
            return
        async for lines in _entries(present, directory, container, wanted, is_following=bool(options.follow)):
            yield budget.spend(renderer.render(lines))
            if budget.is_spent:
                return


class _Budget:
    def __init__(self, limit_bytes: int | None) -> None:
        self._left = limit_bytes

    def spend(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        data = data[: self._left]
        self._left -= len(data)
        return data

    @property
    def is_spent(self) -> bool:
        return self._left == 0


def _path(directory: JobDirectory, container: str, *, is_previous: bool) -> Path:
    folder = directory.path / "logs" / container
    if "/" in container or "\0" in container or container in ("", ".", "..") or len(container) > 253:
        raise NotFound(f"there is no container {container!r}")
    if not folder.exists() and _has(directory, container):
        folder = directory.path / "logs" / SCRIPT
    runs = sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdecimal())
    if is_previous:
        if len(runs) < 2:
            raise NotFound(f"previous terminated container {container!r} in the pod not found")
        return folder / f"{runs[-2]}.log"
    if not runs:
        if not directory.path.is_dir():
            raise NotFound(f"there is no job of pod {directory.pod_uid}")
        raise NotFound(f"container {container!r} is waiting to start, or there is no such container: it has no log")
    return folder / f"{runs[-1]}.log"


def _has(directory: JobDirectory, container: str) -> bool:
    state = directory.state()
    return state is not None and any(s.name == container for s in (*state.containers, *state.init_containers))


def _is_of_script(path: Path) -> bool:
    """Whether this is the output of a job script, which a container has that the script keeps no output of its own
    for, or not yet."""
    return path.parent.name == SCRIPT


async def _entries(
    path: Path, directory: JobDirectory, container: str, wanted: Selection, *, is_following: bool
) -> AsyncGenerator[list[_Entry]]:
    """The wanted entries: first those that are there, then, when following, those that come."""
    async with _Files(directory, path) as files:
        reader = _Reader()
        present = _Tail(wanted.tail)
        async for data in files.present():
            present.extend(entry for entry in reader.feed(data) if _is_recent(entry, wanted.since))
            if wanted.tail is None:
                yield present.drain()
        yield present.drain()
        while is_following:
            is_last = await asyncio.to_thread(_is_over, directory, container, path)
            async for data in files.news():
                yield [entry for entry in reader.feed(data) if _is_recent(entry, wanted.since)]
            if is_last:
                return
            await asyncio.sleep(_LOOK_S)


class _Files:
    """The open files of one log, which may be cut into several while it is read."""

    def __init__(self, directory: JobDirectory, path: Path) -> None:
        self._directory = directory
        self._path = path
        self._files: list[BinaryIO] = []

    async def __aenter__(self) -> Self:
        """Raises NotFound; the job's user may have put a link to somebody else's file in the place of a log."""
        name = self._path.parent.name
        try:
            self._files = await asyncio.to_thread(rotation.opened, self._directory, self._path)
        except OSError as error:
            raise NotFound(f"the log of container {name!r} cannot be read: {error.strerror}") from error
        if not self._files:
            raise NotFound(f"the log of container {name!r} has gone")
        return self

    async def __aexit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    async def present(self) -> AsyncGenerator[bytes]:
        """What there is, from the oldest file on; afterwards only the newest is open."""
        while True:
            while data := await asyncio.to_thread(self._files[0].read, _READ_BYTES):
                yield data
            if len(self._files) == 1:
                return
            self._files.pop(0).close()

    async def news(self) -> AsyncGenerator[bytes]:
        """What has come since, also to files that have been begun since."""
        with contextlib.suppress(OSError):  # what the job's user has laid there is no log
            self._files += await asyncio.to_thread(rotation.opened, self._directory, self._path, after=self._files[-1])
        async for data in self.present():
            yield data


def _is_over(directory: JobDirectory, container: str, path: Path) -> bool:
    """Whether nothing will be added to this log: its run has ended, or nobody is left to write it."""
    if _is_of_script(path) and directory.log(container, 0).exists():
        return True
    state = directory.state()
    if directory.runner_process() is None or state is None:
        return True
    for status in (*state.containers, *state.init_containers):
        if status.name == container:
            is_present_run = path.stem == str(status.restart_count)
            return not (is_present_run and status.running)
    return True


class _Tail:
    """Entries on their way out; with a limit, only the last lines of them."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._lines: deque[list[_Entry]] = deque(maxlen=limit)
        self._is_line_open = False

    def extend(self, entries: Iterator[_Entry]) -> None:
        for entry in entries:
            if self._is_line_open and self._lines:
                self._lines[-1].append(entry)
            else:
                self._lines.append([entry])
            self._is_line_open = entry.is_partial

    def drain(self) -> list[_Entry]:
        entries = [entry for line in self._lines for entry in line]
        self._lines.clear()
        return entries


class _Reader:
    """Bytes of a growing file to entries; keeps the beginning of a line until its end has come, or until it is longer
    than the runner writes any: the job's user may have written others."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[_Entry]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            time, _, rest = line.partition(b" ")
            _, _, rest = rest.partition(b" ")
            flag, _, text = rest.partition(b" ")
            yield _Entry(time=time, is_partial=flag == b"P", text=text)


def _is_recent(entry: _Entry, since: datetime | None) -> bool:
    if since is None:
        return True
    return entry.time >= since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


class _Renderer:
    """Entries as text; remembers from piece to piece whether a line goes on."""

    def __init__(self, *, has_timestamps: bool) -> None:
        self._has_timestamps = has_timestamps
        self._is_line_open = False

    def render(self, entries: list[_Entry]) -> bytes:
        parts = bytearray()
        for entry in entries:
            if self._has_timestamps and not self._is_line_open:
                parts += entry.time + b" "
            parts += entry.text + (b"" if entry.is_partial else b"\n")
            self._is_line_open = entry.is_partial
        return bytes(parts)
