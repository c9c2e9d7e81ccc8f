"""The circuit breaker, with a clock that the test moves."""

import pytest

from interlink.server.breaker import Breaker

LONGEST_FIRST_PAUSE_S = 0.5


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    """Opens after three failures in a row."""
    return Breaker(threshold=3, clock=clock)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.failed("no route")


def test_some_failures_are_borne(breaker: Breaker) -> None:
    """Below the threshold every call may be made."""
    fail(breaker, 2)

    assert (breaker.is_open, breaker.refusal()) == (False, "")


def test_several_failures_in_a_row_open_it(breaker: Breaker) -> None:
    """Then calls are refused with how often and why it failed."""
    fail(breaker, 3)

    assert breaker.is_open
    assert breaker.refusal() == "not asked after 3 failures in a row, the last: no route"


def test_a_success_between_forgets_the_failures(breaker: Breaker) -> None:
    """Only failures in a row count."""
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 2)

    assert not breaker.is_open


def test_after_the_pause_one_call_may_try(breaker: Breaker, clock: Clock) -> None:
    """And only one: the others wait for its outcome."""
    fail(breaker, 3)
    clock.now_s += LONGEST_FIRST_PAUSE_S

    assert breaker.refusal() == ""
    assert breaker.refusal() != ""


def test_a_trial_that_succeeds_closes_it(breaker: Breaker, clock: Clock) -> None:
    """Everything may be called again."""
    fail(breaker, 3)
    clock.now_s += LONGEST_FIRST_PAUSE_S
    breaker.refusal()
    breaker.succeeded()

    assert [breaker.refusal() for _ in range(3)] == ["", "", ""]


def pauses(breaker: Breaker, clock: Clock, count: int) -> list[float]:
    """How long it stays shut after each of several trials that fail, in steps of 10 ms."""
    found = []
    for _ in range(count):
        began_at = clock.now_s
        while breaker.refusal():
            clock.now_s += 0.01
        found.append(clock.now_s - began_at)
        breaker.failed("again")
    return found


def test_a_trial_that_fails_opens_it_for_longer(breaker: Breaker, clock: Clock) -> None:
    """Pauses double from half a second to five, with jitter."""
    fail(breaker, 3)
    found = pauses(breaker, clock, 8)

    assert found[0] <= 0.51
    assert all(2.49 <= pause <= 5.01 for pause in found[4:])


def test_a_success_makes_the_next_pause_short_again(breaker: Breaker, clock: Clock) -> None:
    """Old trouble does not count for new trouble."""
    fail(breaker, 3)
    pauses(breaker, clock, 6)
    clock.now_s += 5
    breaker.refusal()
    breaker.succeeded()
    fail(breaker, 3)

    assert pauses(breaker, clock, 1)[0] <= 0.51


def test_a_late_failure_does_not_lengthen_the_pause(breaker: Breaker, clock: Clock) -> None:
    """A call that was on its way when it opened is no trial."""
    fail(breaker, 3)
    clock.now_s += LONGEST_FIRST_PAUSE_S - 0.001
    fail(breaker, 5)
    clock.now_s += 0.001

    assert breaker.refusal() == ""


def test_a_late_success_closes_it(breaker: Breaker) -> None:
    """The plugin answers: that is all that was wanted."""
    fail(breaker, 3)
    breaker.succeeded()

    assert breaker.refusal() == ""


def test_a_trial_that_was_cancelled_proves_nothing(breaker: Breaker, clock: Clock) -> None:
    """It stays open, and another call may try."""
    fail(breaker, 3)
    clock.now_s += LONGEST_FIRST_PAUSE_S
    breaker.refusal()
    breaker.gave_up()

    assert breaker.is_open
    assert breaker.refusal() == ""
