"""The node's own life: what the site says of itself, told to Kubernetes."""

import asyncio
from collections.abc import Callable

import structlog

from interlink.kube.errors import KubeError
from interlink.kube.events import Events
from interlink.kubelet import telling
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.node import site
from interlink.kubelet.node.keeping import NodeKeeper
from interlink.kubelet.node.site import Site
from interlink.model.pods import Seen
from interlink.sdk.errors import SDKError

log = structlog.get_logger(__name__)

_DRAIN_POLL_S = 1.0


class Heart:
    """`site` is what is known of it."""

    def __init__(self, keeper: NodeKeeper, server: Server, events: Events, node_name: str) -> None:
        self.site = Site()
        self._events = events
        self._node_name = node_name
        self._keeper = keeper
        self._server = server
        self._has_lease = False
        self._nonsense: list[str] = []

    async def beat(self) -> None:
        before = self.site
        try:
            self.site = site.heard(self.site, await self._server.ping())
        except SDKError as error:
            self.site = site.silent(self.site, str(error))
        if note := telling.of_connectivity(self._node_name, before.trouble, self.site.trouble):
            self._events.tell(note)
        if self.site.nonsense and self.site.nonsense != self._nonsense:
            log.warning("site.nonsense", ignored=self.site.nonsense)
        self._nonsense = self.site.nonsense
        await self._keeper.report(self.site)
        if not self._has_lease:
            await self.renew()
            self._has_lease = True

    async def renew(self) -> None:
        await self._keeper.renew_lease()

    async def drain(self, pods: Callable[[], list[Seen]], *, within_s: float) -> None:
        """Let nothing new be scheduled, and wait until no pod is live."""
        self._keeper.is_draining = True
        try:
            await self.beat()
            async with asyncio.timeout(within_s):
                while live := [seen for seen in pods() if not seen.pod.is_terminal]:
                    log.info("node.draining", pods=len(live))
                    await asyncio.sleep(_DRAIN_POLL_S)
        except (TimeoutError, KubeError) as error:
            log.warning("node.not-drained", error=str(error) or "DrainSeconds are over")
