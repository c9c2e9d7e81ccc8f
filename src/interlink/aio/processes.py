"""Running a program to its end, within a time.

Started by posix_spawn and read on the loop, without a thread or a transport: the programs of batch systems end within
milliseconds, and hundreds of them are run a second.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_READ_BYTES = 64 * 1024
_IGNORED_BY_PYTHON = [signal.SIGPIPE, signal.SIGXFSZ]


class Finished(NamedTuple):
    exit_code: int
    stdout: bytes
    stderr: bytes


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    is_env_complete: bool = False,
    timeout_s: float,
) -> Finished:
    """Start `argv` in a group of its own, give it `stdin`, add `env` to its environment, and wait for its end.

    With `is_env_complete` it gets `env` and nothing of ours.

    Raises OSError when it cannot be started and TimeoutError when it takes too long; then, and when the caller is
    cancelled, the whole group has been killed.
    """
    environment = {**({} if is_env_complete else os.environ), **(env or {})}
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    try:
        try:
            pid = _spawned(argv, environment, stdin, out_end, err_end)
        finally:
            os.close(out_end)
            os.close(err_end)
        return await _watched(pid, out, err, timeout_s)
    finally:
        os.close(out)
        os.close(err)


def _spawned(argv: Sequence[str], environment: Mapping[str, str], stdin: bytes, out: int, err: int) -> int:
    program = shutil.which(argv[0], path=os.pathsep.join(os.get_exec_path(environment))) or argv[0]
    with _input(stdin) as given:
        ends = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate((given, out, err))]
        return os.posix_spawn(
            program, list(argv), environment, file_actions=ends, setsid=True, setsigdef=_IGNORED_BY_PYTHON
        )


@contextlib.contextmanager
def _input(data: bytes) -> Iterator[int]:
    """A file that holds the data, at its beginning."""
    if data:
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            yield file.fileno()
        return
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        yield nothing
    finally:
        os.close(nothing)


async def _watched(pid: int, out: int, err: int, timeout_s: float) -> Finished:
    outputs = _Output(out), _Output(err)
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = [await output.whole() for output in outputs]
            return Finished(await _ended(pid), stdout, stderr)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitpid, pid, 0)
        raise
    finally:
        for output in outputs:
            output.close()


class _Output:
    """What comes through a pipe until its other end is closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._is_whole: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._more)

    def _more(self) -> None:
        part = os.read(self._descriptor, _READ_BYTES)
        if part:
            self._parts.append(part)
            return
        self.close()
        if not self._is_whole.done():
            self._is_whole.set_result(None)

    async def whole(self) -> bytes:
        await self._is_whole
        return b"".join(self._parts)

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)


async def _ended(pid: int) -> int:
    """The exit code of a program that has closed its output; as a rule it has ended, or is about to."""
    pause_s = 0.0005
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222  # does not wait
        if found:
            return os.waitstatus_to_exitcode(status)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)
