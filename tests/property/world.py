"""A world in which the server's process may die at any await: a disk, a batch system, Kubernetes.

Everything that has an effect passes a checkpoint before and after it. When a death is due, the checkpoint never
returns; the process is then taken apart and a new one starts from the disk.
"""

import asyncio
import collections
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import looptime
import msgspec
from msgspec import Raw

from interlink.model import sealing
from interlink.model.ids import JobID, PodUID, owner
from interlink.model.pods import Container, ObjectMeta, Pod, PodSpec
from interlink.model.records import Intent, Record
from interlink.sdk.client import Statuses
from interlink.sdk.errors import NotFound, OutcomeUnknown, SDKError
from interlink.server.creating import Creator, Limits
from interlink.server.deleting import Deleter
from interlink.server.errors import StoreUnavailable
from interlink.server.jobscript import NoScripts
from interlink.server.ledger import Ledger
from interlink.server.owners import Owners
from interlink.server.polling import Poller
from interlink.server.service import Service
from interlink.server.sweeping import Sweeper
from interlink.wire import codec, messages
from interlink.wire.messages import Announcement, ChangesRequest, Job, JobStatus, KnownPod, PodCreateRequest
from tests.property.disks import Disk, Mortality

OWNER = owner("c", "vk")


class BatchSystem:
    """What survives everything: jobs and how often each was submitted."""

    def __init__(self, *, is_idempotent: bool) -> None:
        self.is_idempotent = is_idempotent
        self.exit_codes: dict[PodUID, int | None] = {}
        self.submissions: collections.Counter[PodUID] = collections.Counter()
        self.tombstones: set[PodUID] = set()

    def alive(self) -> set[PodUID]:
        return {uid for uid, code in self.exit_codes.items() if code is None}


class ModelPlugin:
    """The dispatcher's interface over the batch system; answers get lost when told so."""

    def __init__(self, batch: BatchSystem, life: Mortality) -> None:
        self._batch = batch
        self._life = life
        self.speaks_our_dialect = batch.is_idempotent
        self.trouble = ""
        self.lost_answers = 0

    async def create(self, request: messages.RetrievedPodData, *, session: str) -> JobID:
        uid = PodUID(codec.decode(bytes(request.pod), Pod).uid)
        await self._life.checkpoint()
        if uid in self._batch.tombstones:
            raise OutcomeUnknown("deleted")
        if not self._batch.is_idempotent or uid not in self._batch.exit_codes:
            self._batch.submissions[uid] += 1
            self._batch.exit_codes[uid] = None
        await self._life.checkpoint()
        self._lose_answer()
        return JobID(f"job-{uid}")

    async def delete(self, pod: bytes, *, session: str) -> None:
        uid = PodUID(codec.decode(pod, Pod).uid)
        await self._life.checkpoint()
        self._batch.tombstones.add(uid)
        if uid not in self._batch.exit_codes:
            raise NotFound("no such job")
        if self._batch.exit_codes[uid] is None:
            self._batch.exit_codes[uid] = 143
        await self._life.checkpoint()
        self._lose_answer()

    async def status(self, pods: Sequence[Pod], *, tag: str = "", wait_s: int = 0) -> Statuses:
        """One of ours never waits long here, and never repeats an answer."""
        await self._life.checkpoint()
        uids = [PodUID(pod.uid) for pod in pods if PodUID(pod.uid) in self._batch.exit_codes]
        known = {uid: self._batch.exit_codes[uid] for uid in uids}
        news = f'"{sorted(known.items())}"' if self._batch.is_idempotent else ""
        if tag and tag == news:
            return Statuses(tag=news, has_waited=True, is_unchanged=True)
        return Statuses(answers=[_status(uid, code) for uid, code in known.items()], tag=news)

    async def jobs(self) -> list[Job]:
        await self._life.checkpoint()
        if not self._batch.is_idempotent:
            raise NotFound("no such question")
        alive = self._batch.alive()
        return [
            Job(tag=f"il-c-{u}-a0", job_id=f"job-{u}", node="vk", is_alive=u in alive) for u in self._batch.exit_codes
        ]

    def _lose_answer(self) -> None:
        if self.lost_answers:
            self.lost_answers -= 1
            raise OutcomeUnknown("the answer is lost")


def _status(uid: PodUID, exit_code: int | None) -> JobStatus:
    running = {"running": {"startedAt": "2026-07-14T10:00:00Z"}}
    state = running if exit_code is None else {"terminated": {"exitCode": exit_code}}
    container = Raw(msgspec.json.encode({"name": "c", "state": state}))
    return JobStatus(uid=uid, job_id=f"job-{uid}", containers=[container])


class Kubernetes:
    """The pods of the node, with the job ids that were acknowledged; what the virtual kubelet is rebuilt from."""

    def __init__(self) -> None:
        self.pods: dict[PodUID, Pod] = {}
        self.deleting: set[PodUID] = set()

    def add(self, number: int) -> PodUID:
        uid = PodUID(f"pod-{number}")
        meta = ObjectMeta(name=str(uid), namespace="ns", uid=uid)
        spec = PodSpec(node_name="vk", restart_policy="Never", containers=[Container(name="c")])
        self.pods[uid] = Pod(metadata=meta, spec=spec)
        return uid

    def annotate(self, uid: PodUID, job_id: str) -> None:
        pod = self.pods[uid]
        meta = msgspec.structs.replace(pod.metadata, annotations={"JobID": job_id})
        self.pods[uid] = msgspec.structs.replace(pod, metadata=meta)


class World:
    """One server after another on the same disk, batch system and cluster."""

    def __init__(self, disk: Disk, *, is_idempotent: bool) -> None:
        self.loop = looptime.new_event_loop()
        self.disk = disk
        self.kept = 0.0
        self.promised: dict[PodUID, JobID | Intent] = {}
        self.batch = BatchSystem(is_idempotent=is_idempotent)
        self.kubernetes = Kubernetes()
        self.results: dict[str, bytes] = {}
        self.start()

    def start(self) -> None:
        """A new process: memory is empty, the disk is as it is."""
        self.life = Mortality()
        ledger = Ledger(self.disk.store(self.life))
        self.plugin = ModelPlugin(self.batch, self.life)
        plugin: Any = self.plugin
        creator = Creator(ledger, plugin, NoScripts(), Limits(pods=1000, waiting_creates=1000))
        deleter = Deleter(ledger, plugin, creator)
        poller = Poller(ledger, plugin, creator, job_lost_grace_s=60, interval_s=2)
        owners = Owners(ledger, tombstone_lifetime_s=1e9)
        self.service = Service(ledger, plugin, creator, deleter, poller, Sweeper(ledger, plugin, owners), owners)
        self.loop.run_until_complete(self.service.restore())

    def do(self, work: Callable[[], Coroutine[Any, Any, Any]], *, die_at: int | None = None) -> bool:
        """Do one thing, perhaps to the death; returns whether the process lives. Then a new one has been started."""
        self.life.die_at(die_at)
        is_alive = self.loop.run_until_complete(self._race(work()))
        if not is_alive:
            self.kill()
        self.life.die_at(None)
        return is_alive

    async def _race(self, work: Coroutine[Any, Any, Any]) -> bool:
        task = asyncio.ensure_future(_forgiving(work))
        death = asyncio.ensure_future(self.life.dead.wait())
        await asyncio.wait([task, death], return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if task.done():
            task.result()
        return not self.life.dead.is_set()

    def _bury(self) -> None:
        """Nothing of the dead process runs any more."""
        self.loop.run_until_complete(_cancel_all())

    def kill(self, *, and_then: Callable[[], None] = lambda: None) -> None:
        """The process dies, and something happens to its disk before there is another one."""
        self.life.dead.set()
        self._bury()
        self.disk.after_death(self.kept)
        self._check_promises()
        and_then()
        self.start()

    def _check_promises(self) -> None:
        """Of pods that have left Kubernetes the server may have been told, and have forgotten them."""
        for uid, promise in self.promised.items():
            if uid in self.kubernetes.pods:
                record = self.on_disk(uid)
                assert promise in (record.job_id, record.intent), "what was acknowledged did not survive"

    def lose_cache(self) -> None:
        self.promised.clear()
        self.kill(and_then=self.disk.lose)

    def damage(self, uid: PodUID, keep: float) -> None:
        self.promised.pop(uid, None)
        self.kill(and_then=lambda: self.disk.damage(uid, keep) if uid in self.disk.contents() else None)

    def close(self) -> None:
        self.life.dead.set()
        self._bury()
        self.loop.close()
        self.disk.close()

    # --- what a virtual kubelet does ---

    async def create(self, uid: PodUID) -> None:
        pod = self.kubernetes.pods[uid]
        request = PodCreateRequest(pod=Raw(codec.encode(pod)))
        job_id = await self.service.create(request, pod, OWNER, session="", hold_s=3)
        assert self.on_disk(uid).job_id == job_id, "a job id was acknowledged and not written"
        self.promised[uid] = job_id
        if uid in self.kubernetes.pods:
            self.kubernetes.annotate(uid, job_id)

    async def delete(self, uid: PodUID) -> None:
        pod = self.kubernetes.pods[uid]
        self.kubernetes.deleting.add(uid)
        await self.service.delete(pod, codec.encode(pod), OWNER, session="")
        assert self.on_disk(uid).intent is Intent.DELETE, "a deletion was acknowledged and not written"
        self.promised[uid] = Intent.DELETE

    def on_disk(self, uid: PodUID) -> Record:
        return sealing.load(self.disk.contents()[uid])

    async def announce(self) -> None:
        seen = await self.service.changes(ChangesRequest(owner=OWNER))
        known = [KnownPod(pod=pod, job_id=pod.job_id) for pod in self.kubernetes.pods.values()]
        message = Announcement(owner=OWNER, pods=known, epoch=seen.epoch, revision=seen.revision)
        await self.service.announce(message)

    async def follow(self) -> None:
        """Take what the server tells; what it has told as an end must never change."""
        answer = await self.service.changes(ChangesRequest(owner=OWNER))
        for change in answer.changes:
            uid = PodUID(change.status.uid)
            if change.has_ended and not change.is_deleting:
                result = codec.encode(change.status.containers)
                assert self.results.setdefault(uid, result) == result, "a result changed after it had been told"
            if change.status.job_id and uid in self.kubernetes.pods:
                self.kubernetes.annotate(uid, change.status.job_id)
            if uid in self.kubernetes.deleting and change.is_deleting and change.has_ended:
                self.kubernetes.pods.pop(uid, None)

    async def round(self) -> None:
        await self.service.round()

    async def sweep(self) -> None:
        await self.service.sweep()

    def settle(self) -> None:
        """Without further trouble, everybody does what they do for a while."""
        for _ in range(4):
            self.do(self.announce)
            for uid in list(self.kubernetes.pods):
                if uid in self.kubernetes.deleting:
                    self.do(lambda uid=uid: self.delete(uid))  # type: ignore[misc]
                elif self.kubernetes.pods[uid].job_id is None:
                    self.do(lambda uid=uid: self.create(uid))  # type: ignore[misc]
            for step in (self.round, self.follow, self.sweep):
                self.do(step)


async def _forgiving(work: Awaitable[Any]) -> None:
    """A virtual kubelet repeats what did not work."""
    with contextlib.suppress(SDKError, StoreUnavailable):
        await work


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
