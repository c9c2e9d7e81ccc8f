"""A server that speaks our dialect."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence

from msgspec import Raw

from interlink.kubelet.dialects import answers
from interlink.model.ids import JobID, Owner
from interlink.model.pods import Pod, PodSpec, offloaded, skeleton
from interlink.sdk.client import CALL_TIMEOUT_S
from interlink.sdk.errors import NotFound, OutcomeUnknown
from interlink.sdk.transport import Link
from interlink.wire import codec, messages
from interlink.wire.messages import (
    Announcement,
    AnnouncementAnswer,
    Changes,
    ChangesRequest,
    ContainerUsage,
    CreateAnswer,
    KnownPod,
    LogRequest,
    PodCreateRequest,
    Refresh,
    UsageRequest,
)


class Remote:
    """Implements `Server`.

    Before each call that changes something `may_act` is called and may raise to forbid it.
    """

    def __init__(self, link: Link, owner: Owner, *, may_act: Callable[[], None]) -> None:
        self._link = link
        self._owner = owner
        self._may_act = may_act
        self._numbers = itertools.count(1)

    async def create(self, request: PodCreateRequest, pod: Pod) -> JobID:
        """Idempotent: repeat it until the answer is definitive."""
        self._may_act()
        body = await self._call(
            "POST", "/create", codec.encode(request), "CreatePod", timeout_s=answers.CREATE_WITHIN_S
        )
        return answers.job_id(answers.read(body, CreateAnswer), pod)

    async def delete(self, pod: Pod) -> None:
        """Idempotent. Returns when the deletion is durable at the server; the job may still be ending."""
        self._may_act()
        await self._call("DELETE", "/delete", codec.encode(pod), "DeletePod")

    async def announce(self, pods: Sequence[Pod], *, epoch: str, revision: int) -> AnnouncementAnswer:
        """Tell the complete list of the node's pods, made after the changes up to `revision` had been told.

        The server adopts those that it does not know, and deletes what we had been told and is not in the list.
        """
        self._may_act()
        known = [KnownPod(pod=skeleton(offloaded(pod)), job_id=pod.own_job_id) for pod in pods if not pod.is_mirror]
        message = Announcement(owner=self._owner, pods=known, epoch=epoch, revision=revision)
        return answers.read(
            await self._call("POST", messages.ANNOUNCE, codec.encode(message), "Announce", timeout_s=120),
            AnnouncementAnswer,
        )

    async def changes(self, epoch: str, since: int, *, pods: Sequence[Pod], wait_s: float) -> Changes:
        """The server knows which pods are ours."""
        message = ChangesRequest(owner=self._owner, epoch=epoch, since=since, wait_s=wait_s)
        body = await self._call(
            "POST", messages.CHANGES, codec.encode(message), "GetStatus", timeout_s=wait_s + CALL_TIMEOUT_S
        )
        return answers.read(body, Changes)

    async def refresh(self, pod: Pod, projected: list[Raw]) -> None:
        self._may_act()
        known = Pod(
            metadata=skeleton(pod).metadata,
            spec=PodSpec(node_name=pod.spec.node_name, volumes=pod.spec.volumes),
        )
        await self._call(
            "POST", messages.REFRESH, codec.encode(Refresh(pod=known, projectedvolumesmaps=projected)), "Refresh"
        )

    async def usage(self) -> list[ContainerUsage]:
        """What the node's running containers use; nothing from a server that does not know."""
        try:
            body = await self._call("POST", messages.USAGE, codec.encode(UsageRequest(owner=self._owner)), "Usage")
        except NotFound:
            return []
        try:
            return codec.decode_list(body, ContainerUsage)
        except codec.InvalidMessage as error:
            raise OutcomeUnknown(f"the server's answer cannot be read: {error}") from error

    @contextlib.asynccontextmanager
    async def logs(self, request: LogRequest) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._link.stream(
            "GET", "/getLogs", codec.encode(request), timeout_s=answers.LOG_WITHIN_S, session=self._session("GetLogs")
        ) as log:
            yield log

    async def ping(self) -> bytes:
        """The plugin's own answer, as it came."""
        return await self._call("POST", "/pinglink", None, "PingInterLink")

    async def _call(
        self, method: str, path: str, body: bytes | None, what: str, *, timeout_s: float = CALL_TIMEOUT_S
    ) -> bytes:
        return await self._link.call(method, path, body, timeout_s=timeout_s, session=self._session(what))

    def _session(self, what: str) -> str:
        return f"{what}#{next(self._numbers)}"
