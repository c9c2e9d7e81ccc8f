"""Delays between attempts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlink.aio.backoff import Backoff
from tests.unit.guessing import few


class Highest(random.Random):
    """No jitter: always the longest delay."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def test_a_delay_doubles_up_to_its_cap() -> None:
    """It grows with each failure and never beyond the cap."""
    delays = Backoff(base_s=1, cap_s=5, rng=Highest())

    assert [delays.next_s() for _ in range(5)] == [1, 2, 4, 5, 5]


def test_a_success_forgets_the_failures() -> None:
    """The next delay is as short as the first."""
    delays = Backoff(base_s=1, cap_s=60, rng=Highest())
    before = [delays.next_s() for _ in range(4)]
    delays.reset()

    assert delays.next_s() == before[0]


@few
@given(st.integers(), st.integers(min_value=1, max_value=200))
def test_jitter_takes_at_most_half(seed: int, failures: int) -> None:
    """However often it fails, a delay stays between half and the whole of what is due."""
    delays, longest = Backoff(0.2, 30, rng=random.Random(seed)), Backoff(0.2, 30, rng=Highest())

    for _ in range(failures):
        due_s = longest.next_s()
        assert due_s / 2 <= delays.next_s() <= due_s


@pytest.mark.parametrize("failures", [100, 2_000])
def test_endless_failures_do_not_overflow(failures: int) -> None:
    """A part that was away for a year still waits the cap."""
    delays = Backoff(base_s=1, cap_s=30, rng=Highest())

    assert [delays.next_s() for _ in range(failures)][-1] == 30
