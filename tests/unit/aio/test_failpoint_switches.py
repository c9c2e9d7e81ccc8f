"""Failpoints: how they are named, when they act, and that they are off by default."""

import subprocess
import sys

import pytest

from interlink.aio import failpoints
from interlink.aio.failpoints import Failpoints

STEPS = """
import os
from interlink.aio import failpoints
failpoints.configure(os.environ)
for number in range(4):
    print(f"before {number}", flush=True)
    with failpoints.step("a.step"):
        print(f"in {number}", flush=True)
"""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a delay would have slept."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


def last_line(specification: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", STEPS], capture_output=True, text=True, env={"INTERLINK_FAILPOINTS": specification}
    )
    return done.returncode, done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("specification", "end"),
    [
        ("a.step.before=kill", (-9, "before 0")),
        ("a.step.after=kill", (-9, "in 0")),
        ("a.step.before=kill@3", (-9, "before 2")),
        ("other.before=kill, a.step.after=kill@2", (-9, "in 1")),
        ("a.step.after=kill@9", (0, "in 3")),
    ],
)
def test_a_point_kills_the_process_at_the_hit_that_it_names(specification: str, end: tuple[int, str]) -> None:
    """`kill` acts at the first hit, `kill@3` at the third, before the step or right after it."""
    assert last_line(specification) == end


@pytest.mark.parametrize(
    ("specification", "expected"),
    [
        ("p.before=delay:2", [2, 2, 2]),
        ("p.before=delay:0.5@2", [0.5]),
        ("q.before=delay:2", []),
        ("", []),
        (" , ,", []),
    ],
)
def test_a_delay_acts_at_every_hit_or_at_one(specification: str, expected: list[float], waits: list[float]) -> None:
    """Without a number it acts each time; a point that is not named never does."""
    points = Failpoints(specification)
    for _ in range(3):
        points.hit("p.before")

    assert waits == expected


def test_points_are_counted_each_by_itself(waits: list[float]) -> None:
    """Hits of one point do not count for another."""
    points = Failpoints("a.before=delay:1@2,b.before=delay:2@2")
    for name in ("a.before", "b.before", "a.before"):
        points.hit(name)

    assert waits == [1]


@pytest.mark.parametrize(
    "specification",
    ["p=kill", "p.before", "p.before=", "p.before=die", "p.before=kill@x", "p.middle=kill", "before=kill"],
)
def test_a_point_that_cannot_be_read_is_an_error(specification: str) -> None:
    """A crash test with a misspelt point must not pass in silence."""
    with pytest.raises(ValueError):
        Failpoints(specification)


@pytest.mark.parametrize("specification", ["p.before=kill@x", "p.before=kill@0", "p.before=delay:soon"])
def test_an_error_names_the_point(specification: str) -> None:
    """The part that cannot be read is in the text, also for a bad count or delay."""
    with pytest.raises(ValueError, match=specification):
        Failpoints(specification)


def test_a_step_that_fails_has_no_after(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """`after` means that the step has succeeded."""
    monkeypatch.setattr(failpoints, "_points", Failpoints("s.before=delay:1,s.after=delay:2"))

    with pytest.raises(KeyError), failpoints.step("s"):
        raise KeyError
    assert waits == [1]
