"""What each of Slurm's states means for a pod: one table; pure.

A state that is not in the table is somebody's news, not a failure: the job counts as alive.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from interlink.aio import clock
from interlink.plugins.slurm.parsing import QueuedJob
from interlink.sdk.batch.jobdir import Ending
from interlink.sdk.batch.scheduler import Life, Observation

REQUEUE_WINDOW_S = 30.0
CANCELLED_WITHIN_S = 5.0
"""Between the moment in which Slurm put a job back and its own cancel: 0 to 2 seconds were seen of a loaded Slurm."""
COMPLETED_WITHIN_S = 30.0
"""Between a launch that Slurm gave up and the answer of its node, which is loaded, or it would have confirmed it."""
LAUNCHED_AGAIN = 98
"""The runner's exit code when its attempt had been claimed before."""

PENDING, RUNNING, ENDED = Life.PENDING, Life.RUNNING, Life.ENDED

# state, its short form: what it is, and for an end its reason and what to tell.
TABLE: dict[tuple[str, str], tuple[Life, str, str]] = {
    ("PENDING", "PD"): (PENDING, "", ""),
    ("CONFIGURING", "CF"): (PENDING, "Configuring", "Slurm prepares the nodes"),
    ("POWER_UP_NODE", "PB"): (PENDING, "PowerUpNode", "Slurm starts the nodes"),
    ("REQUEUED", "RQ"): (PENDING, "Requeued", "Slurm has put the job back into the queue"),
    ("REQUEUE_FED", "RF"): (PENDING, "Requeued", "the federation has put the job back into the queue"),
    ("REQUEUE_HOLD", "RH"): (PENDING, "RequeuedHeld", "Slurm has put the job back into the queue and holds it"),
    ("RESV_DEL_HOLD", "RD"): (PENDING, "ReservationDeleted", "the job's reservation was deleted; Slurm holds the job"),
    ("SPECIAL_EXIT", "SE"): (PENDING, "SpecialExit", "Slurm has put the job back into the queue in a special state"),
    ("RUNNING", "R"): (RUNNING, "", ""),
    ("COMPLETING", "CG"): (RUNNING, "", ""),
    ("SIGNALING", "SI"): (RUNNING, "", ""),
    ("STAGE_OUT", "SO"): (RUNNING, "", ""),
    ("RESIZING", "RS"): (RUNNING, "", ""),
    ("SUSPENDED", "S"): (RUNNING, "Suspended", "Slurm has suspended the job"),
    ("STOPPED", "ST"): (RUNNING, "Stopped", "the job was stopped by a signal and keeps its nodes"),
    ("COMPLETED", "CD"): (ENDED, "Completed", ""),
    ("FAILED", "F"): (ENDED, "Error", "the job failed"),
    ("LAUNCH_FAILED", "LF"): (ENDED, "LaunchFailed", "the job could not be launched on its node"),
    ("NODE_FAIL", "NF"): (ENDED, "NodeFail", "a node of the job failed"),
    ("BOOT_FAIL", "BF"): (ENDED, "BootFail", "a node of the job could not be booted"),
    ("RECONFIG_FAIL", "RCF"): (ENDED, "ReconfigFail", "a node of the job could not be reconfigured"),
    ("DEADLINE", "DL"): (ENDED, "DeadlineExceeded", "the job was ended at its deadline (--deadline)"),
    ("TIMEOUT", "TO"): (ENDED, "DeadlineExceeded", "the job was ended at its time limit"),
    ("OUT_OF_MEMORY", "OOM"): (ENDED, "OOMKilled", "the job ran out of memory"),
    ("CANCELLED", "CA"): (ENDED, "Cancelled", "the job was cancelled at Slurm"),
    ("REVOKED", "RV"): (ENDED, "Revoked", "the job runs at another cluster of the federation"),
    ("PREEMPTED", "PR"): (ENDED, "Preempted", "the job was ended to make room for another one"),
}
_BY_WORD = {form: meaning for forms, meaning in TABLE.items() for form in forms}
_NAMES = {form: forms[0] for forms in TABLE for form in forms}
_ROOT = 0
"""As whom nodes cancel jobs, and administrators too."""
_MAY_COME_BACK = ("NODE_FAIL", "PREEMPTED")


def is_known(state: str) -> bool:
    return state in _BY_WORD


def is_alive(job: QueuedJob) -> bool:
    return _BY_WORD.get(job.state, (PENDING, "", ""))[0] is not ENDED


def is_waiting(job: QueuedJob) -> bool:
    """Alive, and nothing of it has started."""
    return job.state in ("PENDING", "PD")


def is_suspended(job: QueuedJob) -> bool:
    return _NAMES.get(job.state) == "SUSPENDED"


def is_stopped(job: QueuedJob) -> bool:
    return _NAMES.get(job.state) == "STOPPED"


def observe(job: QueuedJob, *, now_s: float, memory_is_fatal: bool = True) -> Observation:
    """What one line about a job means. memory_is_fatal: out of memory is a failure, whatever the programs say."""
    life, reason, message = _BY_WORD.get(job.state, (PENDING, "Unknown", f"Slurm says {job.state or 'nothing'!r}"))
    if life is ENDED and _may_come_back(job, now_s):
        text = f"{message}; it may be put back into the queue"
        return Observation(life=PENDING, reason=reason, message=text, has_more_to_say=True)
    if life is ENDED:
        ending = _ending(job, reason, message, memory_is_fatal=memory_is_fatal)
        return Observation(life=ENDED, reason=reason, message=message, ending=ending)
    if life is PENDING and not reason:
        reason, message = _why_it_waits(job)
    return Observation(
        life=life,
        reason=reason or None,
        message=message or None,
        started_at=_text(job.started_at) if life is RUNNING else None,
        has_more_to_say=job.state not in ("COMPLETING", "CG") or _signal(job) == _OOM_SIGNAL,
    )


def was_given_up(job: QueuedJob, now_s: float) -> bool:
    """Whether Slurm has cancelled a job by itself because its node could not confirm the launch.

    Nothing says who cancelled a job. But a job that may not be put back and was, was put back by Slurm, after such a
    launch; the node's cancel comes in the same seconds. What comes later, or without that, may be a person's.
    """
    if _NAMES.get(job.state) != "CANCELLED" or job.restarts == 0 or job.is_requeueable or job.ended_at is None:
        return False
    if job.cancelled_by not in (None, _ROOT) or job.exit_status:  # which a script has that was launched the next time
        return False
    if job.started_at == job.ended_at:  # it was waiting again
        return job.submitted_at is not None and job.ended_at - job.submitted_at <= CANCELLED_WITHIN_S
    return now_s - job.ended_at <= COMPLETED_WITHIN_S


def given_up(job: QueuedJob, *, is_last: bool) -> Observation:
    """It waits to be submitted again, unless it was the last of several."""
    reason, message = "LaunchFailed", "Slurm could not confirm the launch of the job, and cancelled it"
    if not is_last:
        text = f"{message}; it is submitted again"
        return Observation(life=PENDING, reason=reason, message=text, is_to_be_repeated=True)
    ending = Ending(
        reason=reason,
        message=f"{message}, as those before it",
        started_at=_text(job.started_at),
        finished_at=_text(job.ended_at),
    )
    return Observation(life=ENDED, reason=reason, message=ending.message, ending=ending)


def _may_come_back(job: QueuedJob, now_s: float) -> bool:
    """Slurm shows the end of a job for a moment before it puts the job back."""
    is_recent = job.ended_at is None or now_s - job.ended_at < REQUEUE_WINDOW_S
    return _NAMES[job.state] in _MAY_COME_BACK and job.is_requeueable and is_recent


def _ending(job: QueuedJob, reason: str, message: str, *, memory_is_fatal: bool) -> Ending:
    code = _exit_code(job)
    is_success = reason == "Completed" and code == 0
    if reason in ("Error", "Completed") and code == LAUNCHED_AGAIN:
        reason, message = "LaunchedAgain", "Slurm launched the job a second time; programs are never started twice"
        code = None
    elif not is_success and reason == "Completed":
        reason, message = "Error", "the job failed"
    elif reason == "OOMKilled" or code == 0:
        code = None
    return Ending(
        reason=reason,
        message=message or None,
        exit_code=code,
        is_success=is_success,
        overrules_success=reason == "OOMKilled" and memory_is_fatal,
        started_at=_text(job.started_at),
        finished_at=_text(job.ended_at),
    )


_OOM_SIGNAL = 125


def _signal(job: QueuedJob) -> int:
    return job.exit_status & 0x7F


def _exit_code(job: QueuedJob) -> int | None:
    code, number = job.exit_status >> 8 & 0xFF, _signal(job)
    return code or (128 + number if number else 0)


def _why_it_waits(job: QueuedJob) -> tuple[str, str]:
    """`ReqNodeNotAvail, UnavailableNodes:n1` -> the first word as the reason, all of it in the message."""
    first = re.match(r"[A-Za-z][A-Za-z0-9_]*(?=$|[,(])", job.reason)
    reason = first[0] if first else "Pending"
    message = f"waiting in the queue of Slurm: {job.reason}" if job.reason else "waiting in the queue of Slurm"
    if job.started_at is not None:
        message += f"; estimated start {_text(job.started_at)}"
    return reason, message


def _text(moment: float | None) -> str | None:
    return clock.rfc3339(datetime.fromtimestamp(moment, UTC)) if moment is not None else None


def best(jobs: Sequence[QueuedJob]) -> QueuedJob:
    """The one among jobs of one tag that counts: running, else waiting, else the last that did not end as a second
    launch. Of several alike the oldest."""

    def rank(job: QueuedJob) -> tuple[int, int]:
        if is_alive(job):
            is_waiting = _BY_WORD.get(job.state, (PENDING, "", ""))[0] is PENDING
            return (1 if is_waiting else 0, int(job.job_id))
        return (3 if job.exit_status >> 8 == LAUNCHED_AGAIN else 2, -int(job.job_id))

    return min(jobs, key=rank)


def superfluous(jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Of several living jobs of one tag, those that have not started and are not the one that counts."""
    alive = [job for job in jobs if is_alive(job)]
    if len(alive) < 2:
        return []
    kept = best(alive)
    return [job for job in alive if job is not kept and is_waiting(job)]
