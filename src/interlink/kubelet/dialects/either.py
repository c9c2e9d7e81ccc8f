"""Whichever dialect the server speaks: ours where it has it, the existing one otherwise; found out by asking."""

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

import structlog
from msgspec import Raw

from interlink.kubelet.dialects.server import Server
from interlink.model.ids import JobID
from interlink.model.pods import Pod
from interlink.sdk.errors import NotFound
from interlink.wire.messages import AnnouncementAnswer, Changes, ContainerUsage, LogRequest, PodCreateRequest

log = structlog.get_logger(__name__)

_ASK_AGAIN_S = 60.0


class EitherDialect:
    """Implements `Server`. A server of the existing kind is asked for our dialect again every minute: it may have been
    replaced. The change of dialect looks like a server that has lost its memory."""

    def __init__(self, own: Server, existing: Server, now: Callable[[], float]) -> None:
        self._own = own
        self._existing = existing
        self._now = now
        self._is_existing_until = 0.0
        self._current = own

    async def changes(self, epoch: str, since: int, *, pods: Sequence[Pod], wait_s: float) -> Changes:
        if self._now() >= self._is_existing_until:
            try:
                answer = await self._own.changes(epoch, since, pods=pods, wait_s=wait_s)
            except NotFound:
                self._speak(self._existing, "existing")
                self._is_existing_until = self._now() + _ASK_AGAIN_S
            else:
                self._speak(self._own, "own")
                return answer
        return await self._existing.changes(epoch, since, pods=pods, wait_s=wait_s)

    def _speak(self, server: Server, name: str) -> None:
        if server is not self._current:
            log.info("server.dialect", dialect=name)
        self._current = server

    async def create(self, request: PodCreateRequest, pod: Pod) -> JobID:
        return await self._current.create(request, pod)

    async def delete(self, pod: Pod) -> None:
        await self._current.delete(pod)

    async def announce(self, pods: Sequence[Pod], *, epoch: str, revision: int) -> AnnouncementAnswer:
        return await self._current.announce(pods, epoch=epoch, revision=revision)

    async def refresh(self, pod: Pod, projected: list[Raw]) -> None:
        await self._current.refresh(pod, projected)

    async def usage(self) -> list[ContainerUsage]:
        return await self._current.usage()

    @contextlib.asynccontextmanager
    async def logs(self, request: LogRequest) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._current.logs(request) as log_:
            yield log_

    async def ping(self) -> bytes:
        return await self._current.ping()
