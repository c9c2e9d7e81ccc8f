"""A controller that makes a rejected pod again and again is slowed down (T13)."""

import msgspec

from interlink.kubelet.pods.rejections import Rejections
from tests.unit.builders import document


class Clock:
    now = 1000.0


def raw(controller: str | None = "rs") -> bytes:
    owners = [{"uid": "someone"}, {"uid": controller, "controller": True}] if controller else []
    return msgspec.json.encode(document(metadata={"ownerReferences": owners}))


def made() -> tuple[Rejections, Clock]:
    clock = Clock()
    return Rejections(lambda: clock.now), clock


def test_the_next_pod_of_the_same_controller_waits() -> None:
    """Others do not."""
    rejections, _ = made()
    rejections.note(raw())

    assert rejections.wait_s(raw()) > 0
    assert rejections.wait_s(raw("another")) == 0
    assert rejections.wait_s(raw(None)) == 0


def test_each_further_rejection_makes_it_wait_longer() -> None:
    """Up to five minutes."""
    rejections, clock = made()
    waits = []
    for _ in range(12):
        rejections.note(raw())
        waits.append(rejections.wait_s(raw()))
        clock.now += waits[-1]

    assert waits[3] > 2 * waits[0]
    assert 150 <= waits[-1] <= 300


def test_many_pods_rejected_at_once_count_as_one() -> None:
    """A Deployment of a hundred replicas does not wait for ever."""
    rejections, _ = made()
    for _ in range(100):
        rejections.note(raw())

    assert rejections.wait_s(raw()) <= 2


def test_an_accepted_pod_ends_the_waiting() -> None:
    """The cause is gone."""
    rejections, _ = made()
    rejections.note(raw())
    rejections.forgive(raw())

    assert rejections.wait_s(raw()) == 0


def test_a_pod_without_a_controller_never_waits() -> None:
    """Nobody makes it again."""
    rejections, _ = made()
    rejections.note(raw(None))

    assert rejections.wait_s(raw(None)) == 0
