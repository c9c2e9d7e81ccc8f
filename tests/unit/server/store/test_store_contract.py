"""What every store promises, and what the one with files promises beyond that."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from interlink.aio import files as durable
from interlink.model import records, sealing
from interlink.model.errors import NewerFormat
from interlink.model.ids import PodUID
from interlink.model.records import FORMAT, Record
from interlink.server.errors import StoreUnavailable
from interlink.server.store.files import FilesStore
from interlink.server.store.memory import MemoryStore
from interlink.server.store.store import Restored, Store
from tests.unit.builders import NOW, at, ended, raws, record

A, B = record("a"), record("b")
A_LATER = records.observed(A, raws(ended()), [], "j1", at(5))


@pytest.fixture(params=["files", "memory"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the same store, as a server does at each of its starts."""
    memory = MemoryStore()
    return (lambda: FilesStore(tmp_path)) if request.param == "files" else (lambda: memory)


async def restored(store: Store) -> dict[str, Record]:
    return {found.pod_uid: found for found in (await store.restore()).records}


async def test_a_new_store_is_empty(reopened: Callable[[], Store]) -> None:
    """Nothing is damaged in it."""
    assert await reopened().restore() == Restored(records=[], damaged=[])


async def test_what_was_saved_is_restored(reopened: Callable[[], Store]) -> None:
    """Every field of every record."""
    store = reopened()
    await store.restore()
    await store.save([A, B])

    assert await restored(reopened()) == {"a": A, "b": B}


async def test_the_last_save_of_a_record_counts(reopened: Callable[[], Store]) -> None:
    """There is one record for each pod."""
    store = reopened()
    await store.save([A])
    await store.save([A_LATER])

    assert await restored(reopened()) == {"a": A_LATER}


async def test_what_was_removed_is_not_restored(reopened: Callable[[], Store]) -> None:
    """Removing it again, or what never was, is fine."""
    store = reopened()
    await store.save([A, B])
    await store.remove([PodUID("a")])
    await store.remove([PodUID("a"), PodUID("never")])

    assert await restored(reopened()) == {"b": B}


@pytest.mark.parametrize("saved_last", [True, False])
async def test_saves_and_removals_keep_their_order(reopened: Callable[[], Store], saved_last: bool) -> None:
    """Also when they are asked at the same time: the one that was asked last counts."""
    store = reopened()
    steps = [store.save([A]), store.remove([PodUID("a")]), *([store.save([A_LATER])] if saved_last else [])]
    await asyncio.gather(*steps)

    assert await restored(reopened()) == ({"a": A_LATER} if saved_last else {})


async def test_saving_and_removing_nothing_is_fine(reopened: Callable[[], Store]) -> None:
    """It costs nothing either."""
    store = reopened()
    await store.save([])
    await store.remove([])

    assert await restored(reopened()) == {}


async def test_many_saves_at_once_are_all_there(reopened: Callable[[], Store]) -> None:
    """Whoever returned from a save can rely on it."""
    store, many = reopened(), [record(f"u{number}") for number in range(40)]
    await asyncio.gather(*(store.save([each]) for each in many))

    assert await restored(reopened()) == {each.pod_uid: each for each in many}


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a store on `tmp_path` keeps its records."""
    path = tmp_path / "CachedPods"
    path.mkdir()
    return path


@pytest.fixture
def store(tmp_path: Path) -> FilesStore:
    return FilesStore(tmp_path)


DAMAGED = {
    "empty": (b"", "not a record"),
    "words": (b"words", "not a record"),
    "half": (sealing.dump(A)[:-30], "not a record"),
    "edited": (sealing.dump(A).replace(b'"j1"', b'"j2"'), "the checksum does not match"),
    "anothers": (sealing.dump(B), "it is the record of b"),
}


@pytest.mark.parametrize("name", list(DAMAGED))
async def test_a_damaged_record_is_set_aside(store: FilesStore, folder: Path, name: str) -> None:
    """It is kept with the reason told, the others are restored, and the next start finds nothing wrong."""
    content, reason = DAMAGED[name]
    (folder / "a.yaml").write_bytes(content)
    (folder / "b.yaml").write_bytes(sealing.dump(B))
    found = await store.restore()

    assert ([r.pod_uid for r in found.records], [d.name for d in found.damaged]) == (["b"], ["a.yaml"])
    assert reason in found.damaged[0].reason
    assert (folder / "damaged" / "a.yaml").read_bytes() == content
    assert (await store.restore()).damaged == []


async def test_a_record_under_a_strange_name_is_set_aside(store: FilesStore, folder: Path) -> None:
    """A file whose name is no pod UID is no record of ours."""
    (folder / "a b.yaml").write_bytes(sealing.dump(A))

    assert [d.name for d in (await store.restore()).damaged] == ["a b.yaml"]


async def test_a_record_damaged_twice_replaces_the_one_set_aside(store: FilesStore, folder: Path) -> None:
    """The newest damage is what is kept."""
    for content in (b"first", b"second"):
        (folder / "a.yaml").write_bytes(content)
        await store.restore()

    assert (folder / "damaged" / "a.yaml").read_bytes() == b"second"


async def test_leftover_temporaries_are_removed(store: FilesStore, folder: Path) -> None:
    """A server that was killed while it wrote leaves them; the record is what it was before."""
    (folder / "a.yaml").write_bytes(sealing.dump(A))
    (folder / ".a.yaml.tmp").write_bytes(b"half")
    found = await store.restore()

    assert (found.records, found.damaged) == ([A], [])
    assert [path.name for path in folder.iterdir()] == ["a.yaml"]


async def test_other_files_are_left_alone(store: FilesStore, folder: Path) -> None:
    """A note of the administrator is not ours."""
    (folder / "README").write_text("mine")
    await store.restore()

    assert (folder / "README").read_text() == "mine"


async def test_a_record_of_a_newer_program_stops_the_start(store: FilesStore, folder: Path) -> None:
    """It is left where it is; the error names the file."""
    (folder / "a.yaml").write_bytes(sealing.dump(msgspec.structs.replace(A, format=FORMAT + 1)))

    with pytest.raises(NewerFormat, match=f"{folder}/a.yaml: "):
        await store.restore()
    assert (folder / "a.yaml").exists()


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """Where a file is in its place, for example."""
    (tmp_path / "CachedPods").touch()

    with pytest.raises(StoreUnavailable, match=f"cannot use {tmp_path}/CachedPods: "):
        await FilesStore(tmp_path).restore()


async def test_a_cache_deleted_under_a_running_server_is_made_anew(store: FilesStore, folder: Path) -> None:
    """The next save does not fail."""
    await store.restore()
    folder.rmdir()
    await store.save([A])

    assert (await store.restore()).records == [A]


class Disk:
    """Counts directory syncs; full for as long as it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.is_full = False
        self._sync, self._fsync = durable.sync_directory, os.fsync
        monkeypatch.setattr(durable, "sync_directory", self._sync_directory)
        monkeypatch.setattr(os, "fsync", self._sync_file)

    def _sync_directory(self, path: Path) -> None:
        self.syncs += 1
        self._sync(path)

    def _sync_file(self, descriptor: int) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._fsync(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


async def test_saves_at_the_same_time_share_their_work(store: FilesStore, folder: Path, disk: Disk) -> None:
    """What comes while one write is under way is done together in the next."""
    await asyncio.gather(*(store.save([record(f"u{number}")]) for number in range(50)))

    assert len(list(folder.iterdir())) == 50
    assert disk.syncs <= 4


async def test_a_full_disk_is_told_and_leaves_what_was_there(store: FilesStore, folder: Path, disk: Disk) -> None:
    """The error says where and why; the older record stays whole."""
    await store.save([A])
    disk.is_full = True

    with pytest.raises(StoreUnavailable, match=f"cannot write to {folder}: No space left on device"):
        await store.save([A_LATER])
    assert (await store.restore()).records == [A]


async def test_everyone_of_a_batch_that_failed_is_told(store: FilesStore, disk: Disk) -> None:
    """Nobody believes that a record is safe when it is not."""
    disk.is_full = True
    outcomes = await asyncio.gather(*(store.save([record(f"u{n}")]) for n in range(5)), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 5


async def test_a_batch_that_failed_does_not_spoil_the_next(store: FilesStore, disk: Disk) -> None:
    """Once there is room again, everything is saved as usual."""
    disk.is_full = True
    with pytest.raises(StoreUnavailable):
        await store.save([A])
    disk.is_full = False
    await store.save([B])

    assert (await store.restore()).records == [B]


async def test_a_cancelled_save_is_finished(store: FilesStore, folder: Path) -> None:
    """Once the disk is at work, the record is written wholly, and only then the cancellation goes on."""
    task = asyncio.ensure_future(store.save([A]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert sealing.load((folder / "a.yaml").read_bytes()) == A


async def test_no_record_is_readable_by_others(store: FilesStore, folder: Path) -> None:
    """The files are the server's own."""
    await store.save([A])

    assert (folder / "a.yaml").stat().st_mode & 0o777 == 0o600


def test_the_moment_of_a_record_is_kept_to_the_microsecond() -> None:
    """Restored times compare equal to those in memory."""
    exact = records.replace(A, NOW.replace(microsecond=123456))

    assert sealing.load(sealing.dump(exact)).updated_at == exact.updated_at
