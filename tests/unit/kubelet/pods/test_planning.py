"""What to do for a pod: the whole table."""

import itertools

import pytest

from interlink.kubelet.pods import planning
from interlink.kubelet.pods.planning import Action, Known
from interlink.model.pods import Pod
from tests.unit.builders import pod

DELETED = {"deletionTimestamp": "2026-07-14T10:00:30Z", "deletionGracePeriodSeconds": 30}
WITH_ID = {"annotations": {"JobID": "j1"}}

STARTED = {"startTime": "2026-07-14T10:00:00Z"}

NEW, COPIED = pod(), pod(metadata=WITH_ID)
ADOPTED = pod(metadata=WITH_ID, status={"phase": "Pending"} | STARTED)
EXISTING = pod(
    metadata=WITH_ID, status={"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {}}}]}
)
MIRROR = pod(metadata=DELETED | {"annotations": {"kubernetes.io/config.mirror": "x"}})
ENDED = pod(status={"phase": "Succeeded"})
DELETING = pod(metadata=DELETED)
DELETING_ENDED = pod(metadata=DELETED | WITH_ID, status={"phase": "Failed"})


def known(**flags: bool) -> Known:
    return Known(**{"has_job": False, "has_ended": False, "is_deleting": False, "is_rejected": False} | flags)


LIVE, OVER = known(has_job=True), known(has_job=True, has_ended=True)
REJECTED = known(has_ended=True, is_rejected=True)
DYING, DEAD = known(has_job=True, is_deleting=True), known(has_job=True, is_deleting=True, has_ended=True)

TABLE: list[tuple[str, Pod, Known | None, int | None, Action]] = [
    # what                                       pod       server says   asked  action
    ("a new pod", NEW, None, None, Action.CREATE),
    ("a new pod that the server has begun", NEW, known(), None, Action.CREATE),
    ("a new pod with a job", NEW, LIVE, None, Action.PUBLISH),
    ("a new pod whose job has ended", NEW, OVER, None, Action.PUBLISH),
    ("a new pod that is rejected", NEW, REJECTED, None, Action.PUBLISH),
    ("a pod that the server deletes on its own", NEW, DYING, None, Action.PUBLISH),
    ("a pod with a job id of which nothing is heard", ADOPTED, None, None, Action.NOTHING),
    ("a pod with a job id that the server has begun", ADOPTED, known(), None, Action.NOTHING),
    ("a pod with a job id and a job", ADOPTED, LIVE, None, Action.PUBLISH),
    ("a pod with the job id of another, from a copied manifest", COPIED, None, None, Action.CREATE),
    ("a pod of an existing virtual kubelet", EXISTING, None, None, Action.NOTHING),
    ("a mirror of a static pod", MIRROR, None, None, Action.NOTHING),
    ("an ended pod", ENDED, None, None, Action.NOTHING),
    ("an ended pod with news", ENDED, LIVE, None, Action.NOTHING),
    ("a deleted pod", DELETING, None, None, Action.ASK_DELETE),
    ("a deleted pod with a job", DELETING, LIVE, None, Action.ASK_DELETE),
    ("a deleted pod that the server deletes already", DELETING, DEAD, None, Action.ASK_DELETE),
    ("a deleted pod, asked, of which nothing is heard", DELETING, None, 30, Action.NOTHING),
    ("a deleted pod, asked, not yet deleting", DELETING, OVER, 30, Action.NOTHING),
    ("a deleted pod whose job is ending", DELETING, DYING, 30, Action.PUBLISH),
    ("a deleted pod whose job has ended", DELETING, DEAD, 30, Action.REMOVE),
    ("a deleted pod whose grace was shortened", DELETING, DYING, 60, Action.ASK_DELETE),
    ("the same, although the job has ended", DELETING, DEAD, 60, Action.ASK_DELETE),
    ("a deleted ended pod", DELETING_ENDED, OVER, None, Action.ASK_DELETE),
    ("a deleted ended pod, asked", DELETING_ENDED, DEAD, 30, Action.REMOVE),
]


@pytest.mark.parametrize(
    ("pod_", "known_", "asked_grace_s", "action"),
    [row[1:] for row in TABLE],
    ids=[row[0].replace(" ", "-") for row in TABLE],
)
def test_the_action_for(pod_: Pod, known_: Known | None, asked_grace_s: int | None, action: Action) -> None:
    """One action follows from what Kubernetes has, what the server says and what has been asked."""
    assert planning.plan(pod_, known_, is_gone=False, asked_grace_s=asked_grace_s) is action


ANYTHING = [None, *(known(**dict(zip(("has_job", "has_ended", "is_deleting", "is_rejected"), bits, strict=True)))
                    for bits in itertools.product([False, True], repeat=4))]  # fmt: skip
PODS = [NEW, ADOPTED, ENDED, DELETING, DELETING_ENDED]


@pytest.mark.parametrize(
    ("known_", "asked_grace_s", "action"),
    [
        (None, None, Action.ASK_DELETE),
        (LIVE, None, Action.ASK_DELETE),
        (LIVE, 30, Action.NOTHING),
        (DYING, 30, Action.PUBLISH),
        (DEAD, 30, Action.PUBLISH),
    ],
)
def test_a_pod_whose_time_is_over(known_: Known | None, asked_grace_s: int | None, action: Action) -> None:
    """Its job ends, and the pod stays with the result."""
    assert planning.plan(ADOPTED, known_, is_gone=False, asked_grace_s=asked_grace_s, is_expired=True) is action


@pytest.mark.parametrize(("asked", "action"), [(None, Action.ASK_DELETE), (0, Action.NOTHING), (30, Action.NOTHING)])
def test_a_pod_that_has_left_kubernetes_is_deleted_once(asked: int | None, action: Action) -> None:
    """Whatever it was and whatever is known of it, its job is to end; once the server knows that, nothing is left."""
    found = {planning.plan(p, k, is_gone=True, asked_grace_s=asked) for p in PODS for k in ANYTHING}

    assert found == {action}


def every_action(pod_: Pod) -> set[Action]:
    grace = (None, 0, 30)
    return {planning.plan(pod_, k, is_gone=False, asked_grace_s=asked) for k in ANYTHING for asked in grace}


@pytest.mark.parametrize("pod_", [ADOPTED, ENDED, DELETING, DELETING_ENDED])
def test_a_pod_that_has_had_a_job_is_never_created_again(pod_: Pod) -> None:
    """Nor is one that is deleted or has ended, whatever the server says."""
    assert Action.CREATE not in every_action(pod_)


@pytest.mark.parametrize("pod_", [NEW, ADOPTED, ENDED])
def test_a_pod_that_is_not_deleted_is_never_removed(pod_: Pod) -> None:
    """Only Kubernetes decides that a pod has to go."""
    assert not {Action.REMOVE, Action.ASK_DELETE} & every_action(pod_)


@pytest.mark.parametrize("known_", [k for k in ANYTHING if k is None or not (k.has_ended and k.is_deleting)])
def test_a_pod_is_removed_only_after_its_job_has_ended(known_: Known | None) -> None:
    """Before that its object stays in Kubernetes."""
    assert planning.plan(DELETING, known_, is_gone=False, asked_grace_s=30) is not Action.REMOVE
