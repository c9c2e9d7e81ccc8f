"""What all programs share: run the background loops until a signal comes."""

import asyncio
from collections.abc import Coroutine

import structlog

from interlink.kube.errors import KubeError
from interlink.sdk import hosting
from interlink.sdk.errors import SDKError
from interlink.server.errors import ServerError

log = structlog.get_logger(__name__)


def log_failure(name: str, error: Exception) -> None:
    log.error("loop.failed", loop=name, error=repr(error), exc_info=error)


def log_trouble(name: str, error: Exception) -> None:
    """Trouble with the other side is expected: one line, no traceback."""
    if not isinstance(error, SDKError | KubeError | ServerError):
        log_failure(name, error)
        return
    log.warning("loop.trouble", loop=name, error=str(error))


async def until_stopped(*loops: Coroutine[None, None, None]) -> None:
    """Run `loops` until SIGTERM or SIGINT, then cancel them and wait for their end.

    A loop that ends by an error ends the program with that error.
    """
    tasks = [asyncio.create_task(loop, name=f"loop-{number}") for number, loop in enumerate(loops)]
    stopped = asyncio.create_task(hosting.until_stopped(), name="signals")
    try:
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (stopped, *tasks):
            task.cancel()
        await asyncio.gather(stopped, *tasks, return_exceptions=True)
