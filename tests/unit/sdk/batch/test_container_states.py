"""What a job's own record and the batch system together say of its containers."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlink.model.statuses import ContainerStatus
from interlink.sdk.batch import states
from interlink.sdk.batch.jobdir import RunnerState
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
