"""Work by key: one at a time, again when named meanwhile, later after a failure. Time is virtual."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from interlink.kubelet.pods.workqueue import WorkQueue
from tests.unit.virtual_time import in_virtual_time


class Work:
    """Takes a second for each key, or fails as told; remembers when each began and how many were under way."""

    def __init__(
        self,
        *,
        workers: int = 4,
        failures: dict[str, int] | None = None,
        takes_s: float = 1,
        order: Callable[[str], Any] = lambda _: 0,
    ) -> None:
        self._takes_s = takes_s
        self.ended: list[str] = []
        self._failures = failures or {}
        self._at_work: list[str] = []
        self.began: list[tuple[float, str]] = []
        self.failed: list[str] = []
        self.most_at_once = 0
        self.queue = WorkQueue(self._handle, self._report, workers=workers, order=order)

    async def _handle(self, key: str) -> None:
        assert key not in self._at_work, "two workers on one key"
        self.began.append((asyncio.get_running_loop().time(), key))
        self._at_work.append(key)
        self.most_at_once = max(self.most_at_once, len(self._at_work))
        await asyncio.sleep(self._takes_s)
        self._at_work.remove(key)
        self.ended.append(key)
        if self._failures.get(key, 0) > 0:
            self._failures[key] -= 1
            raise ValueError(key)

    def _report(self, key: str, error: Exception) -> None:
        self.failed.append(key)

    async def run_for(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.queue.run()

    def began_at(self, key: str) -> list[float]:
        return [round(moment - self.began[0][0], 3) for moment, name in self.began if name == key]


@in_virtual_time
async def test_a_key_named_twice_is_handled_once() -> None:
    """Before anybody has begun with it."""
    work = Work()
    work.queue.add("a")
    work.queue.add("a")
    await work.run_for(10)

    assert len(work.began) == 1


@in_virtual_time
async def test_different_keys_are_handled_at_the_same_time() -> None:
    """As many as there are workers."""
    work = Work(workers=3)
    for key in "abcde":
        work.queue.add(key)
    await work.run_for(1.5)

    assert (len(work.began), work.most_at_once) == (5, 3)


@in_virtual_time
async def test_a_key_named_while_it_is_handled_is_handled_again() -> None:
    """By itself and after the first time has ended, for something has changed since it began."""
    work = Work()
    work.queue.add("a")
    for moment in (0.2, 0.5, 0.8):
        asyncio.get_running_loop().call_later(moment, work.queue.add, "a")
    await work.run_for(10)

    assert work.began_at("a") == [0, 1]


@in_virtual_time
async def test_a_key_is_handled_in_the_order_in_which_it_was_named() -> None:
    """First come, first served."""
    work = Work(workers=1)
    for key in "cab":
        work.queue.add(key)
    await work.run_for(10)

    assert [key for _, key in work.began] == ["c", "a", "b"]


@in_virtual_time
async def test_a_key_that_fails_is_handled_again_later() -> None:
    """After pauses that grow, until it succeeds."""
    work = Work(failures={"a": 6})
    work.queue.add("a")
    await work.run_for(1000)

    began = work.began_at("a")
    pauses = [after - before - 1 for before, after in itertools.pairwise(began)]
    assert (len(began), work.failed) == (7, ["a"] * 6)
    assert pauses[0] <= 0.2 < 2 < pauses[-1]


@in_virtual_time
async def test_a_failing_key_holds_up_no_other() -> None:
    """Its pause keeps no worker busy."""
    work = Work(workers=1, failures={"a": 100})
    work.queue.add("a")
    work.queue.add("b")
    await work.run_for(2.5)

    assert work.began_at("b") == [1]


@in_virtual_time
async def test_a_success_forgets_the_failures() -> None:
    """The next failure waits as little as the first."""
    work = Work(failures={"a": 5})
    work.queue.add("a")
    await work.run_for(60)
    work._failures["a"] = 1
    work.queue.add("a")
    await work.run_for(60)

    *_, before, after = work.began_at("a")
    assert after - before <= 1.2


@in_virtual_time
async def test_a_key_named_during_its_pause_is_handled_at_once() -> None:
    """News does not wait for the end of a back-off."""
    work = Work(failures={"a": 8})
    work.queue.add("a")
    task = asyncio.ensure_future(work.run_for(1000))
    while len(work.failed) < 8:
        await asyncio.sleep(0.1)
    count = len(work.began)
    work.queue.add("a")
    await asyncio.sleep(0.1)
    task.cancel()

    assert len(work.began) == count + 1


@in_virtual_time
async def test_a_cancelled_queue_ends_its_work() -> None:
    """Nothing goes on behind it."""
    work = Work()
    work.queue.add("a")
    await work.run_for(0.5)
    await asyncio.sleep(10)

    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("worker")] == []


@pytest.mark.parametrize("keys", [1, 100])
@in_virtual_time
async def test_an_idle_key_is_not_remembered(keys: int) -> None:
    """A queue holds nothing of keys that are done."""
    work = Work(workers=100)
    for number in range(keys):
        work.queue.add(str(number))
    await work.run_for(5)

    assert (work.queue._named, work.queue._busy, work.queue._delays) == (set(), set(), {})


@in_virtual_time
async def test_of_the_keys_that_wait_the_lowest_is_next() -> None:
    """Oldest pod first."""
    work = Work(workers=1, order=lambda key: int(key))
    for key in ("5", "3", "9", "1"):
        work.queue.add(key)

    await work.run_for(10)

    assert [key for _, key in work.began] == ["1", "3", "5", "9"]


@in_virtual_time
async def test_what_is_at_work_is_finished_when_the_queue_ends() -> None:
    """And nothing else is begun."""
    work = Work(workers=1)
    work.queue.add("a")
    work.queue.add("b")

    await work.run_for(0.5)

    assert work.ended == ["a"]


@in_virtual_time
async def test_what_does_not_finish_is_cut_off() -> None:
    """A stop takes ten seconds at most."""
    work = Work(workers=1, takes_s=3600)
    work.queue.add("a")
    began = asyncio.get_running_loop().time()

    await work.run_for(0.5)

    assert round(asyncio.get_running_loop().time() - began, 1) == 10.5
