"""Answers that hold for a while, so that not every request becomes a question to Kubernetes."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memory(Generic[K, V]):
    """At most `size` answers; the one that was kept first is forgotten first when it is full."""

    def __init__(self, *, size: int = 4096, now: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._now = now
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def recall(self, key: K) -> tuple[V] | None:
        """The answer, in a tuple because it may be None itself; None when there is none that still holds."""
        found = self._kept.get(key)
        if found is None or found[0] <= self._now():
            self._kept.pop(key, None)
            return None
        return (found[1],)

    def keep(self, key: K, value: V, *, for_s: float) -> None:
        self._kept.pop(key, None)
        self._kept[key] = (self._now() + for_s, value)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
