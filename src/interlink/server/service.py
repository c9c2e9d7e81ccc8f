"""What the server does for virtual kubelets: the use cases, without HTTP."""

import collections
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence

import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.model import ids, reconciling, records
from interlink.model.ids import JobID, Owner, PodUID
from interlink.model.pods import Pod
from interlink.model.records import Intent, Record
from interlink.sdk.errors import NotFound
from interlink.server import answering, metrics
from interlink.server.creating import Creator
from interlink.server.deleting import Deleter
from interlink.server.dispatching import Dispatcher
from interlink.server.ledger import Ledger
from interlink.server.owners import Owners
from interlink.server.polling import COMMITTED_AT_ONCE, Poller
from interlink.server.store.store import Damage
from interlink.server.sweeping import Sweeper
from interlink.wire.messages import (
    Announcement,
    AnnouncementAnswer,
    Change,
    Changes,
    ChangesRequest,
    ContainerUsage,
    JobStatus,
    LogRequest,
    PodCreateRequest,
    Refresh,
)

log = structlog.get_logger(__name__)

LONGEST_WAIT_S = 60.0


class Service:
    """The parts are given: the composition root builds them."""

    def __init__(
        self,
        ledger: Ledger,
        plugin: Dispatcher,
        creator: Creator,
        deleter: Deleter,
        poller: Poller,
        sweeper: Sweeper,
        owners: Owners,
    ) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._creator = creator
        self._deleter = deleter
        self._poller = poller
        self._sweeper = sweeper
        self._owners = owners
        self._damaged: list[Damage] = []
        self._failure = ""

    async def restore(self) -> None:
        """Read the cache. Afterwards questions can be answered; the first round reconciles it with the plugin.

        Raises StoreUnavailable and NewerFormat.
        """
        restored = await self._ledger.restore()
        self._damaged = restored.damaged
        metrics.DAMAGED.set(len(restored.damaged))
        for damage in restored.damaged:
            log.error("record.damaged", name=damage.name, reason=damage.reason, kept_in="CachedPods/damaged")
        log.info("cache.restored", records=len(restored.records), damaged=len(restored.damaged))

    async def round(self) -> None:
        """What is done once per interval. Raises what goes wrong; until a round goes well, `problems` tells it."""
        try:
            await self._deleter.repeat()
            await self._poller.round()
        except Exception as error:
            self._failure = f"the round of the interval failed: {error!r}"
            raise
        self._failure = ""
        states = collections.Counter(state_of(record) for record in self._ledger.newest().values())
        for state in STATES:
            metrics.RECORDS.labels(state).set(states[state])

    @property
    def waited_s(self) -> float:
        """How much of the interval the last round has spent waiting for news."""
        return self._poller.waited_s

    async def sweep(self) -> None:
        """What is done now and then. Raises the errors of the SDK; repeat it."""
        await self._sweeper.round()

    def problems(self) -> list[str]:
        damaged = [f"damaged record {d.name}: {d.reason} (kept in CachedPods/damaged)" for d in self._damaged]
        return [
            *damaged,
            *filter(None, [self._failure, self._ledger.problem, self._poller.problem, self._plugin.trouble]),
        ]

    async def create(
        self, request: PodCreateRequest, pod: Pod, owner: Owner, *, node: str = "", session: str, hold_s: float
    ) -> JobID:
        """`node` is the caller's own name, here and below; an existing virtual kubelet does not tell it."""
        self._hear([pod], owner.cluster, node)
        return await self._creator.create(request, pod, owner, session=session, hold_s=hold_s)

    async def delete(self, pod: Pod, body: bytes, owner: Owner, *, node: str = "", session: str) -> None:
        ids.pod_uid(pod.uid)
        await self._deleter.delete(pod, body, owner, session=session)
        self._hear([pod], owner.cluster, node)

    async def statuses(self, pods: Sequence[Pod], cluster: str, *, node: str = "") -> list[JobStatus]:
        """The existing dialect: the states of these pods, from memory; for an empty list all of the cluster's, or of
        the node's when the caller names itself.

        A pod that carries a job id and is not known is adopted: that is how a virtual kubelet that cannot announce
        rebuilds a lost cache. Pods of other owners are left out.
        """
        if not pods:
            return self._answers(record for record in self._ledger.all_told() if _is_of(record, cluster, node))
        await self._adopt_unknown(pods, cluster)
        self._hear(pods, cluster, node)
        return self._answers(_own(pods, cluster, self._ledger.told))

    def _answers(self, told: Iterable[Record]) -> list[JobStatus]:
        found = (answering.status(record, self._creator.trouble(record.pod_uid)) for record in told)
        return [status for status in found if status is not None]

    def _hear(self, pods: Sequence[Pod], cluster: str, node: str) -> None:
        """Whoever names its node announces its pods, and is not believed by its silence."""
        if node:
            return
        self._owners.has_asked(_own(pods, cluster, self._ledger.get))

    async def _adopt_unknown(self, pods: Sequence[Pod], cluster: str) -> None:
        unknown = [pod for pod in pods if pod.job_id and self._ledger.get(ids.pod_uid(pod.uid)) is None]
        if unknown:
            await self._adopt(
                [(pod, ids.owner(cluster, pod.spec.node_name), JobID(pod.job_id or "")) for pod in unknown]
            )

    async def announce(self, message: Announcement) -> AnnouncementAnswer:
        """Compare an owner's complete pod list with the records and apply the difference; idempotent."""
        plan = reconciling.plan_announcement(
            message.owner,
            ((known.pod, known.job_id) for known in message.pods),
            self._ledger.newest(),
            told=self._ledger.told_until(message.owner, message.epoch, message.revision),
            given_up_before=self._owners.given_up_before(),
        )
        with step("server.adopt"):
            await self._adopt([(pod, message.owner, job_id) for pod, job_id in plan.adopt])
        if message.epoch == self._ledger.epoch:
            self._owners.has_announced(message.owner, (PodUID(known.pod.uid) for known in message.pods))
        metrics.RECONCILED.labels("adopted").inc(len(plan.adopt))
        metrics.RECONCILED.labels("gone").inc(len(plan.delete))
        for uid in plan.delete:
            record = self._ledger.get(uid)
            if record is not None:
                log.info("pod.gone", pod=record.pod.full_name, pod_uid=uid, owner=str(message.owner))
                await self._deleter.bury(records.deleting(record, record.pod, clock.now()))
        await self._ledger.forget(plan.forget)
        return AnnouncementAnswer(epoch=self._ledger.epoch, adopted=len(plan.adopt), deleted=len(plan.delete))

    async def _adopt(self, known: Sequence[tuple[Pod, Owner, JobID]]) -> None:
        """Remember these with the states that the plugin tells, each written once: that halves the time of rebuilding
        a lost cache. While the plugin was asked other requests may have changed a record, so it is looked at again."""
        now = clock.now()
        answers = await self._poller.look_up([records.adopted(pod, owner, job_id, now) for pod, owner, job_id in known])
        for start in range(0, len(known), COMMITTED_AT_ONCE):
            news = (self._with_job(*one) for one in known[start : start + COMMITTED_AT_ONCE])
            await self._ledger.commit(
                [self._poller.adopted(record, answers.get(record.pod_uid)) for record in news if record is not None]
            )

    def _with_job(self, pod: Pod, owner: Owner, job_id: JobID) -> Record | None:
        """None where the job is known meanwhile, or nobody wants to know."""
        record = self._ledger.get(PodUID(pod.uid))
        if record is None:
            return records.adopted(pod, owner, job_id, clock.now())
        if not reconciling.lacks_job(record, owner):
            return None
        return records.accepted(record, job_id, clock.now())

    async def changes(self, request: ChangesRequest) -> Changes:
        """What changed since a revision; waits for something to tell. Of another epoch: everything."""
        is_known_epoch = request.epoch == self._ledger.epoch
        since = request.since if is_known_epoch else 0
        if is_known_epoch and request.wait_s > 0:
            await self._ledger.wait(request.owner, since, min(request.wait_s, LONGEST_WAIT_S))
        found = self._ledger.changes(request.owner, since)
        return Changes(
            epoch=self._ledger.epoch,
            revision=max((revision for _, revision in found), default=since),
            changes=[_change(record, revision) for record, revision in reversed(found)],
            is_complete=not is_known_epoch,
        )

    @contextlib.asynccontextmanager
    async def logs(
        self, request: LogRequest, cluster: str, *, node: str = "", session: str
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Raises NotFound for another cluster's pod, for another node's when the caller names its own, and the errors
        of the SDK."""
        record = self._ledger.told(ids.pod_uid(request.pod_uid))
        if record is not None and not _is_of(record, cluster, node):
            raise NotFound(f"there is no pod {request.pod_uid}")
        async with self._plugin.logs(request, session=session) as chunks:
            yield chunks

    async def refresh(self, message: Refresh, owner: Owner) -> None:
        """Pass new content for a running pod's files on to its job. Raises NotFound, and the errors of the SDK."""
        record = self._ledger.told(ids.pod_uid(message.pod.uid))
        if record is None or record.owner != owner or state_of(record) != "live":
            raise NotFound(f"there is no running pod {message.pod.uid}")
        await self._plugin.refresh(message)

    async def usage(self, owner: Owner) -> list[ContainerUsage]:
        """What the running containers of an owner use: one question to the plugin, and nothing is kept."""
        live = [r.pod_uid for r in self._ledger.all_told() if r.owner == owner and state_of(r) in ("live", "deleting")]
        return await self._plugin.usage(live) if live else []

    async def ping(self) -> bytes:
        return await self._plugin.ping()


def _own(pods: Iterable[Pod], cluster: str, look_up: Callable[[PodUID], Record | None]) -> Iterator[Record]:
    """The records of these pods that are of the owners that the pods name."""
    for pod in pods:
        record = look_up(PodUID(pod.uid))
        if record is not None and record.owner == Owner(cluster=cluster, node=pod.spec.node_name):
            yield record


def _is_of(record: Record, cluster: str, node: str) -> bool:
    """An existing virtual kubelet names no node: then all of its cluster are meant."""
    return record.owner.cluster == cluster and node in ("", record.owner.node)


STATES = ("creating", "live", "deleting", "ended", "rejected")


def state_of(record: Record) -> str:
    """One of STATES."""
    if record.rejected is not None:
        return "rejected"
    if record.has_ended:
        return "ended"
    return {Intent.CREATE: "creating", Intent.NONE: "live", Intent.DELETE: "deleting"}[record.intent]


def _change(record: Record, revision: int) -> Change:
    return Change(
        status=answering.known(record),
        revision=revision,
        has_ended=record.has_ended,
        is_deleting=record.intent is Intent.DELETE,
        rejected=record.rejected,
    )
