"""Jobs without pods, and tombstones that nobody needs any more.

A job that carries our tag is an orphan only if its owner has announced its complete pod list to this life of the
server, and the job is in no record and its pod not in that list. It is cancelled at the second sighting, a sweep later.

Orphans are left by pods that went, and by an earlier life. While no pod comes or goes the plugin is asked seldom.
"""

import time

import structlog

from interlink.model import reconciling
from interlink.model.ids import Owner, PodUID
from interlink.model.pods import ObjectMeta, Pod, PodSpec
from interlink.sdk.errors import NotFound, Rejected, SDKError
from interlink.server import metrics
from interlink.server.dispatching import Dispatcher
from interlink.server.ledger import Ledger
from interlink.server.owners import Owners
from interlink.wire import codec
from interlink.wire.messages import Job

log = structlog.get_logger(__name__)


_LOOKS = 4
"""After a pod has come or gone, or an owner has first announced: a submission on its way may take minutes to arrive."""
_SELDOM_S = 600.0


class Sweeper:
    def __init__(self, ledger: Ledger, plugin: Dispatcher, owners: Owners) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._owners = owners
        self._suspects: frozenset[str] = frozenset()
        self._known: tuple[frozenset[PodUID], dict[Owner, frozenset[PodUID]]] = (frozenset(), {})
        self._looks_left = 0
        self._looked_at = 0.0

    async def round(self) -> None:
        """One sweep. Raises the errors of the SDK and StoreUnavailable; repeat it."""
        await self._ledger.forget(self._owners.expired())
        if not self._owners.announced or not self._is_due():
            return
        try:
            jobs = await self._plugin.jobs()
        except (NotFound, Rejected):
            return  # a plugin of the existing kind cannot tell its jobs
        await self._cancel_orphans(jobs)
        self._looks_left = max(0, self._looks_left - 1)
        self._looked_at = time.monotonic()

    def _is_due(self) -> bool:
        known = (frozenset(self._ledger.newest()), dict(self._owners.announced))
        if known != self._known:
            self._known, self._looks_left = known, _LOOKS
        return bool(self._looks_left or self._suspects) or time.monotonic() - self._looked_at > _SELDOM_S

    async def _cancel_orphans(self, jobs: list[Job]) -> None:
        seen = [reconciling.SeenJob(tag=job.tag, node=job.node, is_alive=job.is_alive) for job in jobs]
        plan = reconciling.plan_sweep(seen, self._ledger.newest(), self._owners.announced, self._suspects)
        self._suspects = plan.suspects
        for orphan in plan.cancel:
            log.warning("job.orphan", pod_uid=orphan.tag.pod_uid, tag=str(orphan.tag), owner=str(orphan.owner))
            metrics.RECONCILED.labels("orphan").inc()
            try:
                await self._cancel(orphan.tag.pod_uid, orphan.owner)
            except SDKError as error:  # the others' turn comes all the same; this one is seen again
                log.warning("job.orphan-not-cancelled", pod_uid=orphan.tag.pod_uid, error=str(error))

    async def _cancel(self, uid: PodUID, owner: Owner) -> None:
        pod = Pod(metadata=ObjectMeta(uid=uid, name=str(uid), namespace="unknown"), spec=PodSpec(node_name=owner.node))
        try:
            await self._plugin.delete(codec.encode(pod), session="")
        except NotFound:
            log.info("job.orphan-gone", pod_uid=uid)
