"""A controller that makes a rejected pod again and again is slowed down (T13)."""

from interlink.kubelet.pods.rejections import Rejections
from interlink.model.pods import Pod
from tests.unit.builders import pod


class Clock:
    now = 1000.0


def owned(controller: str | None = "rs") -> Pod:
    owners = [{"uid": "someone"}, {"uid": controller, "controller": True}] if controller else []
    return pod(metadata={"ownerReferences": owners})


def made() -> tuple[Rejections, Clock]:
    clock = Clock()
    return Rejections(lambda: clock.now), clock


def test_the_next_pod_of_the_same_controller_waits() -> None:
    """Others do not."""
    rejections, _ = made()
    rejections.note(owned())

    assert rejections.wait_s(owned()) > 0
    assert rejections.wait_s(owned("another")) == 0
    assert rejections.wait_s(owned(None)) == 0


def test_each_further_rejection_makes_it_wait_longer() -> None:
    """Up to five minutes."""
    rejections, clock = made()
    waits = []
    for _ in range(12):
        rejections.note(owned())
        waits.append(rejections.wait_s(owned()))
        clock.now += waits[-1]

    assert waits[3] > 2 * waits[0]
    assert 150 <= waits[-1] <= 300


def test_many_pods_rejected_at_once_count_as_one() -> None:
    """A Deployment of a hundred replicas does not wait for ever."""
    rejections, _ = made()
    for _ in range(100):
        rejections.note(owned())

    assert rejections.wait_s(owned()) <= 2


def test_an_accepted_pod_ends_the_waiting() -> None:
    """The cause is gone."""
    rejections, _ = made()
    rejections.note(owned())
    rejections.forgive(owned())

    assert rejections.wait_s(owned()) == 0


def test_a_pod_without_a_controller_never_waits() -> None:
    """Nobody makes it again."""
    rejections, _ = made()
    rejections.note(owned(None))

    assert rejections.wait_s(owned(None)) == 0
