"""One question per interval about all live jobs, and what the answer changes."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec
import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.model import records
from interlink.model.ids import PodUID
from interlink.model.records import Intent, Record
from interlink.sdk.client import PluginClient
from interlink.sdk.errors import SDKError
from interlink.server.ledger import Ledger
from interlink.wire.messages import JobStatus

log = structlog.get_logger(__name__)

_EXPLICIT_QUESTIONS_AT_ONCE = 8
_DOUBTED_FROM = 4


class Poller:
    def __init__(self, ledger: Ledger, plugin: PluginClient, *, job_lost_grace_s: float) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._grace = timedelta(seconds=job_lost_grace_s)
        self._one_at_a_time = asyncio.Lock()
        self.problem = ""

    async def round(self) -> None:
        """Ask once about all live jobs; nothing is asked when there are none.

        A plugin that does not answer changes no pod; the reason is kept in `problem`.
        """
        async with self._one_at_a_time:
            try:
                await self._round()
            except SDKError as error:
                self._note(f"the plugin could not be asked: {error}")

    async def _round(self) -> None:
        live = {uid: record for uid, record in self._ledger.newest().items() if record.is_live}
        if not live:
            self._note("")
            return
        answers, unreadable = await self._plugin.status([record.pod for record in live.values()])
        mentioned = {PodUID(answer.uid): answer for answer in answers if answer.uid in live}
        with step("server.observe"):
            await self._ledger.commit(self._observed(mentioned))
        absent = [record for uid, record in live.items() if uid not in mentioned]
        doubt = _doubt(len(absent), len(live)) or "; ".join(unreadable[:3])
        self._note(doubt)
        await self._examine(_examined(absent, is_doubted=bool(doubt)))

    def _observed(self, answers: Mapping[PodUID, JobStatus]) -> list[Record]:
        now = clock.now()
        changed = []
        for uid, answer in answers.items():
            record = self._ledger.get(uid)
            if record is None:
                continue
            try:
                news = records.observed(
                    record, answer.containers or [], answer.init_containers or [], answer.job_id, now
                )
            except msgspec.MsgspecError as error:
                log.warning("status.unreadable", pod_uid=uid, error=str(error))
                continue
            _tell_story(record, news)
            changed.append(news)
        return changed

    async def _examine(self, absent: Sequence[Record]) -> None:
        """Ask for each absent job by itself: only then is its absence a proof."""
        limit = asyncio.Semaphore(_EXPLICIT_QUESTIONS_AT_ONCE)

        async def ask(record: Record) -> Record | None:
            async with limit:
                answers, unreadable = await self._plugin.status([record.pod])
            if unreadable or any(answer.uid == record.pod_uid for answer in answers):
                return None
            newest = self._ledger.get(record.pod_uid)
            return newest and records.unmentioned(newest, clock.now(), self._grace)

        verdicts = await asyncio.gather(*(ask(record) for record in absent))
        await self._ledger.commit([verdict for verdict in verdicts if verdict is not None])

    def _note(self, problem: str) -> None:
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
