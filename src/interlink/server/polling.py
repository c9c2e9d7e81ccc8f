"""One question per interval about all live jobs, and what the answer changes.

Absent is not finished: a job that the answer does not mention keeps its state until it has been asked for by itself,
and still is not mentioned for a grace period. An answer that leaves out most of what was asked is doubted.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec
import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.model import records
from interlink.model.ids import JobID, PodUID
from interlink.model.records import Intent, Record
from interlink.sdk.errors import SDKError
from interlink.server import metrics
from interlink.server.asking import Asker, doubt_of
from interlink.server.creating import Creator
from interlink.server.dispatching import Dispatcher
from interlink.server.ledger import Ledger
from interlink.wire.messages import JobStatus

log = structlog.get_logger(__name__)

COMMITTED_AT_ONCE = 100
"""Records that are written together; whatever else is to be written waits no longer than for these."""


class Poller:
    """`problem` is what was wrong in the last round."""

    def __init__(
        self, ledger: Ledger, plugin: Dispatcher, creator: Creator, *, job_lost_grace_s: float, interval_s: float
    ) -> None:
        self._ledger = ledger
        self._creator = creator
        self._grace = timedelta(seconds=job_lost_grace_s)
        self._asker = Asker(plugin, self._open, interval_s=interval_s)
        self._one_at_a_time = asyncio.Lock()
        self.problem = ""

    @property
    def waited_s(self) -> float:
        """How much of the interval the last round has spent waiting for news."""
        return self._asker.waited_s

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
        asked = self._open()
        answers = await self._asker.question(asked)
        if answers is None:
            self._note("", is_doubt=False)
            return
        with step("server.observe"):
            await self._observe(answers.by_uid)
        absent = [record for uid, record in asked.items() if uid not in answers.by_uid and record.is_live]
        doubt = doubt_of(len(absent), len(asked))
        self._note(doubt or "; ".join(answers.unreadable[:3]), is_doubt=bool(doubt))
        await self._examine(_examined(absent, is_doubted=bool(doubt or answers.unreadable)))
        if answers.by_uid.keys() == asked.keys() and self._are_settled(answers.by_uid):
            self._asker.conclude(answers)

    def _are_settled(self, uids: Iterable[PodUID]) -> bool:
        """Not while it is open which job an answer tells of: that does not depend on the plugin alone."""
        known = [self._ledger.get(uid) for uid in uids]
        return all(record is not None and record.intent is not Intent.CREATE for record in known)

    def _open(self) -> dict[PodUID, Record]:
        return {uid: record for uid, record in self._ledger.newest().items() if self._is_open(record)}

    def _is_open(self, record: Record) -> bool:
        """Live jobs, and creates of an earlier life; none whose create is on its way, also if it is deleted meanwhile:
        that the plugin does not know its job yet proves nothing."""
        is_wanted = record.is_live or (record.intent is Intent.CREATE and not record.has_ended)
        return is_wanted and not self._creator.is_creating(record.pod_uid)

    async def look_up(self, unknown: Sequence[Record]) -> Mapping[PodUID, JobStatus]:
        """What the plugin says of jobs that are in no record yet; nothing when it cannot be asked now."""
        if not unknown:
            return {}
        try:
            return (await self._asker.ask(unknown)).by_uid
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
        answers = await self._asker.ask_each(absent)
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


def _examined(absent: Iterable[Record], *, is_doubted: bool) -> list[Record]:
    return [record for record in absent if not is_doubted or record.intent is Intent.DELETE]


def _tell_story(before: Record, after: Record) -> None:
    if after.has_ended and not before.has_ended:
        log.info("job.ended", pod=after.pod.full_name, pod_uid=after.pod_uid, job_id=after.job_id)
