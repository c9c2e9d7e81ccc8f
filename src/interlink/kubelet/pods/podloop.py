"""For each pod: look, plan, act. The plan is pure; what it needs is what Kubernetes and the server last said."""

import asyncio
import functools
from collections.abc import Callable, Iterable

import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError, NotFound
from interlink.kube.events import Note
from interlink.kube.reflecting import Reflector
from interlink.kubelet import metrics, telling
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.errors import KubeletError
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.sources import KubeSource
from interlink.kubelet.pods import deferring, planning, views
from interlink.kubelet.pods.creating import Creator
from interlink.kubelet.pods.deferring import Deferred
from interlink.kubelet.pods.jobs import Jobs
from interlink.kubelet.pods.planning import Action
from interlink.kubelet.pods.publishing import Publisher
from interlink.kubelet.pods.rejections import Rejections
from interlink.kubelet.pods.workqueue import WorkQueue
from interlink.model import phases
from interlink.model.ids import JobID
from interlink.model.phases import Place
from interlink.model.pods import Pod, Seen
from interlink.sdk import tracing
from interlink.sdk.errors import SDKError
from interlink.wire.messages import Change

log = structlog.get_logger(__name__)

_WORKERS = 32


class PodLoop:
    def __init__(
        self,
        client: KubeClient,
        server: Server,
        source: KubeSource,
        surroundings: Callable[[], Surroundings],
        *,
        place: Place,
        pods_path: str,
        pods_params: dict[str, str],
        concurrent_creates: int,
        tell: Callable[[Note], None],
    ) -> None:
        self.reflector = Reflector(client, pods_path, pods_params, self._on_pod)
        self.jobs = Jobs(server, self._pods, self._on_jobs)
        self._server = server
        self._tell = tell
        rejections = Rejections(lambda: asyncio.get_running_loop().time())
        self._publisher = Publisher(client, self.reflector, place, tell, rejections)
        self._creator = Creator(server, source, surroundings, self._publisher, tell, rejections)
        self._seen_at: dict[str, float] = {}
        self._told_at: dict[str, float] = {}
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._gone: dict[str, Seen] = {}
        self._asked_grace: dict[str, int] = {}
        self._queue = WorkQueue(self._handle, self._on_failure, workers=_WORKERS)
        self._creates = WorkQueue(self._create, self._on_failure, workers=concurrent_creates, order=self._age)
        self._deferred = Deferred(self._queue.add)
        self._show()

    def _show(self) -> None:
        """Gauges, read when somebody looks at them."""
        for phase in metrics.PHASES:
            metrics.PODS.labels(phase).set_function(functools.partial(self._count, phase))
        for name, queue in (("pods", self._queue), ("creates", self._creates)):
            metrics.QUEUE.labels(name).set_function(functools.partial(getattr, queue, "length"))
            metrics.RETRIES.labels(name).set_function(functools.partial(getattr, queue, "failing"))

    def _count(self, phase: str) -> float:
        return sum(seen.pod.status.phase == phase for seen in self.reflector.pods.values())

    async def run(self) -> None:
        """Work on pods from the first complete list; nothing is created before the server knows all of ours."""
        await self.reflector.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(), name="pods")
            group.create_task(self._creates.run(), name="creates")

    async def follow_jobs(self) -> None:
        """One round of learning what the server says. Raises the errors of the SDK; repeat it."""
        await self.reflector.synced.wait()
        await self.jobs.follow()

    def pods(self) -> list[Seen]:
        return list(self.reflector.pods.values())

    def _age(self, uid: str) -> float:
        """Oldest first."""
        seen = self.reflector.pods.get(uid)
        created = seen.pod.metadata.creation_timestamp if seen else None
        return created.timestamp() if created else 0.0

    def _pods(self) -> Iterable[Pod]:
        return [seen.pod for seen in self.reflector.pods.values()]

    def _on_pod(self, seen: Seen, is_gone: bool) -> None:
        if is_gone:
            self._gone[seen.pod.uid] = seen
        self._seen_at.setdefault(seen.pod.uid, asyncio.get_running_loop().time())
        self._queue.add(seen.pod.uid)

    def _watch_deadline(self, pod: Pod) -> None:
        """Look again when the pod's time is over."""
        later_s = phases.seconds_left(pod, clock.now())
        if later_s and pod.uid not in self._deadlines:
            self._deadlines[pod.uid] = asyncio.get_running_loop().call_later(later_s, self._at_deadline, pod.uid)

    def _at_deadline(self, uid: str) -> None:
        del self._deadlines[uid]
        self._queue.add(uid)

    def _on_jobs(self, uids: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for uid in uids:
            self._told_at.setdefault(uid, now)
            self._queue.add(uid)

    def _on_failure(self, uid: str, error: Exception) -> None:
        seen = self.reflector.pods.get(uid) or self._gone.get(uid)
        is_expected = isinstance(error, SDKError | KubeletError | KubeError)
        log.warning(
            "pod.delayed",
            pod=seen.pod.full_name if seen else None,
            pod_uid=uid,
            error=str(error) or repr(error),
            exc_info=None if is_expected else error,
        )

    async def _handle(self, uid: str) -> None:
        present = self.reflector.pods.get(uid)
        seen = present or self._gone.get(uid)
        if seen is None:
            self._told_at.pop(uid, None)
            return
        change = self.jobs.changes.get(uid)
        self._watch_deadline(seen.pod)
        action = self._plan(uid, seen)
        if action is Action.PUBLISH and self._can_wait(seen.pod, change):
            # News that came while older ones were written have no time of their own, and must not seem new for ever.
            self._told_at.setdefault(uid, asyncio.get_running_loop().time())
            self._deferred.put(uid)
            return
        try:
            await self._act(action, seen, change)
        except NotFound:
            log.info("pod.vanished", pod=seen.pod.full_name, pod_uid=uid)
        if (told_at := self._told_at.pop(uid, None)) is not None:
            metrics.STATUS_LAG.observe(asyncio.get_running_loop().time() - told_at)
        if present is None:
            self._forget(uid)

    def _can_wait(self, pod: Pod, change: Change | None) -> bool:
        now = asyncio.get_running_loop().time()
        age_s = now - self._told_at.get(pod.uid, now)
        return change is not None and self._creates.length > 0 and deferring.can_wait(pod, change, age_s=age_s)

    async def _act(self, action: Action, seen: Seen, change: Change | None) -> None:
        match action:
            case Action.CREATE:
                self._creates.add(seen.pod.uid)
            case Action.PUBLISH:
                assert change is not None
                await self._publish(seen.pod, change)
            case Action.ASK_DELETE:
                await self._ask_delete(seen.pod)
            case Action.REMOVE:
                assert change is not None
                await self._publish(seen.pod, change)
                await self._publisher.remove(seen.pod)
            case Action.NOTHING:
                pass

    def _plan(self, uid: str, seen: Seen) -> Action:
        return planning.plan(
            seen.pod,
            views.known(self.jobs.changes.get(uid)),
            is_gone=uid not in self.reflector.pods,
            asked_grace_s=self._asked_grace.get(uid),
            is_expired=phases.is_expired(seen.pod, clock.now()),
        )

    async def _create(self, uid: str) -> None:
        """Creates have workers of their own, so that slow ones delay no status and no deletion."""
        await self.jobs.adopted.wait()
        seen = self.reflector.pods.get(uid)
        if seen is not None and self._plan(uid, seen) is Action.CREATE:
            later_s = await self._creator.create(seen, seen_at=self._seen_at[uid])
            if later_s:
                asyncio.get_running_loop().call_later(later_s, self._creates.add, uid)
        if self._creates.length == 0:
            self._deferred.resume()

    async def _ask_delete(self, pod: Pod) -> None:
        with step("vk.delete"), tracing.of_pod("interlink-service", "DeletePodVK", pod):
            await self._server.delete(pod)
        if pod.uid not in self._asked_grace:
            for note in telling.of_ending(pod):
                self._tell(note)
        self._asked_grace[pod.uid] = pod.grace_s
        log.info("pod.deleting", pod=pod.full_name, pod_uid=pod.uid, grace_s=pod.grace_s)
        self._queue.add(pod.uid)

    async def _publish(self, pod: Pod, change: Change) -> None:
        view = views.view(change, is_expired=phases.is_expired(pod, clock.now()))
        await self._publisher.publish(pod, view, JobID(change.status.job_id) if change.status.job_id else None)

    def _forget(self, uid: str) -> None:
        """The pod has left Kubernetes and the server has its tombstone."""
        if deadline := self._deadlines.pop(uid, None):
            deadline.cancel()
        for table in (self._gone, self._asked_grace, self._seen_at, self._told_at, self.jobs.changes):
            table.pop(uid, None)
        self._publisher.forget(uid)
