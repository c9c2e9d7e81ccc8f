"""Slurm as a batch system: a job is known by its tag, which is its name; ids are only handles.

Slurm forgets: an acknowledged job can vanish and its id be given to another one, an acknowledged cancel can be undone,
a running job can be launched again. So a job counts only while its name is ours, nothing is believed that Slurm did
not say, and what is to happen is repeated until it is seen.
"""

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from interlink.aio import clock
from interlink.aio.beneath import Beneath
from interlink.model.ids import JobID, PodUID, Tag
from interlink.model.pods import Pod
from interlink.plugins.slurm import directives, states
from interlink.plugins.slurm.accounts import Accounts
from interlink.plugins.slurm.capacity import Capacity
from interlink.plugins.slurm.commands import Slurm
from interlink.plugins.slurm.directives import Submission
from interlink.plugins.slurm.parsing import QueuedJob
from interlink.plugins.slurm.queue import Look, Queue
from interlink.plugins.slurm.settings import Policy, Script
from interlink.sdk.batch.jobdir import Ending, JobDirectory
from interlink.sdk.batch.scheduler import Life, Observation, Recalled
from interlink.sdk.errors import OutcomeUnknown, Rejected, Unreachable
from interlink.wire.messages import Job, PingAnswer

log = structlog.get_logger(__name__)

_KILL_AFTER_GRACE_S = 10.0
_ACCOUNTING_AGAIN_S = 10.0
_JUST_NOW_S = 1.0
_FORGOTTEN_S = 60.0
"""For how long a job that has begun must be missing before it counts as killed: after a crash of the controller its
nodes tell it of their jobs."""
_ASKED_AT_ONCE = 1000
_LAUNCHES = 5
"""How many jobs of a pod Slurm may give up at their launch, and the last of them fails the pod."""
_SUBMISSION = "submission.json"
_LONGEST_ID = 10


class SlurmScheduler:
    """uses_accounting: sacct answers here. unknown_for_s: how long a submission of unknown outcome may be on its way.
    kept_s: for how long the controller knows a job that has ended."""

    def __init__(
        self,
        slurm: Slurm,
        *,
        policy: Policy,
        script: Script,
        capacity: Capacity,
        uses_accounting: bool,
        memory_is_fatal: bool,
        unknown_for_s: float,
        kept_s: float = 0.0,
    ) -> None:
        self._slurm = slurm
        self._queue = Queue(slurm.queue)
        self._accounts = Accounts(lambda tags: slurm.accounting(tags=tags))
        self._policy = policy
        self._script = script
        self._capacity = capacity
        self._uses_accounting = uses_accounting
        self._memory_is_fatal = memory_is_fatal
        self._unknown_for_s = unknown_for_s
        self._kept_s = kept_s
        self._denied_since: dict[Tag, float] = {}
        self._asked_accounting_at: dict[Tag, float] = {}
        self._missing_since: dict[Tag, float] = {}
        self._strange_states: set[str] = set()
        self._alone_since = time.monotonic() + unknown_for_s
        self._submitted: dict[Tag, float] = {}
        self._forgot_until = 0.0

    # Submitting

    def prepare(self, pod: Pod, tag: Tag, directory: JobDirectory, *, node: str) -> Mapping[Path, bytes]:
        submission = directives.submission(
            pod, tag, directory, self._policy, node=node, time_limits=self._capacity.time_limits
        )
        scripts = directives.scripts(pod, directory, self._script)
        found = {
            directory.path / _SUBMISSION: msgspec.json.format(msgspec.json.encode(submission)),
            directory.path / "job.sh": scripts.job.encode(),
        }
        if scripts.mesh is not None:
            found[directory.path / "mesh.sh"] = scripts.mesh.encode()
            found[directory.path / "run.sh"] = directives.run_script(directory, self._script).encode()
        return found

    def user(self, pod: Pod) -> int:
        uid = directives.user(pod, self._policy)
        return os.geteuid() if uid is None else uid

    async def submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        submission = await asyncio.to_thread(_begin, directory)
        self._denied_since.pop(tag, None)
        self._submitted[tag] = time.monotonic()
        try:
            return await self._slurm.submit(submission.options, directory.path / "job.sh")
        except (Rejected, Unreachable):
            await asyncio.to_thread(directory.end_submission)
            raise

    async def find(self, tag: Tag, directory: JobDirectory) -> JobID | None:
        """Raises OutcomeUnknown as long as a submission may still arrive that nobody has seen the end of: until Slurm
        has denied the job twice, so far apart."""
        has_directory, since = await asyncio.to_thread(_earlier, directory)
        job = (await self._look_for(tag, has_directory=has_directory)).best(tag)
        if job is None and self._uses_accounting and has_directory:
            job = await self._accounts.last(tag)
        if job is not None and job.job_id not in await asyncio.to_thread(directory.given_up):
            self._denied_since.pop(tag, None)
            return job.job_id
        if since is not None:
            now = time.monotonic()
            if now - self._denied_since.setdefault(tag, now) < self._unknown_for_s:
                raise OutcomeUnknown(
                    f"it is not known yet whether job {tag} was submitted; Slurm does not have it so far"
                )
        return None

    async def find_ended(self, tag: Tag, *, made_at: datetime | None) -> JobID | None:
        """In accounting, unless the pod is so young that the controller would know its job; half of that time is left
        for clocks that differ."""
        is_young = made_at is not None and (clock.now() - made_at).total_seconds() < self._kept_s / 2
        if not self._uses_accounting or is_young:
            return None
        job = await self._accounts.last(tag)
        if job is None or states.is_alive(job) or states.was_given_up(job, time.time()):
            return None
        return job.job_id

    async def _look_for(self, tag: Tag, *, has_directory: bool) -> Look:
        """A fresh look where an earlier submission is possible.

        Without a directory a job of this tag can only come from an earlier life of this plugin, whose last submissions
        have arrived some seconds after our start, or from a directory that was lost: a recent look tells.
        """
        if has_directory:
            return await self._queue.look()
        look = await self._queue.recent(after=max(self._alone_since, self._submitted.get(tag, 0.0)))
        if look.began_at > self._forgot_until:
            self._forgot_until = look.began_at
            self._submitted = {tag: at for tag, at in self._submitted.items() if at > look.began_at}
        return look

    # Looking

    async def poll(self, jobs: Sequence[tuple[Tag, JobDirectory]]) -> Mapping[Tag, Observation]:
        if not jobs:
            return {}
        look = await self._queue.look()
        found = [(job, directory) for tag, directory in jobs if (job := look.best(tag)) is not None]
        seen = {job.tag: self._observed(job) for job, _ in found}
        put_back = [(job, directory) for job, directory in found if job.restarts and not states.is_alive(job)]
        if put_back:
            seen = await asyncio.to_thread(_with_given_up, seen, put_back)
        absent = [(tag, directory) for tag, directory in jobs if tag not in seen]
        self._missing_since = {tag: at for tag, at in self._missing_since.items() if tag not in seen}
        if absent:
            seen |= await self._of_forgotten(absent)
        await asyncio.to_thread(_keep_endings, jobs, seen)
        return seen

    def _observed(self, job: QueuedJob) -> Observation:
        if not states.is_known(job.state) and job.state not in self._strange_states:
            self._strange_states.add(job.state)
            log.warning("slurm.unknown-state", state=job.state, job_id=job.job_id)
        return states.observe(job, now_s=time.time(), memory_is_fatal=self._memory_is_fatal)

    async def _of_forgotten(self, absent: Sequence[tuple[Tag, JobDirectory]]) -> dict[Tag, Observation]:
        """Jobs that the controller does not have: what was kept of their ends, and what accounting knows."""
        found, unknown = await asyncio.to_thread(_kept_endings, absent)
        self._missing_since = {tag: at for tag, at in self._missing_since.items() if tag not in found}
        if unknown and self._uses_accounting:
            found |= await self._of_accounting(unknown)
        for tag, directory in unknown:
            if tag not in found and await asyncio.to_thread(directory.is_claimed, tag.attempt):
                found[tag] = self._of_missing(tag)
        return {tag: found.get(tag, Observation(life=Life.GONE)) for tag, _ in absent}

    def _of_missing(self, tag: Tag) -> Observation:
        """Of a job that has begun and that nobody knows any more. It never runs again, and so must have an end."""
        since = self._missing_since.setdefault(tag, time.monotonic())
        return Observation(life=Life.ENDED) if time.monotonic() - since < _FORGOTTEN_S else _forgotten()

    async def _of_accounting(self, unknown: Sequence[tuple[Tag, JobDirectory]]) -> dict[Tag, Observation]:
        """In one question. Only an end counts: what is alive in accounting and not in the queue was lost."""
        now = time.monotonic()
        ids = {tag: job_id for tag, directory in unknown if _is_id(job_id := directory.job_id() or JobID(""))}
        due = [t for t in ids if now - self._asked_accounting_at.get(t, -_ACCOUNTING_AGAIN_S) >= _ACCOUNTING_AGAIN_S]
        if not due:
            return {}
        due = due[:_ASKED_AT_ONCE]
        records = await self._slurm.accounting(job_ids=[ids[tag] for tag in due])
        self._asked_accounting_at = {tag: at for tag, at in self._asked_accounting_at.items() if tag in ids}
        self._asked_accounting_at |= dict.fromkeys(due, now)
        ended = {tag: job for tag in due if (job := _last(records, tag)) is not None and not states.is_alive(job)}
        seen = {tag: self._observed(job) for tag, job in ended.items()}
        put_back = [(ended[tag], directory) for tag, directory in unknown if tag in ended and ended[tag].restarts]
        return await asyncio.to_thread(_with_given_up, seen, put_back)

    async def recall(self, pods: Sequence[Pod]) -> Mapping[PodUID, Recalled]:
        """From the queue; where that has forgotten a job, from accounting by the id that Kubernetes knows.

        A question about states has asked both just now: then the queue is not asked again, and accounting next time.
        """
        just_now = time.monotonic() - _JUST_NOW_S
        found = (await self._queue.recent(after=just_now)).by_pod()
        ids = [JobID(pod.job_id or "") for pod in pods if pod.uid not in found and _is_id(pod.job_id or "")]
        if ids and self._uses_accounting and max(self._asked_accounting_at.values(), default=0.0) < just_now:
            records = await self._slurm.accounting(job_ids=ids[:_ASKED_AT_ONCE])
            ended = {record.tag.pod_uid: record for record in records if not states.is_alive(record)}
            found = ended | found
        return {
            PodUID(pod.uid): Recalled(tag=job.tag, job_id=job.job_id, seen=self._observed(job))
            for pod in pods
            if (job := found.get(PodUID(pod.uid))) is not None
        }

    async def jobs(self) -> Sequence[Job]:
        look = await self._queue.look()
        return [
            Job(tag=str(tag), job_id=job.job_id, node=directives.node_of(job.comment), is_alive=states.is_alive(job))
            for tag in look.jobs
            if (job := look.best(tag)) is not None
        ]

    async def capacity(self) -> PingAnswer:
        return await self._capacity()

    # Ending

    async def cancel(self, tag: Tag, directory: JobDirectory) -> None:
        """A waiting job is taken out of the queue; a running one is told once and ends by itself, within its grace
        period, after which Slurm ends it.

        Slurm lets no signal through to a suspended job, and only operators may resume it: it is ended at once. One that
        was stopped by a signal finds ours when it goes on.
        """
        self._denied_since.pop(tag, None)
        alive = (await self._queue.look()).alive(tag)
        if not alive:
            return
        job_ids = [job.job_id for job in alive]
        grace_s = await asyncio.to_thread(directory.cancel_grace_s)
        since_s = time.time() - (directory.cancelled_at() or 0.0)
        if all(states.is_waiting(job) for job in alive) or since_s > grace_s + _KILL_AFTER_GRACE_S:
            await self._slurm.cancel(job_ids)
        else:
            await self._slurm.cancel(job_ids, "--state=PENDING")
            if any(states.is_suspended(job) for job in alive):
                await self._slurm.cancel(job_ids, "--state=SUSPENDED")
            await self._slurm.cancel(job_ids, "--state=RUNNING", "--signal=TERM", "--batch")
            if any(states.is_stopped(job) for job in alive):
                await self._slurm.cancel(job_ids, "--state=RUNNING", "--signal=CONT", "--full")

    async def tidy(self, tags: Sequence[Tag]) -> None:
        look = await self._queue.look()
        twice = [job for tag in tags for job in states.superfluous(look.jobs.get(tag, []))]
        if twice:
            log.warning("slurm.job-twice", job_ids=[job.job_id for job in twice])
            await self._slurm.cancel([job.job_id for job in twice], "--state=PENDING")


def _earlier(directory: JobDirectory) -> tuple[bool, float | None]:
    """Whether there is a directory, and when a submission was tried whose outcome nobody knows."""
    has_directory = directory.path.exists()
    return has_directory, directory.unknown_submission_at() if has_directory else None


def _begin(directory: JobDirectory) -> Submission:
    """What to submit; the mark that says so, and the files as the job's user needs them. Raises Unreachable.

    The submission stays ours, and one that is not is not believed: it says whose job it is, so a job that is submitted
    again would belong to whom its user likes.
    """
    try:
        with Beneath(directory.path).open(directory.path / _SUBMISSION) as file:
            if os.fstat(file.fileno()).st_uid not in _ours(directory):
                raise PermissionError(errno.EPERM, "it belongs to somebody else", str(directory.path / _SUBMISSION))
            submission = msgspec.json.decode(file.read(), type=Submission)
        if submission.uid is not None:
            Beneath(directory.path).give(submission.uid, kept=[_SUBMISSION])  # what we write later stays ours
        directory.begin_submission()
    except (OSError, msgspec.MsgspecError) as error:
        raise Unreachable(f"the directory of job {directory.pod_uid} cannot be used: {error}") from error
    return submission


def _ours(directory: JobDirectory) -> tuple[int, int]:
    """Who we are, and who we are to a file system where all files belong to one user."""
    return os.geteuid(), directory.path.parent.stat().st_uid


def _forgotten() -> Observation:
    ending = Ending(
        reason="ContainerStatusUnknown",
        message="the job was killed and left no result, and Slurm does not know it any more",
        finished_at=clock.rfc3339(clock.now()),
    )
    return Observation(life=Life.ENDED, reason=ending.reason, message=ending.message, ending=ending)


def _with_given_up(
    seen: Mapping[Tag, Observation], put_back: Sequence[tuple[QueuedJob, JobDirectory]]
) -> dict[Tag, Observation]:
    """Without those after which another one was submitted that is not there."""
    found = dict(seen)
    for job, directory in put_back:
        with _in_its_directory(directory):
            if _is_given_up(job, directory):
                del found[job.tag]
                if directory.job_id() in (job.job_id, None):
                    found[job.tag] = states.given_up(job, is_last=len(directory.given_up()) >= _LAUNCHES)
    return found


def _is_given_up(job: QueuedJob, directory: JobDirectory) -> bool:
    """It is written down when it is seen first, for the time that it can be told by is short."""
    if directory.is_cancelled() or directory.is_claimed(job.tag.attempt):
        return False
    if states.was_given_up(job, time.time()):
        directory.note_given_up(job.job_id)
        return True
    return job.job_id in directory.given_up()


def _keep_endings(jobs: Sequence[tuple[Tag, JobDirectory]], seen: Mapping[Tag, Observation]) -> None:
    """Slurm forgets ended jobs after minutes; those that left no end of their own must not be forgotten with it."""
    for tag, directory in jobs:
        ending = seen[tag].ending if tag in seen else None
        if ending is not None:
            with _in_its_directory(directory):
                _keep(ending, directory)


def _keep(ending: Ending, directory: JobDirectory) -> None:
    if directory.ending() == ending:
        return
    state = directory.state()
    if state is None or not state.has_ended or state.was_stopped_from_outside:
        directory.conclude(ending)


@contextlib.contextmanager
def _in_its_directory(directory: JobDirectory) -> Iterator[None]:
    """What its user has made of it is no other job's trouble."""
    try:
        yield
    except OSError as error:
        log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))


def _kept_endings(
    jobs: Sequence[tuple[Tag, JobDirectory]],
) -> tuple[dict[Tag, Observation], list[tuple[Tag, JobDirectory]]]:
    """Where that cannot be read the job counts as alive, for nobody knows of its end."""
    found, unknown = {}, []
    for tag, directory in jobs:
        found[tag] = Observation(life=Life.RUNNING)
        with _in_its_directory(directory):
            ending, state = directory.ending(), directory.state()
            if ending is not None:
                found[tag] = Observation(life=Life.ENDED, reason=ending.reason, message=ending.message, ending=ending)
            elif state is not None and state.has_ended and not state.was_stopped_from_outside:
                found[tag] = Observation(life=Life.ENDED)
            else:
                del found[tag]
                unknown.append((tag, directory))
    return found, unknown


def _is_id(text: str) -> bool:
    """Whether it can be one: a single word that is none fails the question about all."""
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID


def _last(records: Sequence[QueuedJob], tag: Tag) -> QueuedJob | None:
    """The last record with our name: an id may have belonged to others before, and to us several times."""
    ours = [record for record in records if record.tag == tag]
    return ours[-1] if ours else None
