"""What a job's own record and the batch system together say of its containers."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlink.model.statuses import ContainerStatus
from interlink.sdk.batch import states
from interlink.sdk.batch.jobdir import Ending, RunnerState
from interlink.sdk.batch.scheduler import Life, Observation
from interlink.sdk.batch.states import Containers
from tests.unit.builders import Document, ended, pod, running, waiting

POD = pod(initContainers=[{"name": "i", "image": "ii"}])
NOW = datetime(2026, 7, 14, 11, 0, 0, tzinfo=UTC)


def state(*main: Document, init: tuple[Document, ...] = (), phase: str = "running", **fields: Any) -> RunnerState:
    return msgspec.convert({"phase": phase, "containers": main, "initContainers": init, **fields}, RunnerState)


def seen(life: Life, **fields: Any) -> Observation:
    return Observation(life=life, **fields)


def told(known: RunnerState | None, life: Life, **fields: Any) -> Containers | None:
    return states.containers(POD, known, seen(life, **fields), now=NOW)


def word(status: ContainerStatus) -> str:
    if status.terminated:
        return f"{status.terminated.exit_code} {status.terminated.reason or ''}".strip()
    return f"waiting {status.waiting.reason}" if status.waiting else "running"


LOST = "137 ContainerStatusUnknown"
CANCELLED, UNBEGUN = waiting(reason="Cancelled"), waiting("i", "Cancelled")
TABLE = [
    # what, record, life, c, i
    ("no record, pending", None, Life.PENDING, "waiting ContainerCreating", "waiting ContainerCreating"),
    ("no record, running", None, Life.RUNNING, "waiting ContainerCreating", "waiting ContainerCreating"),
    ("running", state(running(), init=(ended("i"),)), Life.RUNNING, "running", "0"),
    ("running, seen as pending", state(running(), init=(ended("i"),)), Life.PENDING, "running", "0"),
    ("killed while running", state(running(), init=(ended("i"),)), Life.GONE, LOST, "0"),
    ("killed during init", state(waiting(), init=(running("i"),)), Life.GONE, LOST, LOST),
    ("killed after a container ended", state(ended(exit_code=3), init=(running("i"),)), Life.GONE, "3", LOST),
    ("ended", state(ended(), init=(ended("i"),), phase="ended"), Life.GONE, "0", "0"),
    ("ended, still seen", state(ended(exit_code=4), init=(ended("i"),), phase="ended"), Life.RUNNING, "4", "0"),
    ("init failed", state(waiting(), init=(ended("i", 1),), phase="ended"), Life.GONE, "waiting PodInitializing", "1"),
    ("stopped at once", state(CANCELLED, init=(UNBEGUN,), phase="ended"), Life.GONE, LOST, "waiting Cancelled"),
    ("stopped between", state(CANCELLED, init=(ended("i", 143),), phase="ended"), Life.GONE, LOST, "143"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("known", "life", "main", "init"), [row[1:] for row in TABLE], ids=[row[0].replace(" ", "-") for row in TABLE]
)
def test_the_states_of_a_job(known: RunnerState | None, life: Life, main: str, init: str) -> None:
    """The job's own record wins; the batch system fills what the record cannot say."""
    found = told(known, life)

    assert found is not None
    assert [word(found.main[0]), word(found.init[0])] == [main, init]


def test_without_a_record_and_a_job_nothing_is_known() -> None:
    """Such a pod is left out of the answer: absent is not finished."""
    assert told(None, Life.GONE) is None


def test_a_pending_job_waits_for_what_the_batch_system_says() -> None:
    """In its own words, for every container of the pod, with its image."""
    found = told(None, Life.PENDING, reason="Priority", message="behind 12 others")

    assert found is not None
    assert [(s.name, s.image) for s in (*found.main, *found.init)] == [("c", "i"), ("i", "ii")]
    assert {(s.waiting.reason, s.waiting.message) for s in (*found.main, *found.init) if s.waiting} == {
        ("Priority", "behind 12 others")
    }


def test_a_killed_container_keeps_the_time_of_its_start() -> None:
    """And ends now, neither ready nor started."""
    found = told(state(running(started=True)), Life.GONE)

    assert found is not None
    status = found.main[0]
    assert status.terminated is not None
    assert (status.terminated.started_at, status.terminated.finished_at) == (
        "2026-07-14T10:00:01Z",
        "2026-07-14T11:00:00Z",
    )
    assert (status.ready, status.started) == (False, False)


def test_a_stopped_container_says_what_the_job_says() -> None:
    """The job's message, for example that its time was over."""
    found = told(state(CANCELLED, phase="ended", message="the deadline is over"), Life.GONE)

    assert found is not None
    assert found.main[0].terminated is not None
    assert found.main[0].terminated.message == "the deadline is over"


def test_an_ended_jobs_result_does_not_depend_on_the_batch_system() -> None:
    """Whatever it says of the job later."""
    record = state(ended(exit_code=9), phase="ended")

    assert told(record, Life.GONE) == told(record, Life.RUNNING) == told(record, Life.PENDING)


# --- the batch system's word -----------------------------------------------------------------------------------------

TIMEOUT = Ending(reason="DeadlineExceeded", message="time limit", exit_code=143, finished_at="2026-07-14T10:59:00Z")
MEMORY = Ending(reason="OOMKilled", overrules_success=True, finished_at="2026-07-14T10:59:00Z")
GOOD = Ending(reason="Completed", is_success=True, finished_at="2026-07-14T10:59:00Z")
STOPPED: dict[str, Any] = {"phase": "ended", "reason": "Terminated", "stopped_at": "2026-07-14T10:00:02Z"}


def over(ending: Ending) -> Observation:
    return Observation(life=Life.ENDED, ending=ending)


def first(known: RunnerState | None, observation: Observation, *, settle_s: float = 10.0) -> str:
    found = states.containers(POD, known, observation, now=NOW, settle_s=settle_s)
    return word(found.main[0]) if found else "nothing"


@pytest.mark.parametrize(
    ("what", "known", "ending", "expected"),
    [
        ("never began", None, TIMEOUT, "143 DeadlineExceeded"),
        ("never began, and Slurm calls it a success", None, GOOD, LOST),
        ("no end of its own", state(running()), TIMEOUT, "143 DeadlineExceeded"),
        ("no end of its own, a success", state(running()), GOOD, "0 Completed"),
        ("no end of its own, out of memory", state(running()), MEMORY, "137 OOMKilled"),
        ("stopped from outside", state(ended(exit_code=1), **STOPPED), TIMEOUT, "1 DeadlineExceeded"),
        ("stopped from outside, and ended with 0", state(ended(), **STOPPED), TIMEOUT, "143 DeadlineExceeded"),
        ("stopped from outside before it began", state(CANCELLED, **STOPPED), TIMEOUT, "143 DeadlineExceeded"),
        ("a success without memory", state(ended(), phase="ended"), MEMORY, "137 OOMKilled"),
        ("a failure keeps its code", state(ended(exit_code=3), phase="ended"), MEMORY, "3"),
        ("a success", state(ended(), phase="ended"), GOOD, "0"),
        ("a success on a node that failed later", state(ended(), phase="ended"), TIMEOUT, "0"),
    ],
)
def test_how_the_batch_system_explains_an_end(
    what: str, known: RunnerState | None, ending: Ending, expected: str
) -> None:
    """It says why where the record cannot, and overrules a success only for memory."""
    assert first(known, over(ending)) == expected


def test_a_container_that_had_ended_before_keeps_its_end() -> None:
    """The time limit came later."""
    stopped = STOPPED | {"stopped_at": "2026-07-14T10:00:03Z"}

    assert first(state(ended(), **stopped), over(TIMEOUT)) == "0"


@pytest.mark.parametrize(
    ("what", "code", "record", "expected"),
    [
        ("before its runner", 143, STOPPED | {"stopped_at": "2026-07-14T10:00:02.100Z"}, "143 DeadlineExceeded"),
        ("its runner ended first", 137, {"finished_at": "2026-07-14T10:00:02.100Z"}, "137 DeadlineExceeded"),
        ("long before its runner", 143, STOPPED | {"stopped_at": "2026-07-14T10:00:09Z"}, "143"),
        ("long before the end", 143, {"finished_at": "2026-07-14T10:00:09Z"}, "143"),
        ("with a code of its own", 7, {"finished_at": "2026-07-14T10:00:02.100Z"}, "7"),
        ("at a time that is none", 143, {"finished_at": "never"}, "143"),
    ],
)
def test_the_signals_of_a_stop_come_in_any_order(what: str, code: int, record: Document, expected: str) -> None:
    """The batch system tells programs and runner at once; a program that hears of it first has the same reason."""
    fields: dict[str, Any] = {"phase": "ended"} | record
    known = state(ended(exit_code=code), **fields)

    assert first(known, over(TIMEOUT)) == expected


@pytest.mark.parametrize("known", [state(ended(), phase="ended", finished_at="2026-07-14T10:59:55Z")])
def test_a_success_waits_a_moment_for_the_batch_system(known: RunnerState) -> None:
    """It may say that there was too little memory; after the moment the record is believed."""
    alive = Observation(life=Life.RUNNING, has_more_to_say=True)

    assert (first(known, alive), first(known, alive, settle_s=5)) == ("running", "0")
    assert first(known, Observation(life=Life.RUNNING)) == "0"


def test_a_job_that_was_stopped_waits_a_moment_for_the_reason() -> None:
    """Slurm tells it only when the job is completed, be it preempted or at its time limit."""
    known = state(ended(exit_code=143), **(STOPPED | {"finished_at": "2026-07-14T10:59:55Z"}))
    completing = Observation(life=Life.RUNNING)

    assert (first(known, completing), first(known, completing, settle_s=5)) == ("running", "143")
    assert first(known, Observation(life=Life.GONE)) == "143"
    assert first(known, over(TIMEOUT)) == "143 DeadlineExceeded"


def test_a_program_that_heard_first_waits_a_moment_for_the_reason() -> None:
    """Also when the runner had not heard at all."""
    times = {"startedAt": "2026-07-14T10:00:01Z", "finishedAt": "2026-07-14T10:59:54.9Z"}
    killed = {"name": "c", "state": {"terminated": {"exitCode": 143, **times}}}
    known = state(killed, phase="ended", finished_at="2026-07-14T10:59:55Z")

    assert first(known, Observation(life=Life.RUNNING)) == "running"
    assert first(known, Observation(life=Life.GONE)) == "143"


def test_an_end_waits_a_moment_for_the_record() -> None:
    """Files may lag behind on a shared file system."""
    recent = msgspec.structs.replace(TIMEOUT, finished_at="2026-07-14T10:59:55Z", started_at="2026-07-14T10:00:00Z")

    assert first(state(running()), over(recent)) == "running"
    assert first(None, over(recent)).startswith("waiting")
    assert first(state(running()), over(recent), settle_s=5) == "143 DeadlineExceeded"


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (Observation(life=Life.PENDING, reason="Priority"), "waiting Priority"),
        (Observation(life=Life.RUNNING), "running"),
        (over(GOOD), "0 Completed"),
        (over(TIMEOUT), "143 DeadlineExceeded"),
        (Observation(life=Life.ENDED), LOST),
        (Observation(life=Life.GONE), "nothing"),
    ],
)
def test_a_job_whose_directory_is_lost(observation: Observation, expected: str) -> None:
    """The batch system's word is all there is."""
    found = states.recalled(POD, observation, now=NOW)

    assert (word(found.main[0]) if found else "nothing") == expected
