"""Tests in which an hour passes at once."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import looptime

P = ParamSpec("P")


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test in a loop of its own, whose time jumps to the next moment at which something is to happen."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
            runner.run(test(*args, **kwargs))

    return run
