"""What a job's own record and the batch system together say of its containers; pure.

The job's record wins: it knows exit codes. The batch system only fills what the record cannot say: that the job still
waits, or that its runner was killed before it could write an end.
"""

from collections.abc import Sequence

import msgspec

from interlink.model.pods import Container, Pod
from interlink.model.statuses import ContainerState, ContainerStatus, Terminated, Waiting
from interlink.sdk.batch.jobdir import RunnerState
from interlink.sdk.batch.scheduler import Life, Observation

_KILLED = 137


class Containers(msgspec.Struct, frozen=True):
    main: list[ContainerStatus]
    init: list[ContainerStatus]


def containers(pod: Pod, state: RunnerState | None, seen: Observation, *, now: str) -> Containers | None:
    """None when nothing is known: no record, and the batch system does not have the job."""
    if state is None:
        return _waiting(pod, seen) if seen.life is not Life.GONE else None
    if state.has_ended:
        return _ended(state, now)
    if seen.life is Life.GONE:
        return _killed(state, now)
    return Containers(main=state.containers, init=state.init_containers)


def _waiting(pod: Pod, seen: Observation) -> Containers:
    waiting = ContainerState(waiting=Waiting(reason=seen.reason or "ContainerCreating", message=seen.message))

    def all_of(specs: Sequence[Container] | None) -> list[ContainerStatus]:
        return [ContainerStatus(name=c.name, image=c.image, state=waiting) for c in specs or []]

    return Containers(main=all_of(pod.spec.containers), init=all_of(pod.spec.init_containers))


def _ended(state: RunnerState, now: str) -> Containers:
    """A job that was stopped before a container could start has no result for it; one that waits for an init
    container that failed keeps waiting, as in a kubelet."""
    if not any(status.waiting and status.waiting.reason == "Cancelled" for status in state.containers):
        return Containers(main=state.containers, init=state.init_containers)
    message = state.message or "the job was stopped before the container could start"
    return Containers(
        main=[status if status.terminated else _unknown(status, message, now) for status in state.containers],
        init=state.init_containers,
    )


def _killed(state: RunnerState, now: str) -> Containers:
    message = "the job was killed and left no result for this container"

    def settled(status: ContainerStatus) -> ContainerStatus:
        return status if status.terminated else _unknown(status, message, now)

    return Containers(
        main=[settled(status) for status in state.containers],
        init=[settled(status) if status.running else status for status in state.init_containers],
    )


def _unknown(status: ContainerStatus, message: str, now: str) -> ContainerStatus:
    """As a kubelet reports a container that it cannot find any more."""
    started = status.running.started_at if status.running else now
    terminated = Terminated(
        exit_code=_KILLED, reason="ContainerStatusUnknown", message=message, started_at=started, finished_at=now
    )
    return msgspec.structs.replace(status, state=ContainerState(terminated=terminated), ready=False, started=False)
