"""One question per interval about all live jobs, and what the answer changes.

A plugin that notices news by itself is asked to wait with an answer that would be the last one again. That costs no
question more, and an end is heard of at once.

Absent is not finished: a job that the answer does not mention keeps its state until it has been asked for by itself,
and still is not mentioned for a grace period. An answer that leaves out most of what was asked is doubted.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec
import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.model import records
from interlink.model.ids import JobID, PodUID
from interlink.model.records import Intent, Record
from interlink.sdk.errors import OutcomeUnknown, Rejected, SDKError
from interlink.server import metrics
from interlink.server.creating import Creator
from interlink.server.dispatching import Dispatcher
from interlink.server.ledger import Ledger
from interlink.wire.messages import JobStatus

log = structlog.get_logger(__name__)

_QUESTIONS_AT_ONCE = 8
_DOUBTED_FROM = 4
_PROBES = 4
_BULK_AGAIN_AFTER_ROUNDS = 300
COMMITTED_AT_ONCE = 100
"""Records that are written together; whatever else is to be written waits no longer than for these."""


_SAME_AT_MOST = 30
"""So many times in a row a plugin is believed that its answer would be the last one again."""


class Answers(msgspec.Struct, frozen=True):
    """What the plugin said about what it was asked; `unreadable` are entries that are no statuses. `tag`: of this
    answer; `is_unchanged`: it would be the one with the tag in the question."""

    by_uid: Mapping[PodUID, JobStatus]
    unreadable: list[str]
    tag: str = ""
    is_unchanged: bool = False


class Heard(msgspec.Struct, frozen=True):
    """The last answer that mentioned everybody and from which everything has been concluded."""

    pods: frozenset[PodUID] = frozenset()
    tag: str = ""
    times: int = 0

    def tag_for(self, pods: Collection[PodUID]) -> str:
        """For the same question again; from time to time it is asked without, for a plugin may be wrong."""
        return self.tag if self.times < _SAME_AT_MOST and self.pods == pods else ""


class Poller:
    """wait_s: how long a plugin that can may wait for news before it answers. Of the last round, `waited_s` is how long
    it did, and `problem` what was wrong."""

    def __init__(
        self, ledger: Ledger, plugin: Dispatcher, creator: Creator, *, job_lost_grace_s: float, wait_s: int = 0
    ) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._creator = creator
        self._grace = timedelta(seconds=job_lost_grace_s)
        self._wait_s = wait_s
        self._one_at_a_time = asyncio.Lock()
        self._rounds_one_by_one = 0
        self._heard = Heard()
        self.waited_s = 0.0
        self.problem = ""

    async def round(self) -> None:
        """Ask once about all live jobs; nothing is asked when there are none.

        A plugin that does not answer changes no pod; the reason is kept in `problem`.
        """
        async with self._one_at_a_time:
            try:
                await self._round()
            except SDKError as error:
                self._note(f"the plugin could not be asked: {error}", is_doubt=False)
            else:
                self._creator.reconciled.set()

    async def _round(self) -> None:
        asked = {uid: record for uid, record in self._ledger.newest().items() if self._is_open(record)}
        heard, self._heard, self.waited_s = self._heard, Heard(), 0.0
        if not asked:
            self._note("", is_doubt=False)
            return
        answers = await self._ask(list(asked.values()), tag=heard.tag_for(asked.keys()))
        if answers.is_unchanged:
            self._heard = msgspec.structs.replace(heard, tag=answers.tag, times=heard.times + 1)
            self._note("", is_doubt=False)
            return
        with step("server.observe"):
            await self._observe(answers.by_uid)
        absent = [record for uid, record in asked.items() if uid not in answers.by_uid and record.is_live]
        doubt = _doubt(len(absent), len(asked))
        self._note(doubt or "; ".join(answers.unreadable[:3]), is_doubt=bool(doubt))
        await self._examine(_examined(absent, is_doubted=bool(doubt or answers.unreadable)))
        if answers.tag and not answers.unreadable and answers.by_uid.keys() == asked.keys():
            self._heard = self._concluded_whole(answers)

    def _concluded_whole(self, answers: Answers) -> Heard:
        """Nothing, while it is open which job an answer tells of: that does not depend on the plugin alone."""
        known = [self._ledger.get(uid) for uid in answers.by_uid]
        if any(record is None or record.intent is Intent.CREATE for record in known):
            return Heard()
        return Heard(pods=frozenset(answers.by_uid), tag=answers.tag)

    def _is_open(self, record: Record) -> bool:
        """Live jobs, and creates of an earlier life; none whose create is on its way, also if it is deleted meanwhile:
        that the plugin does not know its job yet proves nothing."""
        is_wanted = record.is_live or (record.intent is Intent.CREATE and not record.has_ended)
        return is_wanted and not self._creator.is_creating(record.pod_uid)

    # --- asking ---

    async def _ask(self, asked: Sequence[Record], *, tag: str = "") -> Answers:
        """In one question; one by one from a plugin that has been found unable to answer many at once."""
        if self._rounds_one_by_one > 0 and len(asked) > 1:
            self._rounds_one_by_one -= 1
            return await self._ask_each(asked)
        try:
            answers = await self._ask_together(asked, tag=tag)
        except (OutcomeUnknown, Rejected):
            if len(asked) == 1 or not await self._answers_singly(asked):
                raise
        else:
            if answers.is_unchanged:
                return answers
            absent = [record for record in asked if record.pod_uid not in answers.by_uid]
            if not _doubt(len(absent), len(asked)) or not await self._answers_singly(absent):
                return answers
        log.warning("plugin.no-bulk", asked=len(asked), consequence="pods are asked one by one")
        self._rounds_one_by_one = _BULK_AGAIN_AFTER_ROUNDS
        return await self._ask_each(asked)

    async def _ask_together(self, asked: Sequence[Record], *, tag: str = "") -> Answers:
        began = time.monotonic()
        found = await self._plugin.status([record.pod for record in asked], tag=tag, wait_s=self._wait_s)
        if found.has_waited:
            self.waited_s = time.monotonic() - began
        wanted = {record.pod_uid for record in asked}
        return Answers(
            by_uid={PodUID(answer.uid): answer for answer in found.answers if answer.uid in wanted},
            unreadable=found.unreadable,
            tag=found.tag,
            is_unchanged=found.is_unchanged,
        )

    async def _answers_singly(self, records_: Sequence[Record]) -> bool:
        """Whether the plugin knows some of these when it is asked for one at a time."""
        try:
            return bool((await self._ask_each(records_[:_PROBES])).by_uid)
        except SDKError:
            return False

    async def _ask_each(self, asked: Sequence[Record]) -> Answers:
        """In bounded concurrency. A single question that fails says nothing about its pod; raises when all fail."""
        limit = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

        async def ask(record: Record) -> Answers | SDKError:
            async with limit:
                try:
                    return await self._ask_together([record])
                except SDKError as error:
                    return error

        found = await asyncio.gather(*(ask(record) for record in asked))
        errors = [item for item in found if isinstance(item, SDKError)]
        if errors and len(errors) == len(asked):
            raise errors[0]
        good = [item for item in found if isinstance(item, Answers)]
        return Answers(
            by_uid={uid: answer for item in good for uid, answer in item.by_uid.items()},
            unreadable=[str(error) for error in errors] + [text for item in good for text in item.unreadable],
        )

    async def look_up(self, unknown: Sequence[Record]) -> Mapping[PodUID, JobStatus]:
        """What the plugin says of jobs that are in no record yet; nothing when it cannot be asked now."""
        if not unknown:
            return {}
        try:
            return (await self._ask(unknown)).by_uid
        except SDKError as error:
            log.warning("status.not-looked-up", pods=len(unknown), error=str(error))
            return {}

    # --- concluding ---

    async def _observe(self, answers: Mapping[PodUID, JobStatus]) -> None:
        """In parts: when thousands of jobs end at once, the first are told and creates are written meanwhile."""
        uids = list(answers)
        for start in range(0, len(uids), COMMITTED_AT_ONCE):
            await self._ledger.commit(
                self._observed({uid: answers[uid] for uid in uids[start : start + COMMITTED_AT_ONCE]})
            )

    def _observed(self, answers: Mapping[PodUID, JobStatus]) -> list[Record]:
        changed = []
        for uid, answer in answers.items():
            record = self._ledger.get(uid)
            if record is None:
                continue
            try:
                news = self._concluded(record, answer)
            except msgspec.MsgspecError as error:
                log.warning("status.unreadable", pod_uid=uid, error=str(error))
                continue
            _tell_story(record, news)
            changed.append(news)
        return changed

    def adopted(self, record: Record, answer: JobStatus | None) -> Record:
        """A record that is being adopted, with what was looked up."""
        if answer is None:
            return record
        try:
            return self._concluded(record, answer)
        except msgspec.MsgspecError as error:
            log.warning("status.unreadable", pod_uid=record.pod_uid, error=str(error))
            return record

    def _concluded(self, record: Record, answer: JobStatus) -> Record:
        now = clock.now()
        if record.intent is Intent.CREATE:
            if not answer.job_id or self._creator.is_creating(record.pod_uid):
                return record
            record = records.accepted(record, JobID(answer.job_id), now)
        main, init = answer.containers or [], answer.init_containers or []
        return records.observed(record, main, init, answer.job_id, now, remark=answer.remark or None)

    async def _examine(self, absent: Sequence[Record]) -> None:
        """Ask for each absent job by itself: only then is its absence a proof, and it may be told after all."""
        if not absent:
            return
        answers = await self._ask_each(absent)
        await self._observe(answers.by_uid)
        if answers.unreadable:
            return
        missing = {record.pod_uid: record.job_id for record in absent if record.pod_uid not in answers.by_uid}
        known = [record for uid in missing if (record := self._ledger.get(uid)) is not None]
        await self._ledger.commit(
            [
                self._without_job(record)
                for record in known
                # What was asked says nothing of a job that a create has made or is making since then.
                if record.job_id == missing[record.pod_uid] and not self._creator.is_creating(record.pod_uid)
            ]
        )

    def _without_job(self, record: Record) -> Record:
        verdict = records.unmentioned(record, clock.now(), self._grace)
        if verdict.has_ended and record.intent is not Intent.DELETE:
            metrics.RECONCILED.labels("lost").inc()
            log.error("job.lost", pod=record.pod.full_name, pod_uid=record.pod_uid, job_id=record.job_id)
        return verdict

    def _note(self, problem: str, *, is_doubt: bool) -> None:
        metrics.DOUBT.set(is_doubt)
        if problem != self.problem:
            log.warning("status.doubtful", reason=problem) if problem else log.info("status.reliable")
        self.problem = problem


def _doubt(absent: int, asked: int) -> str:
    """A list much shorter than expected is doubted, not obeyed."""
    if absent >= _DOUBTED_FROM and absent * 2 > asked:
        return f"the plugin does not mention {absent} of {asked} jobs; their states are kept"
    return ""


def _examined(absent: Iterable[Record], *, is_doubted: bool) -> list[Record]:
    return [record for record in absent if not is_doubted or record.intent is Intent.DELETE]


def _tell_story(before: Record, after: Record) -> None:
    if after.has_ended and not before.has_ended:
        log.info("job.ended", pod=after.pod.full_name, pod_uid=after.pod_uid, job_id=after.job_id)
