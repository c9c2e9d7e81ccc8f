"""Slurm's states as a table: what each means for a pod (T10), and which of several jobs of a tag counts."""

from typing import Any

import pytest

from interlink.model.ids import JobID, PodUID, Tag
from interlink.plugins.slurm import states
from interlink.plugins.slurm.parsing import QueuedJob, word
from interlink.sdk.batch.scheduler import Life, Observation

NOW_S = 1_800_000_000.0
TAG = Tag("c", PodUID("u"), 0)


def job(state: str, job_id: int = 1, **fields: Any) -> QueuedJob:
    return QueuedJob(tag=TAG, job_id=JobID(str(job_id)), state=word(state), **fields)


def observed(state: str, **fields: Any) -> Observation:
    return states.observe(job(state, **fields), now_s=NOW_S)


_WAITING = "PENDING PD CONFIGURING CF REQUEUED RQ REQUEUE_FED RF REQUEUE_HOLD RH RESV_DEL_HOLD RD SPECIAL_EXIT SE"
PENDING = _WAITING.split(" ")
_ALIVE = "RUNNING R COMPLETING CG STAGE_OUT SO SIGNALING SI RESIZING RS SUSPENDED S STOPPED ST"
RUNNING = _ALIVE.split(" ")
ENDED = {
    "COMPLETED CD": "Completed",
    "FAILED F": "Error",
    "NODE_FAIL NF": "NodeFail",
    "BOOT_FAIL BF": "BootFail",
    "DEADLINE DL": "DeadlineExceeded",
    "TIMEOUT TO": "DeadlineExceeded",
    "OUT_OF_MEMORY OOM": "OOMKilled",
    "CANCELLED CA": "Cancelled",
    "REVOKED RV": "Revoked",
    "PREEMPTED PR": "Preempted",
    "LAUNCH_FAILED LF": "LaunchFailed",
}


@pytest.mark.parametrize("state", PENDING)
def test_what_waits_has_not_ended(state: str) -> None:
    """In long and short form."""
    assert observed(state).life is Life.PENDING


@pytest.mark.parametrize("state", RUNNING)
def test_what_runs_has_not_ended(state: str) -> None:
    """Nor has what is suspended or completing."""
    assert observed(state).life is Life.RUNNING


@pytest.mark.parametrize("state", ["S", "ST", "SUSPENDED", "STOPPED"])
def test_what_stands_still_says_so(state: str) -> None:
    """With a note."""
    assert observed(state).message


@pytest.mark.parametrize(
    ("state", "reason"), [(form, reason) for forms, reason in ENDED.items() for form in forms.split()]
)
def test_each_end_has_a_reason_of_its_own(state: str, reason: str) -> None:
    """Only COMPLETED with exit code 0 is a success."""
    seen = observed(state)

    assert (seen.life, seen.ending and seen.ending.reason) == (Life.ENDED, reason)
    assert seen.ending is not None
    assert seen.ending.is_success is (reason == "Completed")


@pytest.mark.parametrize("state", ["CANCELLED by 1000", "CANCELLED+"])
def test_a_cancelled_job_is_recognised_with_its_addition(state: str) -> None:
    """As sacct writes it."""
    assert observed(state).reason == "Cancelled"


@pytest.mark.parametrize("state", ["", "NEW_STATE", "12_[1-3]"])
def test_an_unknown_state_ends_nothing(state: str) -> None:
    """The job counts as alive, and what it has told stays."""
    assert (observed(state).life, states.is_known(state)) == (Life.PENDING, False)


@pytest.mark.parametrize("state", ["NODE_FAIL", "PREEMPTED"])
@pytest.mark.parametrize(
    ("is_requeueable", "ended_s_ago", "life"),
    [(True, 1, Life.PENDING), (True, 31, Life.ENDED), (False, 1, Life.ENDED)],
)
def test_the_requeue_window(state: str, is_requeueable: bool, ended_s_ago: float, life: Life) -> None:
    """Slurm shows the end of a job that it will put back into the queue."""
    assert observed(state, is_requeueable=is_requeueable, ended_at=NOW_S - ended_s_ago).life is life


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ("FAILED", 5 * 256, 5),
        ("FAILED", 25 * 256, 25),
        ("FAILED", 9, 137),
        ("COMPLETED", 0, None),
        ("TIMEOUT", 15, 143),
        ("TIMEOUT", 0, None),
        ("OUT_OF_MEMORY", 125, None),
    ],
)
def test_exit_codes(state: str, status: int, code: int | None) -> None:
    """squeue's are as wait(2) has them; TIMEOUT with 0 is no success."""
    ending = observed(state, exit_status=status).ending

    assert ending is not None
    assert ending.exit_code == code


def test_a_second_launch_is_no_success() -> None:
    """The runner's exit code for it says so."""
    ending = observed("FAILED", exit_status=98 * 256).ending

    assert ending is not None
    assert (ending.reason, ending.exit_code, ending.is_success) == ("LaunchedAgain", None, False)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Resources", "Resources"),
        ("ReqNodeNotAvail, UnavailableNodes:n1", "ReqNodeNotAvail"),
        ("Nodes required for job are DOWN", "Pending"),
        ("", "Pending"),
    ],
)
def test_why_a_job_waits(reason: str, expected: str) -> None:
    """A word for the reason, all of it in the message, and when it may start."""
    seen = observed("PENDING", reason=reason, started_at=NOW_S)

    assert seen.reason == expected
    assert reason in (seen.message or "")
    assert "estimated start 2027-01-15T08:00:00Z" in (seen.message or "")


def test_out_of_memory_overrules_a_success_unless_the_site_says_otherwise() -> None:
    """T09 (c)."""
    line = job("OUT_OF_MEMORY", exit_status=125)
    strict, lenient = (states.observe(line, now_s=NOW_S, memory_is_fatal=fatal).ending for fatal in (True, False))

    assert strict is not None
    assert lenient is not None
    assert (strict.overrules_success, lenient.overrules_success) == (True, False)


@pytest.mark.parametrize(
    ("jobs", "best"),
    [
        ([job("PENDING", 1), job("RUNNING", 2)], "2"),
        ([job("PENDING", 2), job("PENDING", 1)], "1"),
        ([job("CANCELLED", 1), job("PENDING", 2)], "2"),
        ([job("COMPLETED", 1), job("FAILED", 2, exit_status=98 * 256)], "1"),
        ([job("PREEMPTED", 1), job("COMPLETED", 2)], "2"),
    ],
)
def test_which_of_several_jobs_counts(jobs: list[QueuedJob], best: str) -> None:
    """What runs, else what waits, the oldest first; else the last end that is not that of a second launch."""
    assert states.best(jobs).job_id == best


# As a real Slurm tells it: put back at its 100th second after a launch of the 97th.
_GIVEN_UP = {"submitted_at": 100.0, "started_at": 100.0, "ended_at": 100.0, "restarts": 1}
_BEFORE_IT_WAS_PUT_BACK = {"submitted_at": 90.0, "started_at": 97.0, "ended_at": 100.0, "restarts": 1}


@pytest.mark.parametrize(
    ("fields", "now_s", "expected"),
    [
        (_GIVEN_UP, 100.0, True),
        (_GIVEN_UP, 10_000.0, True),
        (_GIVEN_UP | {"cancelled_by": 0}, 100.0, True),
        (_GIVEN_UP | {"started_at": 102.0, "ended_at": 102.0}, 110.0, True),
        (_GIVEN_UP | {"started_at": 110.0, "ended_at": 110.0}, 110.0, False),
        (_GIVEN_UP | {"cancelled_by": 1000}, 100.0, False),
        (_GIVEN_UP | {"restarts": 0}, 100.0, False),
        (_GIVEN_UP | {"is_requeueable": True}, 100.0, False),
        (_GIVEN_UP | {"ended_at": None}, 100.0, False),
        (_GIVEN_UP | {"submitted_at": None}, 100.0, False),
        (_BEFORE_IT_WAS_PUT_BACK, 110.0, True),
        (_BEFORE_IT_WAS_PUT_BACK, 200.0, False),
        (_BEFORE_IT_WAS_PUT_BACK | {"exit_status": 15}, 110.0, False),
        (_BEFORE_IT_WAS_PUT_BACK | {"restarts": 0}, 110.0, False),
    ],
)
def test_who_has_cancelled_a_job_that_never_began(fields: dict[str, Any], now_s: float, expected: bool) -> None:
    """Slurm itself, where it had just put the job back or was about to; else it counts as somebody's wish."""
    assert states.was_given_up(job("CANCELLED", **fields), now_s) is expected
    assert not states.was_given_up(job("NODE_FAIL", **fields), now_s)


def test_only_waiting_jobs_are_superfluous() -> None:
    """A running one may be the one that has the pod."""
    found = states.superfluous([job("RUNNING", 1), job("RUNNING", 2), job("PENDING", 3), job("COMPLETED", 4)])

    assert [item.job_id for item in found] == ["3"]
