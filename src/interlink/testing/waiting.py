"""Polling with a deadline, for synchronous tests: the one place in the test-bed that sleeps."""

import time
from collections.abc import Callable


def until(check: Callable[[], bool], *, deadline_s: float, interval_s: float = 0.05) -> bool:
    """Ask until the check holds: True then, False once the deadline has passed. Always asks at least once."""
    end = time.monotonic() + deadline_s
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(interval_s)
    return True
