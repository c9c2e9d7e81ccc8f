"""Loops that go on, locks by key, and work that is finished. Time is virtual."""

import asyncio
import random

import pytest

from interlink.aio.backoff import Backoff
from interlink.aio.supervising import KeyedLocks, run_repeatedly, run_to_end
from tests.unit.virtual_time import in_virtual_time


class Highest(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


class Rounds:
    """Rounds that fail as told; remembers when each began and what was reported."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self._outcomes = list(outcomes)
        self.began_at: list[float] = []
        self.reported: list[tuple[str, str]] = []

    async def __call__(self) -> None:
        self.began_at.append(asyncio.get_running_loop().time())
        if not self._outcomes:
            raise asyncio.CancelledError
        outcome = self._outcomes.pop(0)
        if outcome is not None:
            raise outcome

    async def run(self, *, pause_s: float) -> list[float]:
        """The moments at which rounds began, the first being 0."""
        delays = Backoff(1, 8, rng=Highest())
        with pytest.raises(asyncio.CancelledError):
            await run_repeatedly("r", self, on_failure=self._report, pause_s=pause_s, backoff=delays)
        return [moment - self.began_at[0] for moment in self.began_at]

    def _report(self, name: str, error: Exception) -> None:
        self.reported.append((name, str(error)))


@in_virtual_time
async def test_a_good_round_is_followed_after_the_pause() -> None:
    """Rounds do not overlap and do not drift into each other."""
    assert await Rounds(None, None, None).run(pause_s=10) == [0, 10, 20, 30]


@in_virtual_time
async def test_failing_rounds_back_off() -> None:
    """Each failure in a row waits longer."""
    assert await Rounds(*[ValueError()] * 4).run(pause_s=100) == [0, 1, 3, 7, 15]


@in_virtual_time
async def test_a_good_round_resets_the_back_off() -> None:
    """The next failure waits as little as the first."""
    errors = [ValueError(), ValueError(), None, ValueError()]

    assert await Rounds(*errors).run(pause_s=100) == [0, 1, 3, 103, 104]


@in_virtual_time
async def test_each_failure_is_reported_once() -> None:
    """With the name of the loop and the error."""
    rounds = Rounds(ValueError("a"), None, KeyError("b"))
    await rounds.run(pause_s=0)

    assert rounds.reported == [("r", "a"), ("r", "'b'")]


@in_virtual_time
async def test_only_a_cancellation_ends_a_loop() -> None:
    """Cancelling the task ends it while it pauses, and it is not reported."""
    rounds = Rounds(*[None] * 100)
    task = asyncio.ensure_future(run_repeatedly("r", rounds, on_failure=rounds._report, pause_s=10))
    await asyncio.sleep(25)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(rounds.began_at), rounds.reported) == (3, [])


# --- locks -----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_holders_of_one_key_take_turns() -> None:
    """In the order in which they came."""
    locks, story = KeyedLocks(), []

    async def work(name: str) -> None:
        async with locks.hold("k"):
            story.append(f"{name} in")
            await asyncio.sleep(1)
            story.append(f"{name} out")

    await asyncio.gather(work("a"), work("b"), work("c"))
    assert story == ["a in", "a out", "b in", "b out", "c in", "c out"]


@in_virtual_time
async def test_holders_of_different_keys_do_not_wait() -> None:
    """Work on one pod delays no other."""
    locks, loop = KeyedLocks(), asyncio.get_running_loop()
    began_at = loop.time()

    async def work(key: str) -> None:
        async with locks.hold(key):
            await asyncio.sleep(5)

    await asyncio.gather(*(work(str(number)) for number in range(10)))
    assert loop.time() - began_at == 5


@in_virtual_time
async def test_a_lock_is_kept_only_while_somebody_wants_it() -> None:
    """Keys that were once used cost nothing."""
    locks = KeyedLocks()
    async with locks.hold("k"):
        assert locks.is_held("k")

    assert not locks.is_held("k")
    assert locks._locks == {}


@in_virtual_time
async def test_a_waiter_that_gives_up_leaves_the_others_in_order() -> None:
    """A cancelled waiter neither holds the lock nor lets two in at a time."""
    locks, inside = KeyedLocks(), []

    async def work(name: str) -> None:
        async with locks.hold("k"):
            inside.append(name)
            await asyncio.sleep(1)

    tasks = [asyncio.ensure_future(work(name)) for name in "abc"]
    await asyncio.sleep(0.5)
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert (inside, locks._locks) == (["a", "c"], {})


@in_virtual_time
async def test_an_error_inside_frees_the_lock() -> None:
    """The next holder comes in."""
    locks = KeyedLocks()
    with pytest.raises(ValueError):
        async with locks.hold("k"):
            raise ValueError

    async with locks.hold("k"):
        assert locks.is_held("k")


# --- work that is finished -------------------------------------------------------------------------------------------


async def slow(done: list[str], error: Exception | None = None) -> str:
    await asyncio.sleep(5)
    done.append("done")
    if error is not None:
        raise error
    return "result"


@in_virtual_time
async def test_work_run_to_its_end_gives_its_result() -> None:
    """Without a cancellation nothing is special about it."""
    assert await run_to_end(slow([])) == "result"


@in_virtual_time
async def test_an_error_of_the_work_is_the_callers() -> None:
    """It is raised as it is."""
    with pytest.raises(KeyError):
        await run_to_end(slow([], KeyError("k")))


@pytest.mark.parametrize("error", [None, KeyError("k")])
@in_virtual_time
async def test_a_cancelled_caller_waits_for_the_end_of_its_work(error: Exception | None) -> None:
    """The work is finished, and only then the cancellation goes on, also when the work failed."""
    done: list[str] = []
    task = asyncio.ensure_future(run_to_end(slow(done, error)))
    await asyncio.sleep(1)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]


@in_virtual_time
async def test_a_second_cancellation_does_not_interrupt_the_work() -> None:
    """However often the caller is cancelled, it goes only after the end of its work."""
    done: list[str] = []
    task = asyncio.ensure_future(run_to_end(slow(done)))
    for _ in range(2):
        await asyncio.sleep(1)
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]
