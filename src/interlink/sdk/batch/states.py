"""What a job's own record and the batch system together say of its containers; pure.

The job's record wins: it knows exit codes. The batch system fills what the record cannot say: why the job waits, why it
was stopped from outside, how it ended when its runner could not write an end.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from interlink.aio import clock
from interlink.model.pods import Container, Pod
from interlink.model.statuses import ContainerState, ContainerStatus, Remark, Running, Terminated, Waiting
from interlink.sdk.batch.jobdir import Ending, RunnerState
from interlink.sdk.batch.scheduler import Life, Observation

_KILLED = 137
_STOPPED = 143
_UNKNOWN = Ending(reason="ContainerStatusUnknown", message="the job was killed and left no result for this container")


class Containers(msgspec.Struct, frozen=True):
    main: list[ContainerStatus]
    init: list[ContainerStatus]


def containers(
    pod: Pod, state: RunnerState | None, seen: Observation, *, now: datetime, settle_s: float = 0.0
) -> Containers | None:
    """None when nothing is known: no record, and the batch system does not have the job.

    settle_s: for how long a record and the batch system may disagree about an end before one of them is believed.
    """
    if state is None:
        return _without_record(pod, seen, now=now, settle_s=settle_s)
    if state.has_ended:
        is_waited_for = seen.is_alive if state.was_stopped_from_outside else seen.has_more_to_say and _is_success(state)
        if is_waited_for and not _is_past(state.finished_at, now, settle_s):
            return _not_yet(state)
        return _ended(state, seen.ending, _text(now))
    if seen.life is Life.GONE:
        return _killed(state, _UNKNOWN, _text(now))
    if seen.ending is not None and _is_past(seen.ending.finished_at, now, settle_s):
        return _killed(state, seen.ending, _text(now))
    return Containers(main=state.containers, init=state.init_containers)


def remark(seen: Observation) -> Remark | None:
    """What the batch system says of a job that runs; most of the time nothing."""
    if seen.life is not Life.RUNNING or not seen.reason:
        return None
    return Remark(reason=seen.reason, message=seen.message or "")


def recalled(pod: Pod, seen: Observation, *, now: datetime) -> Containers | None:
    """Of a job whose directory is lost: the batch system's word is all there is."""
    match seen.life:
        case Life.GONE:
            return None
        case Life.PENDING:
            return _waiting(pod, seen)
        case Life.RUNNING:
            running = ContainerState(running=Running(started_at=seen.started_at or _text(now)))
            return Containers(main=_all_of(pod.spec.containers, running, is_running=True), init=[])
        case Life.ENDED:
            return Containers(main=_all_of(pod.spec.containers, _end(seen.ending or _UNKNOWN, _text(now))), init=[])


def _without_record(pod: Pod, seen: Observation, *, now: datetime, settle_s: float) -> Containers | None:
    if seen.life is Life.GONE:
        return None
    ending = seen.ending
    if ending is None or (ending.started_at and not _is_past(ending.finished_at, now, settle_s)):
        return _waiting(pod, seen)
    if ending.is_success:
        message = "the batch system says that the job succeeded, but its programs were never started"
        ending = Ending(reason="ContainerStatusUnknown", message=message, finished_at=ending.finished_at)
    return Containers(main=_all_of(pod.spec.containers, _end(ending, _text(now))), init=[])


def _waiting(pod: Pod, seen: Observation) -> Containers:
    waiting = ContainerState(waiting=Waiting(reason=seen.reason or "ContainerCreating", message=seen.message))
    return Containers(main=_all_of(pod.spec.containers, waiting), init=_all_of(pod.spec.init_containers, waiting))


def _all_of(
    specs: Sequence[Container] | None, state: ContainerState, *, is_running: bool = False
) -> list[ContainerStatus]:
    return [
        ContainerStatus(name=c.name, image=c.image, state=state, ready=is_running, started=is_running or None)
        for c in specs or []
    ]


def _end(ending: Ending, now: str) -> ContainerState:
    """As the batch system tells it; without a code of its own it is that of a killed program."""
    code = 0 if ending.is_success else ending.exit_code or _KILLED
    finished = ending.finished_at or now
    return ContainerState(
        terminated=Terminated(
            exit_code=code,
            reason=ending.reason,
            message=ending.message,
            started_at=ending.started_at or finished,
            finished_at=finished,
        )
    )


def _not_yet(state: RunnerState) -> Containers:
    """The record has an end, and the batch system will say why: until then the last programs count as running."""

    def still(status: ContainerStatus) -> ContainerStatus:
        if status.terminated is None:
            return status
        running = ContainerState(running=Running(started_at=status.terminated.started_at))
        return msgspec.structs.replace(status, state=running)

    return Containers(main=[still(status) for status in state.containers], init=state.init_containers)


def _ended(state: RunnerState, ending: Ending | None, now: str) -> Containers:
    """A job that was stopped before a container could start has no result for it; one that waits for an init
    container that failed keeps waiting, as in a kubelet."""
    main = state.containers
    if ending is not None and not ending.is_success:
        if state.was_stopped_from_outside:
            main = [_explained(status, state, ending) for status in main]
        elif ending.overrules_success and _is_success(state):
            main = [_replaced(status, _KILLED, ending) for status in main]
    if any(status.waiting and status.waiting.reason == "Cancelled" for status in main):
        why = ending if ending and not ending.is_success and state.was_stopped_from_outside else _not_started(state)
        main = [status if status.terminated else _settled(status, why, now) for status in main]
    return Containers(main=main, init=state.init_containers)


def _not_started(state: RunnerState) -> Ending:
    message = state.message or "the job was stopped before the container could start"
    return Ending(reason=_UNKNOWN.reason, message=message)


def _explained(status: ContainerStatus, state: RunnerState, ending: Ending) -> ContainerStatus:
    """Why a program ended that the batch system had told to stop; one that had ended before keeps its own end."""
    ended = status.terminated
    if ended is None or not (_ended_after(ended, state) or state.was_signalled_before(ended)):
        return status
    return _replaced(status, ended.exit_code or _STOPPED, ending)


def _ended_after(ended: Terminated, state: RunnerState) -> bool:
    return "" < (state.stopped_at or "") <= (ended.finished_at or "")


def _replaced(status: ContainerStatus, exit_code: int, ending: Ending) -> ContainerStatus:
    assert status.terminated is not None
    terminated = msgspec.structs.replace(
        status.terminated, exit_code=exit_code, reason=ending.reason, message=ending.message
    )
    return msgspec.structs.replace(status, state=ContainerState(terminated=terminated))


def _killed(state: RunnerState, ending: Ending, now: str) -> Containers:
    def settled(status: ContainerStatus) -> ContainerStatus:
        return status if status.terminated else _settled(status, ending, now)

    return Containers(
        main=[settled(status) for status in state.containers],
        init=[settled(status) if status.running else status for status in state.init_containers],
    )


def _settled(status: ContainerStatus, ending: Ending, now: str) -> ContainerStatus:
    """A program without an end of its own gets the job's, as a kubelet does when it cannot find a container."""
    state = _end(ending, now)
    assert state.terminated is not None
    if status.running and status.running.started_at:
        started_at = status.running.started_at
        state = ContainerState(terminated=msgspec.structs.replace(state.terminated, started_at=started_at))
    return msgspec.structs.replace(status, state=state, ready=False, started=False)


def _is_success(state: RunnerState) -> bool:
    return bool(state.containers) and all(s.terminated and s.terminated.exit_code == 0 for s in state.containers)


def _is_past(moment: str | None, now: datetime, settle_s: float) -> bool:
    """Whether a moment lies so many seconds back; what is no moment does: a job's user can write its record."""
    try:
        return (now - datetime.fromisoformat(moment or "")).total_seconds() >= settle_s
    except (ValueError, TypeError):
        return True


def _text(now: datetime) -> str:
    return clock.rfc3339(now)
