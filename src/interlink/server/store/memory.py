"""A store that forgets at the end of the process; for tests."""

from collections.abc import Sequence

from interlink.model.ids import PodUID
from interlink.model.records import Record
from interlink.server.store.store import Restored


class MemoryStore:
    def __init__(self) -> None:
        self._records: dict[PodUID, Record] = {}

    async def restore(self) -> Restored:
        return Restored(records=list(self._records.values()), damaged=[])

    async def save(self, records: Sequence[Record]) -> None:
        self._records.update({record.pod_uid: record for record in records})

    async def remove(self, uids: Sequence[PodUID]) -> None:
        for uid in uids:
            self._records.pop(uid, None)
