"""What the server says of this node's jobs, kept current by one long question after another.

`epoch` changes when the server has lost its memory: then it is told all pods that Kubernetes knows before anything
else, and nothing is created until it has answered.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from interlink.aio.failpoints import step
from interlink.kubelet.dialects.server import Server
from interlink.model.pods import Pod
from interlink.wire.messages import Change

log = structlog.get_logger(__name__)

_LONG_POLL_S = 30.0


class Jobs:
    """`changes` by pod UID. `adopted` is set while the server knows our pods; creates wait for it."""

    def __init__(
        self, server: Server, pods: Callable[[], Iterable[Pod]], on_change: Callable[[Iterable[str]], None]
    ) -> None:
        self._server = server
        self._pods = pods
        self._on_change = on_change
        self._epoch = ""
        self._revision = 0
        self.changes: dict[str, Change] = {}
        self.adopted = asyncio.Event()

    async def follow(self) -> None:
        """One round: wait for changes, and announce when the server's memory is new. Raises the errors of the SDK."""
        answer = await self._server.changes(self._epoch, self._revision, pods=list(self._pods()), wait_s=_LONG_POLL_S)
        if answer.epoch != self._epoch:
            log.info("server.new-memory", epoch=answer.epoch)
            self.adopted.clear()
        self._take(answer.changes, is_complete=answer.is_complete)
        self._epoch, self._revision = answer.epoch, answer.revision
        if not self.adopted.is_set():
            await self.announce()

    async def announce(self) -> None:
        """Tell the server our complete pod list; when its memory is new, and now and then, because that is also how it
        learns that a deleted pod has left Kubernetes."""
        if not self._epoch:
            return
        with step("vk.announce"):
            answer = await self._server.announce(list(self._pods()), epoch=self._epoch, revision=self._revision)
        if answer.adopted or answer.deleted:
            log.info("server.announced", adopted=answer.adopted, deleted=answer.deleted)
        if answer.epoch == self._epoch:
            self.adopted.set()

    def _take(self, changes: Iterable[Change], *, is_complete: bool) -> None:
        news = {change.status.uid: change for change in changes}
        touched = set(news)
        if is_complete:
            touched |= set(self.changes)
            self.changes = {}
        self.changes.update(news)
        self._on_change(touched)
