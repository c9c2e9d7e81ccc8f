"""What an existing virtual kubelet is told: never an end that is none."""

import msgspec
import pytest

from interlink.model import records
from interlink.model.ids import JobID
from interlink.model.pods import Pod
from interlink.model.records import Record
from interlink.server import answering
from tests.unit.builders import NOW, ended, pod, raws, record, running

ONE, TWO = pod(), pod(containers=[{"name": "c"}, {"name": "d"}])


def begun(of: Pod) -> Record:
    return records.begun(of, record().owner, NOW)


def accepted(of: Pod) -> Record:
    return records.accepted(begun(of), JobID("j1"), NOW)


def states(item: Record) -> list[tuple[str, str, str | None]] | None:
    """Name, kind and reason of each container's state."""
    status = answering.status(item, "no route to host")
    if status is None:
        return None
    found = [msgspec.json.decode(raw) for raw in status.containers or []]
    return [(c["name"], kind, s.get("reason")) for c in found for kind, s in c["state"].items()]


DELETED = records.deleting(begun(ONE), ONE, NOW)
ANSWERS = [
    # what                         record                                           states
    ("a create that waits", begun(TWO), [("c", "waiting", "SiteUnreachable"), ("d", "waiting", "SiteUnreachable")]),
    ("a job nobody has told of yet", accepted(ONE), [("c", "waiting", "ContainerCreating")]),
    (
        "a job that is told of in part",
        records.observed(accepted(TWO), raws(ended()), [], "j1", NOW),
        [("c", "terminated", None), ("d", "waiting", "ContainerCreating")],
    ),
    ("a job that runs", records.observed(accepted(ONE), raws(running()), [], "j1", NOW), [("c", "running", None)]),
    (
        "a job that has ended",
        records.observed(accepted(ONE), raws(ended()), [], "j1", NOW),
        [("c", "terminated", None)],
    ),
    ("a rejected pod", records.rejected(begun(ONE), "no", NOW), [("c", "terminated", "JobRejected")]),
    ("a pod that is being deleted", DELETED, [("c", "waiting", "ContainerCreating")]),
    ("a pod that was deleted before it had a job", records.settled(DELETED, NOW), None),
]


@pytest.mark.parametrize(("item", "expected"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_the_answer_about(item: Record, expected: list[tuple[str, str, str | None]] | None) -> None:
    """Every container is in it, for an empty or short list reads as the end of the pod there."""
    assert states(item) == expected


def test_a_create_that_waits_says_why() -> None:
    """The trouble is in the message; a rejection has the site's own words."""
    waiting = answering.status(begun(ONE), "no route to host")
    rejected = answering.status(records.rejected(begun(ONE), "no such queue", NOW), "")

    assert waiting is not None
    assert b"no route to host" in bytes((waiting.containers or [])[0])
    assert rejected is not None
    assert b"no such queue" in bytes((rejected.containers or [])[0])
