"""BatchPlugin: any Scheduler and any Runtime as a Plugin.

It keeps nothing in memory that is not also in the job directories or at the scheduler, so it may be killed at any
point. A create is done once: under a lock for the pod UID it looks for the tag before it submits, and in the job the
runner claims the attempt.
"""

import asyncio
import contextlib
import errno
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog
from msgspec import Raw

from interlink.aio import clock
from interlink.aio.beneath import Beneath
from interlink.aio.failpoints import step
from interlink.aio.supervising import KeyedLocks, run_to_end
from interlink.model import ids
from interlink.model.ids import DEFAULT_CLUSTER, JobID, PodUID, Tag
from interlink.model.pods import Pod, data_volumes, skeleton, without_probes, without_volumes
from interlink.sdk.batch import jobdir, logs, preparing, runners, states
from interlink.sdk.batch.jobdir import Intention, JobDirectory
from interlink.sdk.batch.preparing import JobPlan
from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.batch.scheduler import Life, Observation, Scheduler
from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, Rejected, Unreachable
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
    exports_volumes: without that a pod's data volumes and their mounts are left out. script_variables: of the job, that
    a ready-made job script gets; None means all."""

    def __init__(
        self,
        root: Path,
        *,
        scheduler: Scheduler,
        runtime: Runtime,
        settle_s: float = 0.0,
        lost_after_s: float = 15.0,
        keep_deleted_s: float = 3600.0,
        runs_probes: bool = True,
        exports_volumes: bool = True,
        script_variables: Sequence[str] | None = None,
    ) -> None:
        self._root = root
        self._scheduler = scheduler
        self._runtime = runtime
        self._settle_s = settle_s
        self._lost_after_s = lost_after_s
        self._keep_deleted_s = keep_deleted_s
        self._runs_probes = runs_probes
        self._exports_volumes = exports_volumes
        self._script_variables = script_variables
        self._missing_since: dict[PodUID, float] = {}
        self._verified: set[PodUID] = set()
        self._troubled: set[PodUID] = set()
        self._locks = KeyedLocks()

    async def create(self, request: RetrievedPodData) -> JobID:
        pod = codec.decode(bytes(request.pod), Pod)
        pod = pod if self._runs_probes else without_probes(pod)
        uid = ids.pod_uid(pod.uid)
        async with self._locks.hold(uid):
            return await run_to_end(self._create(request, pod, self._directory(uid)))

    async def _create(self, request: RetrievedPodData, pod: Pod, directory: JobDirectory) -> JobID:
        tag = _tag(request, directory.pod_uid)
        known, job_id = await asyncio.to_thread(_checked_intention, request, pod, directory)
        if job_id is not None:
            return job_id
        job_id = await self._scheduler.find(tag, directory)
        if job_id is None:
            await self._prepare(request, pod, tag, directory)
            job_id = await self._submit(tag, directory)
        elif known is None:
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

    async def _submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        """Whatever a failed submission says, the job may be there: look before the error is passed on."""
        try:
            with step("plugin.submit"):
                return await self._scheduler.submit(tag, directory)
        except Rejected as error:
            with contextlib.suppress(OSError, ValueError):  # as where the disk is full: the refusal is told anyway
                await asyncio.to_thread(_tell_in_logs, directory, str(error))
            raise
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
        tag = await asyncio.to_thread(directory.tag) or await self._recalled_tag(pod)
        self._verified.discard(directory.pod_uid)
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
        known = await asyncio.to_thread(_intended, directories)
        seen = await self._poll(known)
        late = await asyncio.to_thread(_begun_and_gone, known, seen)
        if late:
            seen |= await self._poll(late)
        answers = await asyncio.to_thread(self._statuses, known, seen)
        return answers + await self._recalled(pods, {job.directory.pod_uid for job in known})

    def _statuses(self, jobs: Sequence["_KnownJob"], seen: Mapping[Tag, Observation]) -> list[JobStatus]:
        now = clock.now()
        answers = []
        for job in jobs:
            with _reading(job.directory, is_alone=len(jobs) == 1):
                state = job.directory.state()
                known = states.containers(job.pod, state, seen.get(job.tag, _GONE), now=now, settle_s=self._settle_s)
                if known is not None:
                    answers.append(_status(job.pod, job.directory.pod_uid, job.job_id, known))
        return answers

    async def _recalled(self, pods: Sequence[Pod], known: set[PodUID]) -> list[JobStatus]:
        """What the batch system alone knows of jobs whose directories are lost."""
        lost = {
            PodUID(pod.uid): pod
            for pod in pods
            if pod.uid not in known and not self._directory(PodUID(pod.uid)).is_cancelled()
        }
        if not lost:
            return []
        answers = []
        for uid, job in (await self._scheduler.recall(list(lost.values()))).items():
            found = states.recalled(lost[uid], job.seen, now=clock.now())
            if found is not None:
                answers.append(_status(lost[uid], uid, job.job_id, found))
        return answers

    async def _poll(self, jobs: Sequence["_KnownJob"]) -> dict[Tag, Observation]:
        return dict(await self._scheduler.poll([(job.tag, job.directory) for job in jobs]))

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

    async def capacity(self) -> PingAnswer:
        return await self._scheduler.capacity()

    def chores(self) -> Sequence[Chore]:
        return [Chore("sweep", self._sweep, _SWEEP_S), Chore("verify", self.verify, _VERIFY_S)]

    async def _sweep(self) -> None:
        removed = await self.sweep(keep_s=self._keep_deleted_s)
        if removed:
            log.info("plugin.swept", removed=removed)

    async def sweep(self, *, keep_s: float) -> int:
        """Remove the directories of jobs that were deleted more than `keep_s` seconds ago and have ended; how many.

        Until then they keep the logs, and the mark that lets no late create start the job. Whether a job has ended is
        asked of the batch system: nothing is removed when it cannot be asked.
        """
        deadline = time.time() - keep_s
        jobs, empty = await asyncio.to_thread(_deleted_before, self._root, deadline)
        seen = await self._poll(jobs) if jobs else {}
        over = [job.directory for job in jobs if seen.get(job.tag, _GONE).life in (Life.ENDED, Life.GONE)]
        removed = 0
        for directory in (*over, *empty):
            async with self._locks.hold(directory.pod_uid):
                removed += await asyncio.to_thread(_removed, directory, deadline)
            self._verified.discard(directory.pod_uid)
        return removed

    async def verify(self) -> None:
        """Hold what was acknowledged against what the batch system has: it may have forgotten it after a crash.

        A submitted job that never started and has been missing for a while is submitted again, under the same tag; the
        claim in its directory lets only one of them run. A job that was cancelled and is there again is cancelled
        again. Nothing is asked when there is nothing to verify.
        """
        jobs = await asyncio.to_thread(_unverified, self._root, self._verified)
        if not jobs:
            self._missing_since.clear()
            return
        seen = await self._poll(jobs)
        await self._scheduler.tidy([job.tag for job in jobs])
        self._troubled &= {job.directory.pod_uid for job in jobs}
        for job in sorted(jobs, key=lambda job: job.directory.pod_uid in self._troubled):
            self._troubled.add(job.directory.pod_uid)  # what fails ends the round, and is the last of the next one
            async with self._locks.hold(job.directory.pod_uid):
                await run_to_end(self._verify(job, seen.get(job.tag, _GONE)))
            self._troubled.discard(job.directory.pod_uid)

    async def _verify(self, job: "_KnownJob", seen: Observation) -> None:
        uid, directory = job.directory.pod_uid, job.directory
        if seen.life is not Life.GONE:
            self._missing_since.pop(uid, None)
        cancelled_at = directory.cancelled_at()
        if cancelled_at is not None:
            if seen.life in (Life.PENDING, Life.RUNNING):
                await self._scheduler.cancel(job.tag, directory)
            elif time.time() - cancelled_at > _CANCELS_ARE_WATCHED_S:
                self._verified.add(uid)
        elif directory.is_claimed(job.tag.attempt) or directory.ending() is not None or seen.life is Life.ENDED:
            self._verified.add(uid)
        elif seen.life is Life.GONE and self._has_been_missing(uid):
            log.warning("job.forgotten", pod_uid=uid, job_id=job.job_id, consequence="it is submitted again")
            job_id = await self._submit(job.tag, directory)
            await asyncio.to_thread(directory.remember, job_id)
            self._missing_since.pop(uid, None)

    def _has_been_missing(self, uid: PodUID) -> bool:
        since = self._missing_since.setdefault(uid, time.monotonic())
        return time.monotonic() - since >= self._lost_after_s

    def _directory(self, uid: PodUID) -> JobDirectory:
        return JobDirectory(self._root / uid)


class _KnownJob(msgspec.Struct, frozen=True):
    pod: Pod
    tag: Tag
    directory: JobDirectory
    job_id: JobID | None


def _checked_intention(
    request: RetrievedPodData, pod: Pod, directory: JobDirectory
) -> tuple[Intention | None, JobID | None]:
    """What is known of the pod's job, and its id. Raises Refused where this request may not make one."""
    known = directory.intention()
    origin = request.interlink or Origin(node=pod.spec.node_name)
    asking = (origin.cluster or DEFAULT_CLUSTER, origin.node)
    if known is not None and asking != (known.cluster, known.node):
        raise Refused(f"the job of pod {pod.uid} belongs to {known.cluster}/{known.node}, not to {'/'.join(asking)}")
    if directory.is_cancelled():
        raise Refused(f"pod {pod.full_name} ({pod.uid}) has been deleted; its job will not be started")
    return known, directory.job_id() if known else None


def _intention(request: RetrievedPodData, pod: Pod, tag: Tag) -> Intention:
    return Intention(cluster=tag.cluster, node=_node(request, pod), attempt=tag.attempt, pod=skeleton(pod))


def _intend(request: RetrievedPodData, pod: Pod, tag: Tag, directory: JobDirectory) -> None:
    directory.create()
    directory.intend(_intention(request, pod, tag))


def _write(job: JobPlan, directory: JobDirectory, files: Mapping[Path, bytes]) -> None:
    directory.create()
    runners.install(directory.path.parent)
    preparing.write(job, directory, files)


def _intended(directories: Sequence[JobDirectory]) -> list[_KnownJob]:
    """The jobs among these directories; one that only holds a tombstone is none.

    A directory that cannot be read is left out of many; asked for by itself it raises OutcomeUnknown, because what
    cannot be read is not absent.
    """
    found = []
    for directory in directories:
        with _reading(directory, is_alone=len(directories) == 1):
            intention = directory.intention()
            if intention is not None:
                tag = directory.tag_of(intention)
                directory.state()
                directory.runner_process()
                found.append(_KnownJob(pod=intention.pod, tag=tag, directory=directory, job_id=directory.job_id()))
    return found


@contextlib.contextmanager
def _reading(directory: JobDirectory, *, is_alone: bool) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
        if is_alone:
            raise OutcomeUnknown(f"the directory of job {directory.pod_uid} cannot be read: {error}") from error


def _begun_and_gone(jobs: Sequence[_KnownJob], seen: Mapping[Tag, Observation]) -> list[_KnownJob]:
    """Jobs that have a state although the batch system did not have them: they began after it was asked, or they were
    killed. Asked again now, only a killed one is still gone."""
    found = []
    for job in jobs:
        if seen.get(job.tag, _GONE).life is Life.GONE:
            with _reading(job.directory, is_alone=len(jobs) == 1):
                state = job.directory.state()
                if state is not None and not state.has_ended:
                    found.append(job)
    return found


def _status(pod: Pod, uid: PodUID, job_id: JobID | None, known: states.Containers) -> JobStatus:
    return JobStatus(
        name=pod.metadata.name,
        uid=uid,
        namespace=pod.metadata.namespace,
        job_id=job_id or "",
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


def _tell_in_logs(directory: JobDirectory, text: str) -> None:
    """A refused job has a log all the same: the batch system's words, where `kubectl logs` finds them."""
    intention = directory.intention()
    moment = clock.rfc3339(clock.now())
    for container in intention.pod.spec.containers or [] if intention else []:
        line = f"{moment} stderr F {' '.join(text.split())}\n"
        Beneath(directory.path).write(directory.log(container.name, 0), line.encode(), mode=0o600)


def _deleted_before(root: Path, deadline: float) -> tuple[list[_KnownJob], list[JobDirectory]]:
    """Jobs that were deleted before a moment, and tombstones of that age that never were a job."""
    jobs, empty = [], []
    for directory in jobdir.below(root):
        try:
            cancelled_at = directory.cancelled_at()
            if cancelled_at is None or cancelled_at > deadline:
                continue
            intention = directory.intention()
            if intention is None:
                empty.append(directory)
            else:
                tag = directory.tag_of(intention)
                jobs.append(_KnownJob(pod=intention.pod, tag=tag, directory=directory, job_id=directory.job_id()))
        except OSError as error:
            log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
    return jobs, empty


def _unverified(root: Path, verified: set[PodUID]) -> list[_KnownJob]:
    """Submitted jobs, and deleted ones, of which nobody knows yet that the batch system has taken it in for good."""
    directories = [directory for directory in jobdir.below(root) if directory.pod_uid not in verified]
    return [job for job in _intended_each(directories) if job.job_id is not None]


def _intended_each(directories: Iterable[JobDirectory]) -> Iterator[_KnownJob]:
    for directory in directories:
        with contextlib.suppress(OutcomeUnknown):
            yield from _intended([directory])


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


def _node(request: RetrievedPodData, pod: Pod) -> str:
    return request.interlink.node if request.interlink else pod.spec.node_name


def _tag(request: RetrievedPodData, uid: PodUID) -> Tag:
    """An existing server names no cluster: then it is the default one."""
    origin = request.interlink or Origin()
    return Tag(cluster=origin.cluster or DEFAULT_CLUSTER, pod_uid=uid, attempt=origin.attempt)


_NAMES_OF_THE_POD = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
_GONE = Observation(life=Life.GONE)
_CANCELS_ARE_WATCHED_S = 120.0
_SWEEP_S = 60.0
_VERIFY_S = 5.0
