"""The server's side of a plugin: the Plugin protocol's calls over HTTP, in the existing wire dialect."""

import contextlib
from collections.abc import AsyncIterator, Sequence

import msgspec
from aiohttp import hdrs

from interlink.model.ids import JobID, PodUID
from interlink.model.pods import Pod
from interlink.sdk.errors import OutcomeUnknown
from interlink.sdk.transport import Link
from interlink.wire import codec, messages
from interlink.wire.messages import (
    ContainerUsage,
    CreateAnswer,
    Job,
    JobStatus,
    LogRequest,
    Refresh,
    RetrievedPodData,
    UsageRequest,
)

CREATE_TIMEOUT_S = 120.0
CALL_TIMEOUT_S = 30.0
# Until a log begins, as long as the existing server waits: some plugins answer only when the first line is there.
LOG_TIMEOUT_S = 120.0


class Statuses(msgspec.Struct, frozen=True):
    """`unreadable`: a sentence for each entry that is no status. `tag`: of this answer, where the plugin gives one.
    `has_waited`: the plugin has waited for news as it was asked to. `is_unchanged`: the answer is that of the tag in
    the question, and not repeated."""

    answers: list[JobStatus] = []
    unreadable: list[str] = []
    tag: str = ""
    has_waited: bool = False
    is_unchanged: bool = False


class PluginClient:
    """Calls a plugin in any language. Errors are those of `interlink.sdk.errors`; every call is bounded in time.

    takes_lists: a create is sent as a list of one, as older plugins want it.
    """

    def __init__(self, link: Link, *, takes_lists: bool = False) -> None:
        self._link = link
        self._takes_lists = takes_lists

    async def close(self) -> None:
        await self._link.close()

    async def create(self, request: RetrievedPodData, *, session: str = "") -> JobID:
        """Not idempotent with every plugin: after OutcomeUnknown ask `status` before calling again."""
        message = codec.encode([request] if self._takes_lists else request)
        body = await self._link.call("POST", "/create", message, timeout_s=CREATE_TIMEOUT_S, session=session)
        try:
            answer = codec.decode_one(body, CreateAnswer)
        except codec.InvalidMessage as error:
            raise OutcomeUnknown(f"the plugin's answer to /create cannot be read: {error}") from error
        if not answer.job_id:
            raise OutcomeUnknown("the plugin answered /create without a job id (PodJID)")
        return JobID(answer.job_id)

    async def delete(self, pod: bytes, *, session: str = "") -> None:
        """`pod` is the pod as the virtual kubelet sent it, or its skeleton when the call is repeated later."""
        await self._link.call("POST", "/delete", pod, timeout_s=CALL_TIMEOUT_S, session=session)

    async def status(self, pods: Sequence[Pod], *, tag: str = "", wait_s: int = 0) -> Statuses:
        """The answers for the pods that the plugin mentions.

        With the `tag` of the last answer to the same question, a plugin that can waits up to `wait_s` seconds for
        another answer. Raises OutcomeUnknown for an answer that is no list: it says nothing about any pod.
        """
        headers = {hdrs.IF_NONE_MATCH: tag, messages.PREFER_HEADER: f"wait={wait_s}"} if tag else None
        reply = await self._link.ask(
            "GET", "/status", codec.encode(list(pods)), timeout_s=CALL_TIMEOUT_S + wait_s, headers=headers
        )
        tag = reply.headers.get(hdrs.ETAG, "")
        has_waited = messages.PREFERENCE_APPLIED_HEADER in reply.headers
        if reply.is_unchanged:
            return Statuses(tag=tag, has_waited=has_waited, is_unchanged=True)
        try:
            answers, unreadable = codec.decode_each(reply.body, JobStatus)
        except codec.InvalidMessage as error:
            raise OutcomeUnknown(f"the plugin's answer to /status cannot be read: {error}") from error
        return Statuses(answers=answers, unreadable=unreadable, tag=tag, has_waited=has_waited)

    @contextlib.asynccontextmanager
    async def logs(self, request: LogRequest, *, session: str = "") -> AsyncIterator[AsyncIterator[bytes]]:
        """Once it has begun it may be silent for as long as nothing is written."""
        async with self._link.stream(
            "GET", "/getLogs", codec.encode(request), timeout_s=LOG_TIMEOUT_S, session=session
        ) as chunks:
            yield chunks

    async def ping(self) -> bytes:
        """The plugin's answer to an empty status question, as it came."""
        return await self._link.call("GET", "/status", b"[]", timeout_s=CALL_TIMEOUT_S)

    async def jobs(self) -> list[Job]:
        """Every job of ours at the batch system. Raises NotFound where the plugin does not speak our dialect."""
        body = await self._link.call("POST", messages.JOBS, b"{}", timeout_s=CALL_TIMEOUT_S)
        try:
            return codec.decode_list(body, Job)
        except codec.InvalidMessage as error:
            raise OutcomeUnknown(f"the plugin's answer to {messages.JOBS} cannot be read: {error}") from error

    async def refresh(self, message: Refresh) -> None:
        """Idempotent. Raises NotFound where the plugin cannot, or has no such job."""
        await self._link.call("POST", messages.REFRESH, codec.encode(message), timeout_s=CALL_TIMEOUT_S)

    async def usage(self, pods: Sequence[PodUID]) -> list[ContainerUsage]:
        """What these pods' running containers use. Raises NotFound where the plugin does not know."""
        message = UsageRequest(pods=list(pods))
        body = await self._link.call("POST", messages.USAGE, codec.encode(message), timeout_s=CALL_TIMEOUT_S)
        try:
            return codec.decode_list(body, ContainerUsage)
        except codec.InvalidMessage as error:
            raise OutcomeUnknown(f"the plugin's answer to {messages.USAGE} cannot be read: {error}") from error
