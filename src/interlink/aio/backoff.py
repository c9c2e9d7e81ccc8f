"""Delays between attempts: growing, jittered, forgotten after a success."""

import random

_JITTER = random.Random()  # noqa: S311 -- no secret; to seed one for each would cost more than what it delays


class Backoff:
    """Seconds to wait before the next attempt; doubles from `base_s` to `cap_s`, with jitter."""

    def __init__(self, base_s: float = 0.2, cap_s: float = 30.0, *, rng: random.Random | None = None) -> None:
        self._base_s = base_s
        self._cap_s = cap_s
        self._failures = 0
        self._rng = rng or _JITTER

    def next_s(self) -> float:
        ceiling: float = min(self._cap_s, self._base_s * 2 ** min(self._failures, 30))
        self._failures += 1
        return ceiling * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        self._failures = 0
