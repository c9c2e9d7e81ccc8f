"""Records as files: `CachedPods/<podUID>.yaml`, one a pod, damaged ones in `CachedPods/damaged/`.

Writes that come while another is under way wait for it and are then done together, with one directory sync.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from interlink.aio import files
from interlink.aio.supervising import run_to_end
from interlink.model import sealing
from interlink.model.errors import DamagedRecord, InvalidID, NewerFormat
from interlink.model.ids import PodUID, pod_uid
from interlink.model.records import Record
from interlink.server.errors import StoreUnavailable
from interlink.server.store.store import Damage, Restored

_SUFFIX = ".yaml"


class _Batch:
    """Writes and removals (None) that will be done together."""

    def __init__(self) -> None:
        self.contents: dict[Path, bytes | None] = {}
        self.is_done = False
        self.error: OSError | None = None


class FilesStore:
    def __init__(self, directory: Path) -> None:
        self._folder = directory / "CachedPods"
        self._lock = asyncio.Lock()
        self._open_batch = _Batch()

    async def restore(self) -> Restored:
        """Raises StoreUnavailable when the directory cannot be used, NewerFormat for a record that is too new."""
        try:
            return await asyncio.to_thread(self._restore)
        except OSError as error:
            raise StoreUnavailable(f"cannot use {self._folder}: {error.strerror}") from error

    def _restore(self) -> Restored:
        files.make_directory(self._folder)
        for leftover in self._folder.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                leftover.unlink()
        restored = look(self._folder)
        for damage in restored.damaged:
            self._set_aside(self._folder / damage.name)
        return restored

    def _set_aside(self, path: Path) -> None:
        folder = self._folder / "damaged"
        files.make_directory(folder)
        path.replace(folder / path.name)
        files.sync_directory(self._folder)

    async def save(self, records: Sequence[Record]) -> None:
        await self._write({self._path(record.pod_uid): sealing.dump(record) for record in records})

    async def remove(self, uids: Sequence[PodUID]) -> None:
        await self._write(dict.fromkeys((self._path(uid) for uid in uids), None))

    async def _write(self, contents: dict[Path, bytes | None]) -> None:
        if not contents:
            return
        batch = self._open_batch
        batch.contents.update(contents)
        async with self._lock:
            if not batch.is_done:
                self._open_batch = _Batch()
                await run_to_end(self._finish(batch))
        if batch.error is not None:
            raise StoreUnavailable(f"cannot write to {self._folder}: {batch.error.strerror}") from batch.error

    async def _finish(self, batch: _Batch) -> None:
        try:
            await asyncio.to_thread(self._apply, batch.contents)
        except OSError as error:
            batch.error = error
        batch.is_done = True

    def _apply(self, contents: dict[Path, bytes | None]) -> None:
        files.make_directory(self._folder)
        files.write_together({path: data for path, data in contents.items() if data is not None})
        files.remove_durably([path for path, data in contents.items() if data is None])

    def _path(self, uid: PodUID) -> Path:
        return self._folder / f"{pod_uid(uid)}{_SUFFIX}"


def look(folder: Path) -> Restored:
    """Every record of a `CachedPods` folder; changes nothing. Raises OSError, and NewerFormat naming the file."""
    restored = Restored(records=[], damaged=[])
    for path in sorted(folder.glob(f"*{_SUFFIX}"), key=str):
        try:
            restored.records.append(_record(path))
        except NewerFormat as error:
            raise NewerFormat(f"{path}: {error}") from error
        except (DamagedRecord, InvalidID, OSError) as error:
            restored.damaged.append(Damage(name=path.name, reason=str(error)))
    return restored


def _record(path: Path) -> Record:
    """Raises DamagedRecord; also for a record that lies under another pod's name."""
    uid = pod_uid(path.stem)
    record = sealing.load(files.read_regular(path))
    if record.pod_uid != uid:
        raise DamagedRecord(f"it is the record of {record.pod_uid}")
    return record
