"""BatchPlugin: any Scheduler and any Runtime as a Plugin.

It keeps nothing in memory that is not also in the job directories or at the scheduler, so it may be killed at any
point. A create is done once: under a lock for the pod UID it looks for the tag before it submits, and in the job the
runner claims the attempt.
"""

import asyncio
import contextlib
import errno
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog
from msgspec import Raw

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.aio.supervising import KeyedLocks, run_to_end
from interlink.model import ids
from interlink.model.ids import DEFAULT_CLUSTER, JobID, PodUID, Tag
from interlink.model.pods import Pod, skeleton
from interlink.sdk.batch import logs, preparing, states
from interlink.sdk.batch.jobdir import Intention, JobDirectory
from interlink.sdk.batch.preparing import JobPlan
from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.batch.scheduler import Life, Observation, Scheduler
from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, Rejected, Unreachable
from interlink.wire import codec
from interlink.wire.messages import ContainerUsage, Job, JobStatus, LogRequest, Origin, PingAnswer, RetrievedPodData

log = structlog.get_logger(__name__)

RUNNER = Path(__file__).with_name("runner.py")


class BatchPlugin:
    def __init__(self, root: Path, *, scheduler: Scheduler, runtime: Runtime) -> None:
        self._root = root
        self._scheduler = scheduler
        self._runtime = runtime
        self._runner = RUNNER.read_bytes()
        self._locks = KeyedLocks()

    async def create(self, request: RetrievedPodData) -> JobID:
        pod = codec.decode(bytes(request.pod), Pod)
        uid = ids.pod_uid(pod.uid)
        async with self._locks.hold(uid):
            return await run_to_end(self._create(request, pod, self._directory(uid)))

    async def _create(self, request: RetrievedPodData, pod: Pod, directory: JobDirectory) -> JobID:
        tag = _tag(request, directory.pod_uid)
        await asyncio.to_thread(_check_owner, request, pod, directory)
        if await asyncio.to_thread(directory.is_cancelled):
            raise Refused(f"pod {pod.full_name} ({pod.uid}) has been deleted; its job will not be started")
        job_id = directory.job_id() or await self._scheduler.find(tag, directory)
        if job_id is None:
            await self._prepare(request, pod, tag, directory)
            job_id = await self._submit(tag, directory)
        with step("plugin.job-id"):
            await asyncio.to_thread(directory.remember, job_id)
        return job_id

    async def _prepare(self, request: RetrievedPodData, pod: Pod, tag: Tag, directory: JobDirectory) -> None:
        job = preparing.plan(request, pod, tag=tag, directory=directory, runtime=self._runtime)
        with step("plugin.intent"):
            node = request.interlink.node if request.interlink else pod.spec.node_name
            intention = Intention(cluster=tag.cluster, node=node, attempt=tag.attempt, pod=skeleton(pod))
            await asyncio.to_thread(directory.create)
            await asyncio.to_thread(directory.intend, intention)
        with step("plugin.job-directory"):
            await self._write(job, directory)

    async def _write(self, job: JobPlan, directory: JobDirectory) -> None:
        """What the names in a pod make impossible will never be possible; all else may be, later."""
        try:
            await asyncio.to_thread(preparing.write, job, directory, self._runner)
        except OSError as error:
            if error.errno in _NAMES_OF_THE_POD:
                raise Rejected(f"the pod's files cannot be made: {error.strerror}") from error
            raise Unreachable(f"cannot write the job's directory: {error.strerror}") from error

    async def _submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        """Whatever a failed submission says, the job may be there: look before the error is passed on."""
        try:
            with step("plugin.submit"):
                return await self._scheduler.submit(tag, directory)
        except OutcomeUnknown:
            found = await self._scheduler.find(tag, directory)
            if found is None:
                raise
            return found

    async def delete(self, pod: Pod) -> None:
        uid = ids.pod_uid(pod.uid)
        async with self._locks.hold(uid):
            await run_to_end(self._delete(pod, self._directory(uid)))

    async def _delete(self, pod: Pod, directory: JobDirectory) -> None:
        tag = await asyncio.to_thread(directory.tag)
        with step("plugin.tombstone"):
            await asyncio.to_thread(directory.mark_cancelled, pod.grace_s)
        if tag is None:
            raise NotFound(f"there is no job for pod {pod.full_name} ({pod.uid})")
        with step("plugin.cancel"):
            await self._scheduler.cancel(tag, directory)

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        directories = [self._directory(ids.pod_uid(pod.uid)) for pod in pods]
        known = await asyncio.to_thread(_intended, directories)
        seen = await self._poll(known)
        late = await asyncio.to_thread(_begun_and_gone, known, seen)
        if late:
            seen |= await self._poll(late)
        return await asyncio.to_thread(_statuses, known, seen)

    async def _poll(self, jobs: Sequence["_KnownJob"]) -> dict[Tag, Observation]:
        return dict(await self._scheduler.poll([(job.tag, job.directory) for job in jobs]))

    async def logs(self, request: LogRequest) -> AsyncGenerator[bytes]:
        directory = self._directory(ids.pod_uid(request.pod_uid))
        async with contextlib.aclosing(logs.read(directory, request.container, request.options)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def jobs(self) -> Sequence[Job]:
        return await self._scheduler.jobs()

    async def usage(self, pods: Sequence[PodUID]) -> list[ContainerUsage]:
        return await asyncio.to_thread(_usages, [self._directory(uid) for uid in pods])

    async def capacity(self) -> PingAnswer:
        return await self._scheduler.capacity()

    async def sweep(self, *, keep_s: float) -> int:
        """Remove the directories of jobs that were deleted more than `keep_s` seconds ago and have ended; how many.

        Until then they keep the logs, and the mark that lets no late create start the job.
        """
        paths = await asyncio.to_thread(lambda: [path for path in self._root.iterdir() if path.is_dir()])
        removed = 0
        for directory in map(JobDirectory, paths):
            async with self._locks.hold(directory.pod_uid):
                removed += await asyncio.to_thread(_removed, directory, time.time() - keep_s)
        return removed

    def _directory(self, uid: PodUID) -> JobDirectory:
        return JobDirectory(self._root / uid)


class _KnownJob(msgspec.Struct, frozen=True):
    pod: Pod
    tag: Tag
    directory: JobDirectory
    job_id: JobID | None


def _check_owner(request: RetrievedPodData, pod: Pod, directory: JobDirectory) -> None:
    known = directory.intention()
    if known is None:
        return
    origin = request.interlink or Origin(node=pod.spec.node_name)
    asking, owning = (origin.cluster or DEFAULT_CLUSTER, origin.node), (known.cluster, known.node)
    if asking != owning:
        raise Refused(f"the job of pod {pod.uid} belongs to {'/'.join(owning)}, not to {'/'.join(asking)}")


def _intended(directories: Sequence[JobDirectory]) -> list[_KnownJob]:
    """The jobs among these directories; one that only holds a tombstone is none.

    A directory that cannot be read is left out of many; asked for by itself it raises OutcomeUnknown, because what
    cannot be read is not absent.
    """
    found = []
    for directory in directories:
        try:
            intention = directory.intention()
            if intention is not None:
                tag = directory.tag_of(intention)
                directory.state()
                directory.runner_process()
                found.append(_KnownJob(pod=intention.pod, tag=tag, directory=directory, job_id=directory.job_id()))
        except (OSError, ValueError) as error:
            log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
            if len(directories) == 1:
                raise OutcomeUnknown(f"the directory of job {directory.pod_uid} cannot be read: {error}") from error
    return found


def _begun_and_gone(jobs: Sequence[_KnownJob], seen: Mapping[Tag, Observation]) -> list[_KnownJob]:
    """Jobs that have a state although the batch system did not have them: they began after it was asked, or they were
    killed. Asked again now, only a killed one is still gone."""
    gone = [job for job in jobs if seen.get(job.tag, _GONE).life is Life.GONE]
    return [job for job in gone if (state := job.directory.state()) is not None and not state.has_ended]


def _statuses(jobs: Sequence[_KnownJob], seen: Mapping[Tag, Observation]) -> list[JobStatus]:
    now = clock.rfc3339(clock.now())
    answers = []
    for job in jobs:
        known = states.containers(job.pod, job.directory.state(), seen.get(job.tag, _GONE), now=now)
        if known is not None:
            answers.append(_status(job, known))
    return answers


def _status(job: _KnownJob, known: states.Containers) -> JobStatus:
    return JobStatus(
        name=job.pod.metadata.name,
        uid=job.directory.pod_uid,
        namespace=job.pod.metadata.namespace,
        job_id=job.job_id or "",
        containers=[Raw(codec.encode(status)) for status in known.main],
        init_containers=[Raw(codec.encode(status)) for status in known.init],
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


def _removed(directory: JobDirectory, deadline: float) -> bool:
    try:
        cancelled_at = directory.cancelled_at()
        if cancelled_at is None or cancelled_at > deadline or directory.runner_process() is not None:
            return False
    except OSError as error:
        log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
        return False
    directory.remove()
    return True


def _tag(request: RetrievedPodData, uid: PodUID) -> Tag:
    """An existing server names no cluster: then it is the default one."""
    origin = request.interlink or Origin()
    return Tag(cluster=origin.cluster or DEFAULT_CLUSTER, pod_uid=uid, attempt=origin.attempt)


_NAMES_OF_THE_POD = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
_GONE = Observation(life=Life.GONE)
