"""Which container states prove that a job is over, and that it succeeded."""

import msgspec
import pytest

from interlink.model import statuses
from tests.unit import builders
from tests.unit.builders import Document, ended, running, silent, waiting

HAVE_ENDED = [
    # what                                       containers                     init                 policy     ended
    ("an empty list proves nothing", [], [], "Never", False),
    ("one container, ended", [ended()], [], "Never", True),
    ("one container, failed", [ended(exit_code=1)], [], "Never", True),
    ("an ended one that would be restarted", [ended(exit_code=1)], [], "Always", True),
    ("running", [running()], [], "Never", False),
    ("waiting", [waiting()], [], "Never", False),
    ("no state", [silent()], [], "Never", False),
    ("a failed init container and nothing else", [], [ended("i", 1)], "Never", True),
    ("the same, and the container waits", [waiting()], [ended("i", 1)], "Never", True),
    ("the same, and no state", [silent()], [ended("i", 1)], "Never", True),
    ("an init container that will be tried again", [waiting()], [ended("i", 1)], "OnFailure", False),
    ("the same with Always", [waiting()], [ended("i", 1)], "Always", False),
    ("a failed init container while another runs", [waiting()], [ended("i", 1), running("s")], "Never", False),
    ("a failed sidecar while the container runs", [running()], [ended("s", 1)], "Never", False),
    ("a good init container", [waiting()], [ended("i")], "Never", False),
    ("ended, with a sidecar that still runs", [ended()], [running("s")], "Never", True),
]


@pytest.mark.parametrize(
    ("containers", "init", "policy", "expected"), [row[1:] for row in HAVE_ENDED], ids=[row[0] for row in HAVE_ENDED]
)
def test_a_job_with_one_container_is_over_when(
    containers: list[Document], init: list[Document], policy: str, expected: bool
) -> None:
    """A job is over when each container has terminated, or when an init container has failed for good."""
    main, before = builders.statuses(*containers), builders.statuses(*init)

    assert statuses.have_ended(main, before, expected=1, restart_policy=policy) is expected


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([ended("a")], False),
        ([ended("a"), running("b")], False),
        ([ended("a"), silent("b")], False),
        ([ended("a"), ended("b", 3)], True),
        ([ended("a"), ended("b"), ended("c")], True),
        ([ended("a"), ended("b"), running("c")], False),
    ],
)
def test_a_short_list_proves_nothing(containers: list[Document], expected: bool) -> None:
    """Of two containers both must be told to have terminated."""
    main = builders.statuses(*containers)

    assert statuses.have_ended(main, [], expected=2, restart_policy="Never") is expected


def test_a_pod_without_containers_is_never_over() -> None:
    """Where nothing is expected, nothing can have ended."""
    assert not statuses.have_ended([], [], expected=0, restart_policy="Never")


@pytest.mark.parametrize(
    ("containers", "expected"),
    [([], False), ([ended()], True), ([ended(), ended("d", 1)], False), ([ended(), running("d")], False)],
)
def test_a_job_succeeded_when_every_container_ended_with_zero(containers: list[Document], expected: bool) -> None:
    """One failed or unfinished container is enough for no success, and so is an empty list."""
    assert statuses.is_success(builders.statuses(*containers)) is expected


def test_r12_an_end_without_an_exit_code_is_no_success() -> None:
    """Removed by an administrator, as HTCondor tells it; the pod must not read as succeeded."""
    found = statuses.read(b'{"name": "c", "state": {"terminated": {"reason": "Removed"}}}')

    assert statuses.have_ended([found], [], expected=1, restart_policy="Never")
    assert not statuses.is_success([found])
    assert statuses.exit_codes([found]) == [137]


def test_an_end_whose_exit_code_is_null_says_nothing() -> None:
    """It cannot be read, and what cannot be read ends no job."""
    with pytest.raises(msgspec.ValidationError):
        statuses.read(b'{"name": "c", "state": {"terminated": {"exitCode": null}}}')


def test_exit_codes_come_in_the_order_of_the_containers() -> None:
    """A container that has not ended has no exit code."""
    assert statuses.exit_codes(builders.statuses(ended("a", 3), running("b"), ended("c"))) == [3, 0]


@pytest.mark.parametrize("entry", [b"1", b"[]", b'"c"', b'{"name": 1}', b'{"state": []}', b"{"])
def test_an_entry_that_is_no_container_status_is_an_error(entry: bytes) -> None:
    """What a plugin sends instead of a container status is refused, not read as an empty one."""
    with pytest.raises(msgspec.MsgspecError):
        statuses.read(entry)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"name": "c"}, False),
        ({"name": "c", "state": None}, False),
        (silent(), False),
        (waiting(), True),
        (ended(), True),
    ],
)
def test_a_status_without_a_state_says_nothing(entry: Document, expected: bool) -> None:
    """Absent, null and empty states all mean: nothing is known."""
    assert builders.status(entry).says_something is expected
