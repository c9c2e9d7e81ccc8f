"""Controllers replace a pod that failed, at once and for ever: after a rejection the next pod of the same controller
waits before it is tried, longer each time."""

from collections.abc import Callable

from interlink.aio.backoff import Backoff
from interlink.model.pods import Pod

REASON = "RejectedBackOff"
"""Why such a pod waits."""

_BASE_S = 2.0
_CAP_S = 300.0
_FORGET_S = 900.0


class _History:
    def __init__(self) -> None:
        self.delays = Backoff(_BASE_S, _CAP_S)
        self.last = 0.0
        self.until = 0.0


class Rejections:
    """By controller; memory only, for a restart may well try once more."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._histories: dict[str, _History] = {}

    def wait_s(self, pod: Pod) -> float:
        """How long a pod has to wait before it is tried; 0 for at once."""
        history = self._histories.get(_controller(pod))
        return max(0.0, history.until - self._now()) if history else 0.0

    def note(self, pod: Pod) -> None:
        """A pod has been rejected; many at once count as one."""
        controller, now = _controller(pod), self._now()
        if not controller:
            return
        for old in [uid for uid, known in self._histories.items() if now - known.last > _FORGET_S]:
            del self._histories[old]
        history = self._histories.setdefault(controller, _History())
        history.last = now
        if now >= history.until:
            history.until = now + history.delays.next_s()

    def forgive(self, pod: Pod) -> None:
        """A pod of the same controller has been accepted."""
        self._histories.pop(_controller(pod), None)


def _controller(pod: Pod) -> str:
    return next((owner.uid for owner in pod.metadata.owner_references or [] if owner.controller), "")
