"""Records in memory: what is durable, what may be told, and in which order."""

import asyncio
from collections.abc import Sequence

import pytest

from interlink.model import records
from interlink.model.ids import PodUID
from interlink.model.records import Record
from interlink.server.errors import StoreUnavailable
from interlink.server.ledger import Ledger
from interlink.server.store.memory import MemoryStore
from tests.unit.builders import NOW, OTHER, OWNER, at, raws, record, running
from tests.unit.virtual_time import in_virtual_time

A, B, C = record("a"), record("b"), record("c")
UID = PodUID("a")


class SlowStore(MemoryStore):
    """Each save waits until it is let through; may be full."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.is_full = False
        self.saves = 0

    async def save(self, records: Sequence[Record]) -> None:
        self.saves += 1
        await self.gate.wait()
        if self.is_full:
            raise StoreUnavailable("no space left")
        await super().save(records)


def later(known: Record, seconds: float = 1) -> Record:
    return records.replace(known, at(seconds))


def names(ledger: Ledger, since: int = 0) -> list[str]:
    return [found.pod_uid for found, _ in ledger.changes(OWNER, since)]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(MemoryStore())


async def test_a_committed_record_is_told(ledger: Ledger) -> None:
    """It is the newest, it is durable and a virtual kubelet may learn of it."""
    await ledger.commit([A])

    assert (ledger.get(UID), ledger.told(UID), ledger.revision) == (A, A, 1)


async def test_restored_records_are_told() -> None:
    """After a restart the server answers at once with what it had."""
    store = MemoryStore()
    await store.save([A, B])
    ledger = Ledger(store)
    await ledger.restore()

    assert sorted(names(ledger)) == ["a", "b"]
    assert set(ledger.newest()) == {"a", "b"}


async def test_each_life_of_a_ledger_has_an_epoch_of_its_own() -> None:
    """Revisions of another epoch mean nothing."""
    store = MemoryStore()

    assert Ledger(store).epoch != Ledger(store).epoch


async def test_changes_come_newest_first(ledger: Ledger) -> None:
    """A record that changes again stands at its new place only."""
    await ledger.commit([A, B])
    await ledger.commit([C])
    await ledger.commit([later(A)])

    assert names(ledger) == ["a", "c", "b"]


async def test_only_what_is_newer_is_told(ledger: Ledger) -> None:
    """Each change has a revision above all before it."""
    await ledger.commit([A])
    seen = ledger.revision
    await ledger.commit([B])
    await ledger.commit([later(A)])

    assert names(ledger, seen) == ["a", "b"]
    assert [revision for _, revision in ledger.changes(OWNER, seen)] == [3, 2]
    assert names(ledger, ledger.revision) == []


async def test_owners_see_their_own_records_only(ledger: Ledger) -> None:
    """Two virtual kubelets share a server without seeing each other."""
    await ledger.commit([A, record("x", owner=OTHER)])

    assert names(ledger) == ["a"]
    assert [found.pod_uid for found, _ in ledger.changes(OTHER, 0)] == ["x"]


async def test_committing_what_is_known_does_nothing(ledger: Ledger) -> None:
    """An answer without news is neither written nor told."""
    await ledger.commit([A])
    await ledger.commit([A])

    assert ledger.revision == 1


async def test_a_change_is_told_only_when_it_is_durable() -> None:
    """Until then it is the newest, so that decisions build on it, but nobody learns of it."""
    store = SlowStore()
    ledger = Ledger(store)
    task = asyncio.ensure_future(ledger.commit([A]))
    await asyncio.sleep(0)
    between = (ledger.get(UID), ledger.told(UID), names(ledger))
    store.gate.set()
    await task

    assert between == (A, None, [])
    assert ledger.told(UID) == A


async def test_a_change_that_cannot_be_written_is_taken_back() -> None:
    """It is as if it had never been: a new record is unknown, a changed one is what it was."""
    store = SlowStore()
    store.gate.set()
    ledger = Ledger(store)
    await ledger.commit([A])
    store.is_full = True
    with pytest.raises(StoreUnavailable):
        await ledger.commit([later(A), B])

    assert (ledger.get(UID), ledger.get(PodUID("b")), names(ledger)) == (A, None, ["a"])


async def test_trouble_with_the_disk_is_shown_until_it_is_over() -> None:
    """The text is the store's; a change that is written ends it."""
    store = SlowStore()
    store.gate.set()
    store.is_full = True
    ledger = Ledger(store)
    with pytest.raises(StoreUnavailable):
        await ledger.commit([A])
    problem = ledger.problem
    store.is_full = False
    await ledger.commit([A])

    assert (problem, ledger.problem) == ("no space left", "")


async def test_a_later_change_is_not_taken_back_with_an_earlier_one() -> None:
    """Where another change was built on the one that failed, that one decides."""
    store = SlowStore()
    ledger = Ledger(store)
    store.is_full = True
    first = asyncio.ensure_future(ledger.commit([A]))
    await asyncio.sleep(0)
    newer = later(A)
    second = asyncio.ensure_future(ledger.commit([newer]))
    await asyncio.sleep(0)
    assert ledger.get(UID) is newer
    store.gate.set()
    await asyncio.wait([first, second])

    assert isinstance(first.exception(), StoreUnavailable)
    assert isinstance(second.exception(), StoreUnavailable)
    assert ledger.get(UID) is None


async def test_a_cancelled_commit_leaves_nothing_untold() -> None:
    """Either the change is told or it is taken back, also when the one who asked has gone meanwhile."""
    store = SlowStore()
    ledger = Ledger(store)
    task = asyncio.ensure_future(ledger.commit([A]))
    await asyncio.sleep(0)
    task.cancel()
    store.gate.set()
    await asyncio.wait([task])

    assert ledger.told(UID) is ledger.get(UID)


async def test_a_forgotten_record_is_gone(ledger: Ledger) -> None:
    """From memory, from what is told and from the store."""
    await ledger.commit([A, B])
    await ledger.forget([UID, PodUID("never")])

    assert (ledger.get(UID), ledger.told(UID), names(ledger)) == (None, None, ["b"])
    assert list(ledger.all_told()) == [B]


# --- what an owner has been told -------------------------------------------------------------------------------------


async def test_an_owner_has_been_told_of_a_pod_whatever_changed_since(ledger: Ledger) -> None:
    """Its list says nothing of a pod that is new to it, and all of one that it knew: a new state does not hide that."""
    await ledger.commit([A, B])
    seen = ledger.revision
    await ledger.commit([later(B), C])

    assert set(ledger.told_until(OWNER, ledger.epoch, seen)) == {"a", "b"}
    assert set(ledger.told_until(OWNER, ledger.epoch, ledger.revision)) == {"a", "b", "c"}


async def test_a_pod_that_was_forgotten_and_came_again_is_new(ledger: Ledger) -> None:
    """A list made before it came again says nothing of it."""
    await ledger.commit([A])
    seen = ledger.revision
    await ledger.forget([UID])
    await ledger.commit([later(A)])

    assert ledger.told_until(OWNER, ledger.epoch, seen) == []


async def test_a_record_forgotten_while_it_is_written_is_not_told() -> None:
    """It would come back as a pod that nobody can delete."""
    store = SlowStore()
    store.gate.set()
    ledger = Ledger(store)
    await ledger.commit([A])
    store.gate.clear()
    writing = asyncio.ensure_future(ledger.commit([later(A)]))
    await asyncio.sleep(0)
    await ledger.forget([UID])
    store.gate.set()
    await writing

    assert (ledger.get(UID), ledger.told(UID), names(ledger)) == (None, None, [])


@pytest.mark.parametrize("epoch", ["", "another"])
async def test_an_owner_of_another_epoch_has_been_told_nothing(ledger: Ledger, epoch: str) -> None:
    """Its revisions are those of another memory."""
    await ledger.commit([A])

    assert ledger.told_until(OWNER, epoch, 99) == []


async def test_an_owner_has_been_told_nothing_of_the_others(ledger: Ledger) -> None:
    """However far it has read."""
    await ledger.commit([A])

    assert ledger.told_until(OTHER, ledger.epoch, 99) == []


# --- waiting for news ------------------------------------------------------------------------------------------------


async def waited(ledger: Ledger, since: int, *, news: Record, after_s: float) -> float:
    """How long a wait of ten seconds took, with news on the way."""
    loop = asyncio.get_running_loop()
    began_at = loop.time()

    async def tell() -> None:
        await asyncio.sleep(after_s)
        await ledger.commit([news])

    async with asyncio.TaskGroup() as group:
        teller = group.create_task(tell())
        await ledger.wait(OWNER, since, 10)
        took_s = loop.time() - began_at
        teller.cancel()
    return took_s


@in_virtual_time
async def test_a_wait_ends_with_the_first_news() -> None:
    """At the moment at which it is durable."""
    assert await waited(Ledger(MemoryStore()), 0, news=A, after_s=3) == 3


@in_virtual_time
async def test_a_wait_without_news_ends_in_time() -> None:
    """News of another owner is none."""
    assert await waited(Ledger(MemoryStore()), 0, news=record("x", owner=OTHER), after_s=3) == 10


@in_virtual_time
async def test_what_is_there_already_is_not_waited_for() -> None:
    """A question that comes late is answered at once."""
    ledger = Ledger(MemoryStore())
    await ledger.commit([A])

    assert await waited(ledger, 0, news=B, after_s=3) == 0


@in_virtual_time
async def test_everyone_who_waits_is_woken() -> None:
    """Many virtual kubelets may wait at the same time, and one may have given up."""
    ledger, loop = Ledger(MemoryStore()), asyncio.get_running_loop()
    began_at = loop.time()
    tasks = [asyncio.ensure_future(ledger.wait(OWNER, 0, 10)) for _ in range(5)]
    await asyncio.sleep(1)
    tasks[2].cancel()
    await asyncio.sleep(1)
    await ledger.commit([records.observed(A, raws(running()), [], "j1", NOW)])
    await asyncio.wait(tasks)

    assert loop.time() - began_at == 2
