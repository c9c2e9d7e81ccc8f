"""Delete, for good: a durable tombstone first, then the plugin is asked until the job has ended or never was."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime

import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.model import records
from interlink.model.ids import Owner, PodUID
from interlink.model.pods import Pod
from interlink.model.records import Intent, Record
from interlink.sdk.errors import NotFound, Refused, SDKError
from interlink.server.creating import Creator
from interlink.server.dispatching import Dispatcher
from interlink.server.ledger import Ledger
from interlink.wire import codec

log = structlog.get_logger(__name__)

_REPEAT_AFTER_S = 5.0
_AT_ONCE = 8


class Deleter:
    def __init__(self, ledger: Ledger, plugin: Dispatcher, creator: Creator) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._creator = creator
        self._next_try: dict[PodUID, float] = {}

    async def delete(self, pod: Pod, body: bytes, owner: Owner, *, session: str) -> Record:
        """The tombstone is durable on return; the plugin has been asked once, or will be asked by `repeat`.

        Raises Refused for another owner's pod, StoreUnavailable.
        """
        now = clock.now()
        record = self._ledger.get(PodUID(pod.uid)) or records.begun(pod, owner, now)
        if record.owner != owner:
            raise Refused(f"pod {pod.uid} belongs to {record.owner}, not to {owner}")
        await self.bury(records.deleting(record, pod, now), body, session=session)
        return self._ledger.get(record.pod_uid) or record

    async def bury(self, tombstone: Record, body: bytes | None = None, *, session: str = "") -> None:
        with step("server.tombstone"):
            await self._ledger.commit([tombstone])
        self._creator.hurry(tombstone.pod_uid)
        await self._ask(tombstone, body or codec.encode(tombstone.pod), session)

    async def repeat(self) -> None:
        """Ask again for every tombstone whose job is not known to have ended, or that the plugin has not confirmed."""
        moment = time.monotonic()
        open_ = [r for r in self._ledger.newest().values() if r.intent is Intent.DELETE and not r.is_over]
        self._next_try = {r.pod_uid: self._next_try.get(r.pod_uid, 0.0) for r in open_}
        due = [record for record in open_ if moment >= self._next_try[record.pod_uid]]
        limit = asyncio.Semaphore(_AT_ONCE)

        async def ask(record: Record) -> None:
            async with limit:
                await self._ask(record, codec.encode(record.pod), "")

        errors = await asyncio.gather(*(ask(record) for record in due), return_exceptions=True)
        for record, error in zip(due, errors, strict=True):
            if isinstance(error, Exception):
                log.error("job.delete-failed", pod_uid=record.pod_uid, error=repr(error), exc_info=error)

    async def _ask(self, record: Record, body: bytes, session: str) -> None:
        """A create in flight comes first: what it has made can then be deleted."""
        if self._creator.is_creating(record.pod_uid):
            return
        self._next_try[record.pod_uid] = time.monotonic() + max(_REPEAT_AFTER_S, record.pod.grace_s)
        try:
            with step("server.forward-delete"):
                await self._plugin.delete(body, session=session)
            await self._conclude(record.pod_uid, records.confirmed)
        except NotFound:
            await self._conclude(record.pod_uid, records.settled)
        except SDKError as error:
            self._next_try[record.pod_uid] = time.monotonic() + _REPEAT_AFTER_S
            log.warning("job.delete-failed", pod_uid=record.pod_uid, job_id=record.job_id, error=str(error))

    async def _conclude(self, uid: PodUID, conclusion: Callable[[Record, datetime], Record]) -> None:
        newest = self._ledger.get(uid)
        if newest is not None:
            await self._ledger.commit([conclusion(newest, clock.now())])
