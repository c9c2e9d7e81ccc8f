"""A circuit breaker: after several failures in a row nothing is tried for a while, then one call at a time."""

import time
from collections.abc import Callable

from interlink.aio.backoff import Backoff


class Breaker:
    """Closed, it lets calls through. Open, it refuses them until the pause is over; then a single call may try, and
    its outcome closes it or opens it again for a longer pause."""

    def __init__(self, *, threshold: int = 5, clock: Callable[[], float] = time.monotonic) -> None:
        self._threshold = threshold
        self._clock = clock
        self._delays = Backoff(base_s=0.5, cap_s=5.0)
        self._failures = 0
        self._closed_again_at = 0.0
        self._is_trying = False
        self._last_failure = ""

    @property
    def is_open(self) -> bool:
        return self._failures >= self._threshold

    @property
    def reason(self) -> str:
        return f"not asked after {self._failures} failures in a row, the last: {self._last_failure}"

    def refusal(self) -> str:
        """Why a call may not be made now; empty when it may, and then it must be reported as a success or failure."""
        if not self.is_open:
            return ""
        wait_s = self._closed_again_at - self._clock()
        if wait_s > 0 or self._is_trying:
            return self.reason
        self._is_trying = True
        return ""

    def succeeded(self) -> None:
        self._failures = 0
        self._is_trying = False
        self._delays.reset()

    def failed(self, reason: str) -> None:
        """A failure of a call that was on its way when the breaker opened does not lengthen the pause."""
        was_trial, self._is_trying = self._is_trying, False
        self._failures += 1
        self._last_failure = reason
        if was_trial or self._failures == self._threshold:
            self._closed_again_at = self._clock() + self._delays.next_s()

    def gave_up(self) -> None:
        """The call was cancelled: it proves nothing."""
        self._is_trying = False
