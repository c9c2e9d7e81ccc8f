"""While creates wait, news of running pods wait too, a little: the API server does one thing at a time, and a job id in
Kubernetes is worth more than a phase some seconds sooner. What comes next of the same pod is then the same write."""

import asyncio
from collections.abc import Callable

from interlink.model.pods import Pod
from interlink.wire.messages import Change

PATIENCE_S = 8.0
"""What is younger is put aside."""

AGAIN_S = 2.0
"""How long at most until its age is looked at again: so nothing waits for more than both together."""


class Deferred:
    """Pods that were put aside; `again(uid)` is called for each by `resume`, or after a while."""

    def __init__(self, again: Callable[[str], None]) -> None:
        self._again = again
        self._uids: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def put(self, uid: str) -> None:
        self._uids[uid] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(AGAIN_S, self.resume)

    def resume(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        uids, self._uids = self._uids, {}
        for uid in uids:
            self._again(uid)


def can_wait(pod: Pod, change: Change, *, age_s: float) -> bool:
    """Not what ends a pod, nor a job id, nor what is `age_s` seconds old already."""
    is_final = change.has_ended or change.rejected is not None or pod.is_deleting
    has_id = pod.own_job_id is not None and pod.own_job_id == change.status.job_id
    return has_id and not is_final and age_s < PATIENCE_S
