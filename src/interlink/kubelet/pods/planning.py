"""What to do for one pod, given what Kubernetes and the server say of it; pure."""

import enum

import msgspec

from interlink.model.pods import Pod


class Known(msgspec.Struct, frozen=True):
    """What the server says of a pod's job."""

    has_job: bool
    has_ended: bool
    is_deleting: bool
    is_rejected: bool


class Action(enum.Enum):
    NOTHING = "nothing"
    CREATE = "create"
    PUBLISH = "publish"
    ASK_DELETE = "ask the server to delete"
    REMOVE = "publish the end, then remove the pod object"


def plan(
    pod: Pod, known: Known | None, *, is_gone: bool, asked_grace_s: int | None, is_expired: bool = False
) -> Action:
    """`is_gone`: the object has left Kubernetes. `asked_grace_s`: the grace period of the deletion that the server has
    confirmed, None when it has confirmed none. `is_expired`: the pod's time is over, so its job ends and the pod stays.

    Deleting wins over everything; a terminal pod is only read; a pod with a job id is never created again.
    """
    if pod.is_mirror:
        return Action.NOTHING
    if is_gone:
        return Action.ASK_DELETE if asked_grace_s is None else Action.NOTHING
    if pod.is_deleting:
        return _plan_deletion(pod, known, asked_grace_s)
    if pod.is_terminal:
        return Action.NOTHING
    if is_expired:
        action = _plan_deletion(pod, known, asked_grace_s)
        return Action.PUBLISH if action is Action.REMOVE else action
    if known is not None and (known.has_job or known.is_rejected or known.is_deleting):
        return Action.PUBLISH
    return Action.CREATE if pod.own_job_id is None else Action.NOTHING


def _plan_deletion(pod: Pod, known: Known | None, asked_grace_s: int | None) -> Action:
    if asked_grace_s is None or pod.grace_s < asked_grace_s:
        return Action.ASK_DELETE
    if known is None or not known.is_deleting:
        return Action.NOTHING
    return Action.REMOVE if known.has_ended else Action.PUBLISH
