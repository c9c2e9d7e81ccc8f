"""BatchPlugin: any Scheduler and any Runtime as a Plugin.

It keeps nothing in memory that is not also in the job directories or at the scheduler, so it may be killed at any
point. A create is done once: under a lock for the pod UID it looks for the tag before it submits, and in the job the
runner claims the attempt.
"""

import asyncio
import contextlib
import errno
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import structlog
from msgspec import UNSET, Raw

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.aio.supervising import KeyedLocks, run_to_end
from interlink.model import ids
from interlink.model.ids import DEFAULT_CLUSTER, JobID, PodUID, Tag
from interlink.model.pods import Pod, data_volumes, skeleton, without_probes, without_volumes
from interlink.sdk.batch import bell, jobdir, known, logs, preparing, runners, states
from interlink.sdk.batch.jobdir import Intention, JobDirectory
from interlink.sdk.batch.known import GONE, KnownJob
from interlink.sdk.batch.preparing import JobPlan
from interlink.sdk.batch.rotation import NO_LIMITS, LogLimits
from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.batch.scheduler import Life, Observation, Scheduler
from interlink.sdk.batch.submitting import submit
from interlink.sdk.batch.sweeping import Sweeper
from interlink.sdk.batch.verifying import Verifier
from interlink.sdk.errors import NotFound, Refused, Rejected, Unreachable
from interlink.sdk.plugin import Chore
from interlink.wire import codec
from interlink.wire.messages import (
    ContainerUsage,
    Job,
    JobStatus,
    LogRequest,
    Origin,
    PingAnswer,
    Refresh,
    RetrievedPodData,
)

log = structlog.get_logger(__name__)


class BatchPlugin:
    """settle_s: how long a job's record may lag behind the batch system, as on a shared file system. lost_after_s: for
    how long a submitted job that never started must be missing before it is submitted again. keep_deleted_s: how long
    the directory of a deleted job stays after its end. runs_probes: without them a container is ready when it runs.
    log_limits: of what containers print. exports_volumes: without that a pod's data volumes and their mounts are left
    out. script_variables: of the job, that a ready-made job script gets; None means all. look_every_s: how long
    news of runners are waited for before the batch system is asked, which knows of what no runner tells."""

    def __init__(
        self,
        root: Path,
        *,
        scheduler: Scheduler,
        runtime: Runtime,
        settle_s: float = 0.0,
        lost_after_s: float = 15.0,
        keep_deleted_s: float = 3600.0,
        log_limits: LogLimits = NO_LIMITS,
        runs_probes: bool = True,
        exports_volumes: bool = True,
        script_variables: Sequence[str] | None = None,
        look_every_s: float = 2.0,
    ) -> None:
        self._root = root
        self._scheduler = scheduler
        self._runtime = runtime
        self._settle_s = settle_s
        self._keep_deleted_s = keep_deleted_s
        self._log_limits = log_limits
        self._runs_probes = runs_probes
        self._exports_volumes = exports_volumes
        self._script_variables = script_variables
        self._look_every_s = look_every_s
        self._locks = KeyedLocks()
        self.verifier = Verifier(root, scheduler, self._locks, lost_after_s=lost_after_s)
        self.sweeper = Sweeper(root, scheduler, self._locks, self.verifier.forget)

    async def create(self, request: RetrievedPodData) -> JobID:
        pod = codec.decode(bytes(request.pod), Pod)
        pod = pod if self._runs_probes else without_probes(pod)
        uid = ids.pod_uid(pod.uid)
        async with self._locks.hold(uid):
            return await run_to_end(self._create(request, pod, self._directory(uid)))

    async def _create(self, request: RetrievedPodData, pod: Pod, directory: JobDirectory) -> JobID:
        tag = _tag(request, directory.pod_uid)
        intention, job_id = await asyncio.to_thread(_checked_intention, request, pod, directory)
        if job_id is not None:
            return job_id
        job_id = await self._scheduler.find(tag, directory)
        if job_id is None and intention is None:
            job_id = await self._scheduler.find_ended(tag, made_at=pod.metadata.creation_timestamp)
        if job_id is None:
            await self._prepare(request, pod, tag, directory)
            job_id = await submit(self._scheduler, tag, directory)
        elif intention is None:
            await asyncio.to_thread(_intend, request, pod, tag, directory)
        with step("plugin.job-id"):
            await asyncio.to_thread(directory.remember, job_id)
        return job_id

    async def _prepare(self, request: RetrievedPodData, pod: Pod, tag: Tag, directory: JobDirectory) -> None:
        left_out = [] if self._exports_volumes else data_volumes(pod)
        if left_out:
            log.warning("job.volumes-left-out", pod=pod.full_name, pod_uid=pod.uid, volumes=left_out)
            pod = without_volumes(pod, left_out)
        job = preparing.plan(
            request,
            pod,
            tag=tag,
            directory=directory,
            runtime=self._runtime,
            user=self._scheduler.user(pod),
            variables=self._script_variables,
            log_limits=self._log_limits,
        )
        if job.notes:
            log.warning("job.not-honoured", pod=pod.full_name, pod_uid=pod.uid, what=job.notes)
        files = self._scheduler.prepare(pod, tag, directory, node=_node(request, pod))
        intent = {directory.intent: jobdir.encoded(_intention(request, pod, tag))}
        with step("plugin.intent"):
            await self._write(job, directory, {**intent, **files})

    async def _write(self, job: JobPlan, directory: JobDirectory, files: Mapping[Path, bytes]) -> None:
        """What the names in a pod make impossible will never be possible; all else may be, later."""
        try:
            await asyncio.to_thread(_write, job, directory, files)
        except OSError as error:
            if error.errno in _NAMES_OF_THE_POD:
                raise Rejected(f"the pod's files cannot be made: {error.strerror}") from error
            raise Unreachable(f"cannot write the job's directory: {error.strerror}") from error

    async def delete(self, pod: Pod) -> None:
        uid = ids.pod_uid(pod.uid)
        async with self._locks.hold(uid):
            await run_to_end(self._delete(pod, self._directory(uid)))

    async def _delete(self, pod: Pod, directory: JobDirectory) -> None:
        tag = await asyncio.to_thread(directory.tag) or await self._recalled_tag(pod)
        self.verifier.forget(directory.pod_uid)
        with step("plugin.tombstone"):
            await asyncio.to_thread(directory.mark_cancelled, pod.grace_s)
        if tag is None:
            raise NotFound(f"there is no job for pod {pod.full_name} ({pod.uid})")
        with step("plugin.cancel"):
            await self._scheduler.cancel(tag, directory)

    async def _recalled_tag(self, pod: Pod) -> Tag | None:
        recalled = (await self._scheduler.recall([pod])).get(PodUID(pod.uid))
        return recalled.tag if recalled else None

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        directories = [self._directory(ids.pod_uid(pod.uid)) for pod in pods]
        jobs = await asyncio.to_thread(known.intended, directories)
        seen = await known.poll(self._scheduler, jobs)
        answers = await asyncio.to_thread(self._statuses, jobs, seen)
        return answers + await self._recalled(pods, {job.directory.pod_uid for job in jobs})

    def _statuses(self, jobs: Sequence[KnownJob], seen: Mapping[Tag, Observation]) -> list[JobStatus]:
        now = clock.now()
        answers = []
        for job in jobs:
            with known.reading(job.directory, is_alone=len(jobs) == 1):
                state = job.directory.state()
                life = seen.get(job.tag, GONE)
                if life.life is Life.GONE and state is not None and not job.has_begun:
                    life = _JUST_BEGUN
                if state is None and not job.directory.is_prepared():
                    containers = states.recalled(job.pod, life, now=now)
                else:
                    containers = states.containers(job.pod, state, life, now=now, settle_s=self._settle_s)
                if containers is not None:
                    answers.append(_status(job.pod, job.directory.pod_uid, job.job_id, containers, life))
        return answers

    async def _recalled(self, pods: Sequence[Pod], found: set[PodUID]) -> list[JobStatus]:
        """What the batch system alone knows of jobs whose directories are lost."""
        lost = {
            PodUID(pod.uid): pod
            for pod in pods
            if pod.uid not in found and not self._directory(PodUID(pod.uid)).is_cancelled()
        }
        if not lost:
            return []
        answers = []
        for uid, job in (await self._scheduler.recall(list(lost.values()))).items():
            containers = states.recalled(lost[uid], job.seen, now=clock.now())
            if containers is not None:
                answers.append(_status(lost[uid], uid, job.job_id, containers, job.seen))
        return answers

    async def logs(self, request: LogRequest) -> AsyncGenerator[bytes]:
        directory = self._directory(ids.pod_uid(request.pod_uid))
        async with contextlib.aclosing(logs.read(directory, request.container, request.options)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def jobs(self) -> Sequence[Job]:
        return await self._scheduler.jobs()

    async def refresh(self, message: Refresh) -> None:
        directory = self._directory(ids.pod_uid(message.pod.uid))
        async with self._locks.hold(directory.pod_uid):
            if await asyncio.to_thread(directory.intention) is None:
                raise NotFound(f"there is no job for pod {message.pod.full_name} ({message.pod.uid})")
            try:
                await run_to_end(asyncio.to_thread(preparing.refresh, message, directory))
            except OSError as error:
                raise Unreachable(f"cannot replace files of job {directory.pod_uid}: {error.strerror}") from error

    async def usage(self, pods: Sequence[PodUID]) -> list[ContainerUsage]:
        return await asyncio.to_thread(_usages, [self._directory(uid) for uid in pods])

    async def news(self, since: str, within_s: float) -> str:
        """Of what runners tell; what only the batch system knows is seen by the look at the end of the time."""
        return await bell.heard(self._root, since, min(within_s, self._look_every_s))

    async def capacity(self) -> PingAnswer:
        return await self._scheduler.capacity()

    def chores(self) -> Sequence[Chore]:
        return [Chore("sweep", self._sweep, _SWEEP_S), Chore("verify", self.verifier.verify, _VERIFY_S)]

    async def _sweep(self) -> None:
        removed = await self.sweeper.sweep(keep_s=self._keep_deleted_s)
        if removed:
            log.info("plugin.swept", removed=removed)

    def _directory(self, uid: PodUID) -> JobDirectory:
        return JobDirectory(self._root / uid)


def _checked_intention(
    request: RetrievedPodData, pod: Pod, directory: JobDirectory
) -> tuple[Intention | None, JobID | None]:
    """What is known of the pod's job, and its id. Raises Refused where this request may not make one."""
    intention = directory.intention()
    origin = request.interlink or Origin(node=pod.spec.node_name)
    asking = (origin.cluster or DEFAULT_CLUSTER, origin.node)
    if intention is not None and asking != (intention.cluster, intention.node):
        raise Refused(
            f"the job of pod {pod.uid} belongs to {intention.cluster}/{intention.node}, not to {'/'.join(asking)}"
        )
    if directory.is_cancelled():
        raise Refused(f"pod {pod.full_name} ({pod.uid}) has been deleted; its job will not be started")
    return intention, directory.job_id() if intention else None


def _intention(request: RetrievedPodData, pod: Pod, tag: Tag) -> Intention:
    return Intention(cluster=tag.cluster, node=_node(request, pod), attempt=tag.attempt, pod=skeleton(pod))


def _intend(request: RetrievedPodData, pod: Pod, tag: Tag, directory: JobDirectory) -> None:
    directory.create()
    directory.intend(_intention(request, pod, tag))


def _write(job: JobPlan, directory: JobDirectory, files: Mapping[Path, bytes]) -> None:
    directory.create()
    runners.install(directory.path.parent)
    bell.hang(directory.path.parent)
    preparing.write(job, directory, files)


def _status(pod: Pod, uid: PodUID, job_id: JobID | None, containers: states.Containers, seen: Observation) -> JobStatus:
    return JobStatus(
        name=pod.metadata.name,
        uid=uid,
        namespace=pod.metadata.namespace,
        job_id=job_id or "",
        containers=[Raw(codec.encode(status)) for status in containers.main],
        init_containers=[Raw(codec.encode(status)) for status in containers.init],
        remark=states.remark(seen) or UNSET,
    )


def _usages(directories: Sequence[JobDirectory]) -> list[ContainerUsage]:
    return [
        ContainerUsage(
            pod_uid=directory.pod_uid,
            container=name,
            cpu_seconds=use.cpu_seconds,
            memory_bytes=use.memory_bytes,
            at=job.at,
        )
        for directory in directories
        if (job := directory.usage()) is not None
        for name, use in job.containers.items()
    ]


def _node(request: RetrievedPodData, pod: Pod) -> str:
    return request.interlink.node if request.interlink else pod.spec.node_name


def _tag(request: RetrievedPodData, uid: PodUID) -> Tag:
    """An existing server names no cluster: then it is the default one."""
    origin = request.interlink or Origin()
    return Tag(cluster=origin.cluster or DEFAULT_CLUSTER, pod_uid=uid, attempt=origin.attempt)


_NAMES_OF_THE_POD = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
_JUST_BEGUN = Observation(life=Life.RUNNING)
"""Of a job that began after the batch system was asked for it; the next answer tells whether it is still there."""

_SWEEP_S = 60.0
_VERIFY_S = 5.0
