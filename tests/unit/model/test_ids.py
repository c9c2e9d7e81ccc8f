"""Names of pods, jobs and owners: what is taken, and what a tag carries."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlink.model import ids
from interlink.model.errors import InvalidID
from interlink.model.ids import PodUID, Tag
from tests.unit.guessing import few

LETTERS = string.ascii_letters + string.digits
clusters = st.text(LETTERS + "_.", min_size=1, max_size=60)
uids = st.builds("".join, st.tuples(st.sampled_from(LETTERS), st.text(LETTERS + "-", max_size=63)))


@few
@given(cluster=clusters, uid=uids, attempt=st.integers(min_value=0, max_value=10**9))
def test_a_tag_reads_back_as_it_was_written(cluster: str, uid: str, attempt: int) -> None:
    """Cluster, pod UID and attempt survive the way through a job name, whatever they are."""
    tag = Tag(cluster=cluster, pod_uid=PodUID(uid), attempt=attempt)

    assert ids.parse_tag(str(tag)) == tag


@few
@given(cluster=st.text(LETTERS + "-", min_size=1, max_size=40), uid=uids)
def test_an_owner_with_dashes_makes_a_tag_that_reads_back(cluster: str, uid: str) -> None:
    """A cluster's dashes are dropped, so that they cannot be taken for the end of a field of the tag."""
    try:
        owner = ids.owner(cluster, "vk")
    except InvalidID:
        return

    tag = Tag(cluster=owner.cluster, pod_uid=PodUID(uid), attempt=0)
    assert ids.parse_tag(str(tag)) == tag


@pytest.mark.parametrize(
    "name",
    ["", "il-", "il-c-uid", "il-c-uid-a", "il-c-uid-ax", "xil-c-uid-a0", "il-c-uid-a0 ", "il-c-uid-a0\n", "il--uid-a0"],
)
def test_a_foreign_job_name_is_no_tag(name: str) -> None:
    """A job whose name is not exactly a tag is not ours."""
    assert ids.parse_tag(name) is None


@few
@given(st.text())
def test_no_job_name_breaks_the_reading(name: str) -> None:
    """Whatever a job is called, its name either is a tag or is none."""
    tag = ids.parse_tag(name)

    assert tag is None or ids.parse_tag(str(tag)) == tag


@few
@given(uids)
def test_letters_digits_and_dashes_make_a_pod_uid(uid: str) -> None:
    """A pod UID is 1 to 64 letters, digits or dashes and does not begin with a dash."""
    assert ids.pod_uid(uid) == uid


@pytest.mark.parametrize(
    "uid",
    ["", "-a", ".", "..", "../etc/passwd", "a/b", "a\\b", "a b", "a\n", "a\0b", "~", "$(id)", "ä", "٣", "a" * 65],
)
def test_a_hostile_pod_uid_is_refused(uid: str) -> None:
    """A pod UID becomes a file name and part of a job name: nothing else than letters, digits and dashes passes."""
    with pytest.raises(InvalidID, match="invalid pod UID"):
        ids.pod_uid(uid)


@pytest.mark.parametrize(("cluster", "node"), [("", "vk"), ("c", ""), ("a b", "vk"), ("c", "n/../m"), ("c", "n\n")])
def test_an_owner_needs_two_plain_names(cluster: str, node: str) -> None:
    """The error of a bad owner names the field that is bad."""
    with pytest.raises(InvalidID, match=r"invalid (cluster|node) name"):
        ids.owner(cluster, node)
