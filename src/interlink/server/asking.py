"""The question to the plugin: about all at once where it can, one by one where it cannot, and waiting for news.

A plugin that notices news by itself is asked to wait with an answer that would be the last one again. That costs no
question more, and an end is heard of at once.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
import structlog

from interlink.model.ids import PodUID
from interlink.model.pods import Pod
from interlink.model.records import Record
from interlink.sdk.client import Statuses
from interlink.sdk.errors import OutcomeUnknown, Rejected, SDKError
from interlink.server.dispatching import Dispatcher
from interlink.wire.messages import JobStatus

log = structlog.get_logger(__name__)

_QUESTIONS_AT_ONCE = 8
_DOUBTED_FROM = 4
_PROBES = 4
_BULK_AGAIN_AFTER_ROUNDS = 300
_INTERVALS = 2
"""For so many a plugin may wait for news; after one the question is given up if somebody new is to be asked about."""
_LOOK_S = 0.5
_LATE_S = 10.0
"""After the time that a plugin was given it looks at its jobs; what takes longer is asked without waiting."""
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


class Asker:
    """open_: those to ask about now. `waited_s`: how long the plugin has waited for news before its last answer."""

    def __init__(self, plugin: Dispatcher, open_: Callable[[], Mapping[PodUID, Record]], *, interval_s: float) -> None:
        self._plugin = plugin
        self._open = open_
        self._interval_s = interval_s
        self._rounds_one_by_one = 0
        self._heard = Heard()
        self._without_tag = 0
        self.waited_s = 0.0

    async def question(self, asked: Mapping[PodUID, Record]) -> Answers | None:
        """The question of the interval. None when there is nothing to ask, or nothing new."""
        heard, self._heard, self.waited_s = self._heard, Heard(), 0.0
        if not asked:
            return None
        self._without_tag = max(0, self._without_tag - 1)
        tag = "" if self._without_tag else heard.tag_for(asked.keys())
        answers = await self.ask(list(asked.values()), tag=tag)
        if answers.is_unchanged:
            self._heard = msgspec.structs.replace(heard, tag=answers.tag, times=heard.times + 1)
            return None
        return answers

    def conclude(self, answers: Answers) -> None:
        """Everybody was mentioned and nothing is left to conclude: the next question may wait for another answer."""
        if answers.tag and not answers.unreadable:
            self._heard = Heard(pods=frozenset(answers.by_uid), tag=answers.tag)

    async def ask(self, asked: Sequence[Record], *, tag: str = "") -> Answers:
        """In one question; one by one from a plugin that has been found unable to answer many at once."""
        if self._rounds_one_by_one > 0 and len(asked) > 1:
            self._rounds_one_by_one -= 1
            return await self.ask_each(asked)
        try:
            answers = await self._ask_together(asked, tag=tag)
        except (OutcomeUnknown, Rejected):
            if tag:  # says nothing yet of questions as others ask them
                self._without_tag = _SAME_AT_MOST
                return await self.ask(asked)
            if len(asked) == 1 or not await self._answers_singly(asked):
                raise
        else:
            if answers.is_unchanged:
                return answers
            absent = [record for record in asked if record.pod_uid not in answers.by_uid]
            if not doubt_of(len(absent), len(asked)) or not await self._answers_singly(absent):
                return answers
        log.warning("plugin.no-bulk", asked=len(asked), consequence="pods are asked one by one")
        self._rounds_one_by_one = _BULK_AGAIN_AFTER_ROUNDS
        return await self.ask_each(asked)

    async def _ask_together(self, asked: Sequence[Record], *, tag: str = "") -> Answers:
        began = time.monotonic()
        found = await self._status([record.pod for record in asked], tag)
        if found.has_waited:
            self.waited_s = time.monotonic() - began
        wanted = {record.pod_uid for record in asked}
        return Answers(
            by_uid={PodUID(answer.uid): answer for answer in found.answers if answer.uid in wanted},
            unreadable=found.unreadable,
            tag=found.tag,
            is_unchanged=found.is_unchanged,
        )

    async def _status(self, pods: Sequence[Pod], tag: str) -> Statuses:
        """A question that waits is given up when its interval is over and there is somebody new to ask about."""
        wait_s = int(_INTERVALS * self._interval_s)
        too_late = time.monotonic() + wait_s + _LATE_S
        asked = {pod.uid for pod in pods}
        question = asyncio.create_task(self._plugin.status(pods, tag=tag, wait_s=wait_s))
        try:
            await asyncio.wait([question], timeout=self._interval_s if tag else None)
            while not question.done() and self._open().keys() <= asked:
                if time.monotonic() > too_late:
                    raise OutcomeUnknown("the plugin has not answered in the time that it was given to wait for news")
                await asyncio.wait([question], timeout=_LOOK_S)
            return question.result() if question.done() else Statuses(tag=tag, has_waited=True, is_unchanged=True)
        finally:
            question.cancel()

    async def _answers_singly(self, records_: Sequence[Record]) -> bool:
        """Whether the plugin knows some of these when it is asked for one at a time."""
        try:
            return bool((await self.ask_each(records_[:_PROBES])).by_uid)
        except SDKError:
            return False

    async def ask_each(self, asked: Sequence[Record]) -> Answers:
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


def doubt_of(absent: int, asked: int) -> str:
    """A list much shorter than expected is doubted, not obeyed."""
    if absent >= _DOUBTED_FROM and absent * 2 > asked:
        return f"the plugin does not mention {absent} of {asked} jobs; their states are kept"
    return ""
