"""Bytes to messages: tolerant where the existing contract is, strict where a mistake would be believed."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from interlink.model.pods import Pod
from interlink.wire import codec
from interlink.wire.codec import InvalidMessage
from interlink.wire.messages import (
    CreateAnswer,
    JobStatus,
    LogOptions,
    LogRequest,
    PingAnswer,
    PodCreateRequest,
    Problem,
    RetrievedPodData,
    Taint,
)
from tests.unit.guessing import few

ANSWER = CreateAnswer(pod_uid="u", job_id="j")
JSON = b'{"PodUID": "u", "PodJID": "j"}'
DEEP = b"[" * 100_000


@pytest.mark.parametrize("body", [JSON, b" \n" + JSON, b"[" + JSON + b"]", b" [ " + JSON + b" ] \n"])
def test_one_object_may_come_as_a_list_of_one(body: bytes) -> None:
    """Both forms are in use for creates and their answers."""
    assert codec.decode_one(body, CreateAnswer) == ANSWER


@pytest.mark.parametrize("body", [b"[]", b"[" + JSON + b"," + JSON + b"]", b"", b"null", b"[null]", b'"u"'])
def test_no_object_and_two_objects_are_not_one(body: bytes) -> None:
    """The error names the message that was expected."""
    with pytest.raises(InvalidMessage, match=r"^CreateAnswer: |^list"):
        codec.decode_one(body, CreateAnswer)


@pytest.mark.parametrize("body", [b"", b" \n", b"null", b"[]"])
def test_a_list_may_be_null_or_missing(body: bytes) -> None:
    """A null and an empty body are the empty list."""
    assert codec.decode_list(body, CreateAnswer) == []


def test_null_lists_inside_a_message_are_read() -> None:
    """Every list of the existing contract may be null."""
    nulls = b'{"pod": {}, "configmaps": null, "secrets": null, "projectedvolumesmaps": null}'
    status = b'{"name": "p", "containers": null, "initContainers": null}'

    assert codec.decode(nulls, PodCreateRequest).configmaps is None
    assert codec.decode(status, JobStatus).containers is None
    assert codec.decode(b'{"pod": {}, "container": null}', RetrievedPodData).container is None


def test_bad_entries_of_a_list_do_not_spoil_the_good_ones() -> None:
    """Each entry is read by itself; for each bad one there is a sentence."""
    good, bad = codec.decode_each(b'[{"UID": "a"}, 7, {"UID": 1}, null, {"UID": "b"}]', JobStatus)

    assert [status.uid for status in good] == ["a", "b"]
    assert len(bad) == 3
    assert "UID" in bad[1]


@pytest.mark.parametrize("body", [b'{"UID": "a"}', b"7", b"[", b'[{"UID": "a"}', b"\xff", DEEP])
def test_what_is_no_list_has_no_entries(body: bytes) -> None:
    """A broken list is an error as a whole: none of its entries is believed."""
    with pytest.raises(InvalidMessage):
        codec.decode_each(body, JobStatus)


def test_a_deeply_nested_entry_is_a_bad_entry() -> None:
    """An entry nested beyond reason is refused like any other bad one."""
    good, bad = codec.decode_each(b'[{"UID": "a", "x": ' + b"[" * 500 + b"]" * 500 + b"}]", JobStatus)

    assert len(good) + len(bad) == 1


@pytest.mark.parametrize("kind", [Pod, CreateAnswer, JobStatus, LogRequest, list[Pod]])
@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'"\xff"', DEEP, b'{"a":' * 50_000, b"NaN"])
def test_bytes_that_are_no_message_are_one_kind_of_error(kind: type, body: bytes) -> None:
    """Truncated, foreign, endlessly nested bytes and bad UTF-8: the error says which message it should have been."""
    with pytest.raises(InvalidMessage, match=r"^\w+"):
        codec.decode(body, kind)


@few
@given(st.binary(max_size=40))
def test_no_body_breaks_the_reading(body: bytes) -> None:
    """Whatever is sent is a message or an InvalidMessage."""
    for read in (codec.decode, codec.decode_one, codec.decode_list, codec.decode_each):
        with contextlib.suppress(InvalidMessage):
            read(body, Pod)


def test_the_error_names_the_place() -> None:
    """The path into the message is part of the text."""
    with pytest.raises(InvalidMessage, match=r"Pod: .*\$\.spec\.containers\[0\]\.name"):
        codec.decode(b'{"spec": {"containers": [{"name": 1}]}}', Pod)


def test_unknown_members_are_ignored() -> None:
    """A newer peer may say more than we know."""
    assert codec.decode(b'{"PodUID": "u", "PodJID": "j", "news": [1]}', CreateAnswer) == ANSWER


def test_the_opaque_part_of_a_message_travels_byte_by_byte() -> None:
    """A pod inside a message is passed on exactly as it came, spaces and order included."""
    pod = b'{ "z": 1.50, "a": "\\u00e9" }'
    request = codec.decode(b'{"pod": ' + pod + b"}", PodCreateRequest)

    assert bytes(request.pod) == pod
    assert pod in codec.encode(request)


def test_our_own_member_is_absent_unless_it_is_set() -> None:
    """Existing programs see the messages that they know."""
    assert set(msgspec.json.decode(codec.encode(RetrievedPodData(pod=Raw(b"{}"))))) == {"pod", "container", "jobConfig"}


def test_log_options_have_the_names_of_the_contract() -> None:
    """The byte limit is called `Bytes`; zero means not set."""
    written = msgspec.json.decode(codec.encode(LogRequest(options=LogOptions(limit_bytes=5))))

    assert written["Opts"] == {
        "Tail": 0, "Bytes": 5, "Timestamps": False, "Follow": False, "Previous": False, "SinceSeconds": 0,
        "SinceTime": "0001-01-01T00:00:00Z",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "taints"),
    [
        (b"{}", msgspec.UNSET),
        (b'{"taints": null}', None),
        (b'{"taints": []}', []),
        (b'{"taints": [{"key": "k", "effect": "NoSchedule"}]}', [Taint(key="k", effect="NoSchedule")]),
    ],
)
def test_absent_taints_are_not_empty_taints(body: bytes, taints: object) -> None:
    """A ping that does not mention taints leaves them; an empty list clears them."""
    assert codec.decode(body, PingAnswer).taints == taints


def test_a_problem_is_a_kind_and_a_sentence() -> None:
    """The body of every error answer of ours."""
    assert codec.decode(codec.problem("rejected", "no such image"), Problem) == Problem("rejected", "no such image")
