"""Answers of a server, in both dialects."""

from typing import TypeVar

from interlink.model.ids import JobID
from interlink.model.pods import Pod
from interlink.sdk.client import CREATE_TIMEOUT_S, LOG_TIMEOUT_S
from interlink.sdk.errors import OutcomeUnknown
from interlink.wire import codec
from interlink.wire.messages import CreateAnswer

CREATE_WITHIN_S = CREATE_TIMEOUT_S + 10
LOG_WITHIN_S = LOG_TIMEOUT_S + 10
"""A server that waits for its plugin as long as it may still has an answer of its own."""

M = TypeVar("M")


def read(body: bytes, kind: type[M]) -> M:
    """Raises OutcomeUnknown for what cannot be read."""
    try:
        return codec.decode_one(body, kind)
    except codec.InvalidMessage as error:
        raise OutcomeUnknown(f"the server's answer cannot be read: {error}") from error


def job_id(answer: CreateAnswer, pod: Pod) -> JobID:
    """Raises OutcomeUnknown for an answer about another pod, and for one without an id."""
    if answer.pod_uid not in ("", pod.uid) or not answer.job_id:
        raise OutcomeUnknown(f"the server's answer to /create is for {answer.pod_uid!r}, id {answer.job_id!r}")
    return JobID(answer.job_id)
