"""Named places at which a crash test may stop the process; off by default.

`INTERLINK_FAILPOINTS="server.intent.after=kill@3,vk.publish.before=delay:2"` kills the process with SIGKILL
at the third time the step `server.intent` has been done, and waits two seconds each time before `vk.publish`.
Actions: `kill` and `delay:SECONDS`; `@N` acts at the N-th hit only (default 1 for kill, every hit for delay).
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping


class Failpoints:
    """The points switched on in one process; an empty set costs one dictionary look-up a step."""

    def __init__(self, specification: str) -> None:
        self._actions = dict(_parse(part) for part in specification.split(",") if part.strip())
        self._hits: dict[str, int] = {}

    def hit(self, name: str) -> None:
        action = self._actions.get(name)
        if action is None:
            return
        self._hits[name] = count = self._hits.get(name, 0) + 1
        verb, at_hit = action
        if at_hit not in (None, count):
            return
        if verb == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(verb.removeprefix("delay:")))


def _parse(part: str) -> tuple[str, tuple[str, int | None]]:
    """`name.before=kill@3` -> (name.before, (kill, 3)). Raises ValueError naming the part."""
    name, equals, action = part.strip().partition("=")
    verb, _, count = action.partition("@")
    is_known = verb == "kill" or _is_delay(verb)
    is_counted = not count or (count.isdecimal() and int(count) > 0)
    if not equals or not is_known or not is_counted or not name.endswith((".before", ".after")):
        raise ValueError(f"INTERLINK_FAILPOINTS: {part!r} is not NAME.before|after=kill[@N] or delay:SECONDS[@N]")
    return name, (verb, int(count) if count else (1 if verb == "kill" else None))


def _is_delay(verb: str) -> bool:
    return re.fullmatch(r"delay:\d+(\.\d+)?", verb) is not None


_points = Failpoints("")


def configure(environment: Mapping[str, str]) -> None:
    """Switch on what `INTERLINK_FAILPOINTS` names. Raises ValueError for a point that cannot be read."""
    global _points
    _points = Failpoints(environment.get("INTERLINK_FAILPOINTS", ""))


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Mark a step of a protocol: a test can kill the process before it or right after it succeeded."""
    _points.hit(f"{name}.before")
    yield
    _points.hit(f"{name}.after")
