"""Running a program to its end, within a time."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple


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
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**({} if is_env_complete else os.environ), **(env or {})},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            stdout, stderr = await process.communicate(stdin or None)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    assert process.returncode is not None
    return Finished(process.returncode, stdout, stderr)
