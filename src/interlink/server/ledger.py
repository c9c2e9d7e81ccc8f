"""The records in memory: the newest of each pod, and what of it is durable and may be told.

A change is made in one step without waiting (`get`, decide, `commit`), so no two changes of a record can overtake each
other; it is told to virtual kubelets only after the store has it. `epoch` names this life of the ledger: revisions of
another epoch mean nothing.
"""

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence

from interlink.aio.supervising import run_to_end
from interlink.model.ids import Owner, PodUID
from interlink.model.records import Record
from interlink.server.errors import StoreUnavailable
from interlink.server.store.store import Restored, Store


class Ledger:
    def __init__(self, store: Store) -> None:
        self.epoch = uuid.uuid4().hex
        self.revision = 0
        self._store = store
        self._newest: dict[PodUID, Record] = {}
        self._told: dict[PodUID, Record] = {}
        self._revisions: dict[Owner, dict[PodUID, int]] = {}
        self._first_told: dict[PodUID, int] = {}
        self._news = asyncio.Event()
        self.problem = ""
        """Why the last change could not be written; empty while writing works."""

    async def restore(self) -> Restored:
        restored = await self._store.restore()
        for record in restored.records:
            self._newest[record.pod_uid] = record
            self._tell(record)
        return restored

    def get(self, uid: PodUID) -> Record | None:
        """The newest record; perhaps not durable yet."""
        return self._newest.get(uid)

    def newest(self) -> Mapping[PodUID, Record]:
        return self._newest

    def told(self, uid: PodUID) -> Record | None:
        return self._told.get(uid)

    def all_told(self) -> Iterable[Record]:
        return self._told.values()

    async def commit(self, records: Sequence[Record]) -> None:
        """Durable and told on return. Raises StoreUnavailable; then it is as if nothing had been changed.

        A record that somebody else is just writing is written again: whoever returns from here may rely on it. What has
        been begun is brought to its end, also when the caller is cancelled.
        """
        news = [record for record in records if self._told.get(record.pod_uid) is not record]
        for record in news:
            self._newest[record.pod_uid] = record
        await run_to_end(self._write(news))

    async def _write(self, news: Sequence[Record]) -> None:
        try:
            await self._store.save(news)
        except StoreUnavailable as error:
            self.problem = str(error)
            for record in news:
                self._take_back(record)
            raise
        if news:
            self.problem = ""
        for record in news:
            if record.pod_uid in self._newest:  # not forgotten meanwhile
                self._tell(record)

    def _take_back(self, record: Record) -> None:
        """Return to what is durable, unless a later change builds on this record: then that one decides."""
        if self._newest.get(record.pod_uid) is not record:
            return
        durable = self._told.get(record.pod_uid)
        if durable is None:
            del self._newest[record.pod_uid]
        else:
            self._newest[record.pod_uid] = durable

    async def forget(self, uids: Sequence[PodUID]) -> None:
        await self._store.remove(uids)
        for uid in uids:
            record = self._newest.pop(uid, None)
            self._told.pop(uid, None)
            self._first_told.pop(uid, None)
            if record is not None:
                self._revisions.get(record.owner, {}).pop(uid, None)

    def changes(self, owner: Owner, since: int) -> list[tuple[Record, int]]:
        """What has been told after the revision `since`, newest first."""
        found = []
        revisions = self._revisions.get(owner, {})
        for uid in reversed(revisions):
            if revisions[uid] <= since:
                break
            found.append((self._told[uid], revisions[uid]))
        return found

    def told_until(self, owner: Owner, epoch: str, revision: int) -> list[PodUID]:
        """The pods an owner that has seen `revision` of `epoch` has heard of, whatever has changed of them since."""
        if epoch != self.epoch or revision > self.revision:
            return []
        return [uid for uid in self._revisions.get(owner, {}) if self._first_told[uid] <= revision]

    async def wait(self, owner: Owner, since: int, timeout_s: float) -> None:
        """Return when there is something to tell, at the latest after `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.changes(owner, since):
                    await self._news.wait()
        except TimeoutError:
            pass

    def _tell(self, record: Record) -> None:
        self.revision += 1
        self._told[record.pod_uid] = record
        revisions = self._revisions.setdefault(record.owner, {})
        revisions.pop(record.pod_uid, None)
        revisions[record.pod_uid] = self.revision
        self._first_told.setdefault(record.pod_uid, self.revision)
        self._news.set()
        self._news = asyncio.Event()
