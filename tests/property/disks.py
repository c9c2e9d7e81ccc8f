"""The disks of a world: one in memory, and a real directory under the real files store.

A death of the process is a power cut for a real one: of what was not synced some is there, torn files too.
"""

import asyncio
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from interlink.model import sealing
from interlink.model.errors import DamagedRecord
from interlink.model.ids import PodUID
from interlink.model.records import Record
from interlink.server.errors import StoreUnavailable
from interlink.server.store.files import FilesStore
from interlink.server.store.store import Damage, Restored, Store
from tests.property.tape import Call, Tape, after_a_power_cut


class Mortality:
    """Counts what has an effect; at the chosen count the process dies."""

    def __init__(self) -> None:
        self.dead = asyncio.Event()
        self._left: int | None = None

    def die_at(self, checkpoint: int | None) -> None:
        self._left = checkpoint

    def strikes(self) -> bool:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.dead.set()
        return self.dead.is_set()

    async def checkpoint(self) -> None:
        if self.strikes():
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)


class Disk(Protocol):
    is_full: bool

    def store(self, life: Mortality) -> Store:
        """What a new process finds."""
        ...

    def after_death(self, kept: float) -> None:
        """`kept`: how much of what was not synced is there, 0 to 1."""
        ...

    def contents(self) -> dict[PodUID, bytes]: ...

    def lose(self) -> None: ...

    def damage(self, uid: PodUID, keep: float) -> None: ...

    def close(self) -> None: ...


class MemoryDisk:
    """Sealed records; each write is whole or not at all, a batch may stop half-way."""

    def __init__(self) -> None:
        self.files: dict[PodUID, bytes] = {}
        self.is_full = False

    def store(self, life: Mortality) -> Store:
        return _MemoryDiskStore(self, life)

    def after_death(self, kept: float) -> None:
        """All that was written is synced."""

    def contents(self) -> dict[PodUID, bytes]:
        return dict(self.files)

    def lose(self) -> None:
        self.files.clear()

    def damage(self, uid: PodUID, keep: float) -> None:
        self.files[uid] = _beginning(self.files[uid], keep)

    def close(self) -> None:
        pass


class _MemoryDiskStore:
    def __init__(self, disk: MemoryDisk, life: Mortality) -> None:
        self._disk = disk
        self._life = life

    async def restore(self) -> Restored:
        restored = Restored(records=[], damaged=[])
        for uid, data in list(self._disk.files.items()):
            try:
                restored.records.append(sealing.load(data))
            except DamagedRecord as error:
                del self._disk.files[uid]
                restored.damaged.append(Damage(name=uid, reason=str(error)))
        return restored

    async def save(self, records: Sequence[Record]) -> None:
        for record in records:
            await self._life.checkpoint()
            if self._disk.is_full:
                raise StoreUnavailable("no space left")
            self._disk.files[record.pod_uid] = sealing.dump(record)
        await self._life.checkpoint()

    async def remove(self, uids: Sequence[PodUID]) -> None:
        for uid in uids:
            await self._life.checkpoint()
            self._disk.files.pop(uid, None)


class _Death(BaseException):
    """Nothing of the process goes on after it; nothing catches it."""


class FilesDisk:
    """The process may die before each call that reaches the operating system. Its calls are on a tape."""

    def __init__(self) -> None:
        self.is_full = False
        self._root = Path(tempfile.mkdtemp())
        self._folder = self._root / "CachedPods"
        self._folder.mkdir()
        self._calls: list[Call] = []
        self._life = Mortality()
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(asyncio, "to_thread", self._at_work)  # without threads the order is always the same

    def store(self, life: Mortality) -> Store:
        self._life = life
        self._calls = [
            call for number, file in enumerate(self._files()) for call in _synced(-number - 1, str(file), file)
        ]
        self._calls.append(Call("sync-directory", str(self._folder)))
        return FilesStore(self._root)

    async def _at_work(self, work: Callable[..., Any], *args: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: None)  # the tape knows what is synced
            Tape(self._folder, patch, calls=self._calls, before=self._before)
            try:
                return work(*args)
            except _Death:
                pass
        return await asyncio.get_running_loop().create_future()

    def _before(self, what: str) -> None:
        if what != "close" and self._life.strikes():
            raise _Death
        if what == "write" and self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def after_death(self, kept: float) -> None:
        found = after_a_power_cut(self._calls, lambda _, most: round(most * kept))
        self.lose()
        for name, data in found.items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(data)

    def contents(self) -> dict[PodUID, bytes]:
        return {PodUID(path.stem): path.read_bytes() for path in self._folder.glob("*.yaml")}

    def lose(self) -> None:
        shutil.rmtree(self._folder)
        self._folder.mkdir()

    def damage(self, uid: PodUID, keep: float) -> None:
        path = self._folder / f"{uid}.yaml"
        path.write_bytes(_beginning(path.read_bytes(), keep))

    def close(self) -> None:
        self._patch.undo()
        shutil.rmtree(self._root)

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.rglob("*") if path.is_file())


def _synced(number: int, name: str, file: Path) -> list[Call]:
    return [Call("create", number, name), Call("write", number, file.read_bytes()), Call("sync", number)]


def _beginning(data: bytes, keep: float) -> bytes:
    return data[: int(len(data) * keep)]
