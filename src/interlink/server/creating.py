"""Create, once: durable intent, plugin, durable job id, answer.

A submission that has begun goes on until the plugin has given a definitive answer, whether or not anybody still waits
for it; all requests for a pod share it. When the outcome of a call is unknown the plugin is asked for the pod before
anything is sent again.
"""

import asyncio
from types import TracebackType
from typing import Self

import structlog

from interlink.aio import clock
from interlink.aio.backoff import Backoff
from interlink.aio.failpoints import step
from interlink.model import ids, records
from interlink.model.ids import JobID, Owner, PodUID
from interlink.model.pods import Pod
from interlink.model.records import Decision, Intent, Record
from interlink.sdk.errors import OutcomeUnknown, Overloaded, Refused, Rejected, SDKError, Unreachable
from interlink.server import matching, metrics
from interlink.server.dispatching import Dispatcher
from interlink.server.errors import StoreUnavailable
from interlink.server.jobscript import ScriptMaker
from interlink.server.ledger import Ledger
from interlink.wire.messages import Origin, PodCreateRequest

log = structlog.get_logger(__name__)

_FINISH_WITHIN_S = 10.0


class Limits:
    """When creates are refused: so many pods are known, so many creates wait for the plugin. Adopting has no limit, for
    the jobs are there."""

    def __init__(self, *, pods: int, waiting_creates: int) -> None:
        self.pods = pods
        self.waiting_creates = waiting_creates


class _Submission:
    """One pod's create on its way; `trouble` says why it is not there yet."""

    def __init__(self, request: PodCreateRequest, pod: Pod, owner: Owner, session: str) -> None:
        self.request = request
        self.pod = pod
        self.owner = owner
        self.session = session
        self.trouble = "it has not answered yet"
        self.hurry = asyncio.Event()
        self.answer: asyncio.Future[JobID] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())


class Creator:
    """Use it as a context: leaving it lets calls that are on their way finish, for ten seconds at most."""

    def __init__(self, ledger: Ledger, plugin: Dispatcher, scripts: ScriptMaker, limits: Limits) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._scripts = scripts
        self._limits = limits
        self._submissions: dict[PodUID, _Submission] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.reconciled = asyncio.Event()
        """Nothing is sent before what is known has been compared with what the plugin has."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_stopping = True
        for submission in self._submissions.values():
            submission.hurry.set()
        self.reconciled.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_FINISH_WITHIN_S)
            for task in late:
                task.cancel()

    def is_creating(self, uid: PodUID) -> bool:
        return uid in self._submissions

    def trouble(self, uid: PodUID) -> str:
        """Why a create is not done; of one that nobody has sent to this life of the server, that it is needed again."""
        submission = self._submissions.get(uid)
        return submission.trouble if submission else "the server was started anew and needs the create again"

    def hurry(self, uid: PodUID) -> None:
        """Something has been decided about the pod: a submission that pauses looks again at once."""
        if uid in self._submissions:
            self._submissions[uid].hurry.set()

    async def create(self, request: PodCreateRequest, pod: Pod, owner: Owner, *, session: str, hold_s: float) -> JobID:
        """The job's id, durable here.

        Raises Rejected and Refused (definitive); Unreachable after `hold_s` seconds without a definitive answer,
        while the submission goes on; Overloaded, StoreUnavailable and codec.InvalidMessage when nothing has been begun.
        """
        uid = ids.pod_uid(pod.uid)
        record = self._ledger.get(uid)
        match records.decide_create(record, owner):
            case Decision.ANSWER:
                assert record is not None
                assert record.job_id is not None
                await self._ledger.commit([record])
                return record.job_id
            case Decision.REJECTED:
                assert record is not None
                raise Rejected(record.rejected or "")
            case Decision.REFUSE_DELETED:
                raise _deleted(pod)
            case Decision.REFUSE_OWNER:
                assert record is not None
                raise Refused(f"pod {pod.uid} belongs to {record.owner}, not to {owner}")
            case Decision.BEGIN | Decision.ASK_FIRST:
                matching.retrieved(request, pod, Origin())  # what cannot be read is refused before anything is begun
                submission = self._submissions.get(uid) or self._begin(_Submission(request, pod, owner, session))
        if submission.owner != owner:
            raise Refused(f"pod {pod.uid} belongs to {submission.owner}, not to {owner}")
        return await _awaited(submission, hold_s)

    def _begin(self, submission: _Submission) -> _Submission:
        uid = PodUID(submission.pod.uid)
        if self._is_stopping:
            raise Unreachable("the server is stopping; repeat later")
        if len(self._submissions) >= self._limits.waiting_creates:
            raise Overloaded(
                f"{len(self._submissions)} creates wait for the plugin already (MaxWaitingCreates); repeat later"
            )
        if uid not in self._ledger.newest() and len(self._ledger.newest()) >= self._limits.pods:
            raise Overloaded(f"{self._limits.pods} pods are known already, which is the configured limit (MaxPods)")
        self._submissions[uid] = submission
        metrics.WAITING_CREATES.set(len(self._submissions))
        task = asyncio.create_task(self._run(submission), name=f"create-{uid}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return submission

    async def _run(self, submission: _Submission) -> None:
        """The submission's task: whatever happens becomes its answer."""
        try:
            job_id = await self._submit(submission)
        except Exception as error:  # the outer edge of a task
            if not isinstance(error, SDKError | StoreUnavailable):
                log.error("create.failed", pod_uid=submission.pod.uid, error=repr(error), exc_info=True)
                error = OutcomeUnknown(f"internal error: {type(error).__name__}; the server's log has more")
            submission.answer.set_exception(error)
        else:
            submission.answer.set_result(job_id)
        finally:
            submission.answer.cancel()
            del self._submissions[PodUID(submission.pod.uid)]
            metrics.WAITING_CREATES.set(len(self._submissions))

    async def _submit(self, submission: _Submission) -> JobID:
        """A plugin of ours finds a job that it has already; one of the existing kind is asked before anything is sent,
        because the record of an earlier create may be lost."""
        pod = submission.pod
        known = self._ledger.get(PodUID(pod.uid))
        record = known or records.begun(pod, submission.owner, clock.now())
        if known is None:
            with step("server.intent"):
                await self._ledger.commit([record])
        await self.reconciled.wait()
        may_exist = known is not None or not self._plugin.speaks_our_dialect
        return await self._repeat_until_answered(submission, record, may_exist=may_exist)

    async def _repeat_until_answered(self, submission: _Submission, record: Record, *, may_exist: bool) -> JobID:
        delays = Backoff()
        while True:
            self._check_wanted(submission)
            try:
                found = await self._find(record) if may_exist else None
                may_exist = True
                return await self._accept(record, found or await self._send(submission, record))
            except Rejected as error:
                await self._ledger.commit([records.rejected(self._newest(record), str(error), clock.now())])
                raise
            except (Unreachable, OutcomeUnknown) as error:
                submission.trouble = str(error)
                log.warning("create.delayed", pod=record.pod.full_name, pod_uid=record.pod_uid, error=str(error))
            await _pause(submission, delays.next_s())

    def _check_wanted(self, submission: _Submission) -> None:
        record = self._ledger.get(PodUID(submission.pod.uid))
        if record is not None and record.intent is Intent.DELETE:
            raise _deleted(submission.pod)
        if self._is_stopping:
            raise Unreachable("the server is stopping; repeat later")

    async def _send(self, submission: _Submission, record: Record) -> JobID:
        origin = Origin(cluster=record.owner.cluster, node=record.owner.node, attempt=record.attempt)
        data = matching.retrieved(submission.request, submission.pod, origin)
        data = await self._scripts.completed(data, submission.request.jobscript_url)
        with step("server.forward"):
            return await self._plugin.create(data, session=submission.session)

    async def _find(self, record: Record) -> JobID | None:
        """The id of the job that the plugin already has for this pod. Raises when it cannot be asked.

        A plugin of the existing kind may know the job and not tell an id; then the pod's UID stands for it. One of ours
        without an id has not submitted yet, and its create is idempotent.
        """
        answers = (await self._plugin.status([record.pod])).answers
        answer = next((answer for answer in answers if answer.uid == record.pod_uid), None)
        if answer is None:
            return None
        if answer.job_id:
            return JobID(answer.job_id)
        says_something = records.says_something(answer.containers or [])
        return JobID(record.pod_uid) if says_something and not self._plugin.speaks_our_dialect else None

    async def _accept(self, record: Record, job_id: JobID) -> JobID:
        with step("server.job-id"):
            await self._ledger.commit([records.accepted(self._newest(record), job_id, clock.now())])
        log.info("job.accepted", pod=record.pod.full_name, pod_uid=record.pod_uid, job_id=job_id)
        return job_id

    def _newest(self, record: Record) -> Record:
        return self._ledger.get(record.pod_uid) or record


async def _awaited(submission: _Submission, hold_s: float) -> JobID:
    try:
        async with asyncio.timeout(hold_s):
            return await asyncio.shield(submission.answer)
    except TimeoutError as error:
        raise Unreachable(f"the server goes on trying: {submission.trouble}") from error


async def _pause(submission: _Submission, seconds: float) -> None:
    submission.hurry.clear()
    try:
        async with asyncio.timeout(seconds):
            await submission.hurry.wait()
    except TimeoutError:
        pass


def _deleted(pod: Pod) -> Refused:
    return Refused(f"pod {pod.full_name} ({pod.uid}) has been deleted; no job is started for it")
