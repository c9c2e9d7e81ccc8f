"""The status of a pod that follows from the states of its job: one pure function, by the rules of a kubelet.

`pod_status` starts from the status that Kubernetes has now: what it had to keep (start time, other owners' conditions,
transition times, restart counts) is kept, so that an unchanged job gives an equal status and nothing has to be written.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from interlink.model import pods, statuses
from interlink.model.pods import Container, Pod
from interlink.model.statuses import (
    Condition,
    ContainerState,
    ContainerStatus,
    PodStatus,
    Remark,
    Running,
    Terminated,
    Waiting,
)

_LONGEST_MESSAGE = 4096
_LONGEST_MESSAGES = 12 * 1024
"""Bytes of termination messages, of one container and of all of a pod."""

_EXPIRED = "Pod was active on the node longer than the specified deadline"


Failing = Mapping[str, Mapping[str, str]]
"""By container and kind of probe: what a failing probe said."""


class JobView(msgspec.Struct, frozen=True):
    """What is known of a pod's job. `waiting`: why there is none yet; `rejected`: why there will be none, and in a
    word (`rejection`). `is_expired`: it was ended because the pod's time was over. `remark`: of one that runs."""

    containers: Sequence[ContainerStatus] = ()
    init_containers: Sequence[ContainerStatus] = ()
    has_ended: bool = False
    waiting: Waiting | None = None
    rejected: str | None = None
    rejection: str = "JobRejected"
    is_expired: bool = False
    remark: Remark | None = None

    @property
    def failing(self) -> Failing:
        return {s.name: s.failing for s in (*self.init_containers, *self.containers) if s.failing}


class Place(msgspec.Struct, frozen=True):
    """The addresses that a pod of this node has."""

    host_ip: str
    pod_ip: str


def is_expired(pod: Pod, now: datetime) -> bool:
    """Whether `activeDeadlineSeconds` have passed since the node has taken the pod, its time in a queue included."""
    return pod.status.start_time is not None and seconds_left(pod, now) == 0.0


def seconds_left(pod: Pod, now: datetime) -> float | None:
    """Until the pod's time is over; None when it has no limit. It begins when the node takes the pod."""
    limit_s = pod.spec.active_deadline_seconds
    if limit_s is None:
        return None
    start = _moment(pod.status.start_time) or now
    return max(0.0, limit_s - (now - start).total_seconds())


def pod_status(pod: Pod, job: JobView, place: Place, now: datetime) -> PodStatus:
    """The status that the pod should have. A terminal phase is returned as it is."""
    if pod.is_terminal:
        return pod.status
    kept_back = pods.kept_back(pod)
    whole, pod = pod, pods.offloaded(pod)
    create = job.waiting or Waiting(reason="ContainerCreating")
    initialize = job.waiting or Waiting(reason="PodInitializing")
    policy = pod.spec.restart_policy
    init = _all_of(
        pod.spec.init_containers,
        job.init_containers,
        pod.status.init_container_statuses,
        create,
        is_init=True,
        restart_policy=policy,
    )
    main = _all_of(
        pod.spec.containers,
        job.containers,
        pod.status.container_statuses,
        initialize if pod.spec.init_containers else create,
        is_init=False,
        restart_policy=policy,
    )
    phase = _phase(pod, main, init, job)
    if job.has_ended and job.rejected is None:
        main = [_settled(status, pod, now) for status in main]
    main, init = _with_short_messages(main, init)
    host_ip = pod.status.host_ip or place.host_ip  # an address more than one of a family is refused
    pod_ip = pod.status.pod_ip or pod.wanted_ip or place.pod_ip
    status = PodStatus(
        phase=phase,
        reason=_reason(job, main, phase),
        message=_message(job, phase),
        observed_generation=pod.metadata.generation,
        start_time=pod.status.start_time or _rfc3339(now),
        host_ip=host_ip,
        host_ips=[{"ip": host_ip}],
        pod_ip=pod_ip,
        pod_ips=[{"ip": pod_ip}],
        container_statuses=sorted(main, key=lambda s: s.name),
        init_container_statuses=init or None,
        ephemeral_container_statuses=_ephemeral(pod, now) or None,
    )
    status = msgspec.structs.replace(status, conditions=_conditions(pod, status, now))
    return _with_kept_back(whole, status, kept_back, has_ended=job.has_ended, now=now) if kept_back else status


def _with_kept_back(pod: Pod, status: PodStatus, names: frozenset[str], *, has_ended: bool, now: datetime) -> PodStatus:
    """Every container of the spec has an entry; one that is not part of the job waits, and is done with it."""
    moment = pod.status.start_time or _rfc3339(now)
    state = ContainerState(waiting=Waiting(reason="NotOffloaded", message="an annotation keeps it out of the job"))
    if has_ended:
        ended = Terminated(exit_code=0, reason="NotOffloaded", started_at=moment, finished_at=moment)
        state = ContainerState(terminated=ended)

    def entry(spec: Container) -> ContainerStatus:
        empty = ContainerState()
        return ContainerStatus(name=spec.name, image=spec.image, state=state, last_state=empty, started=False)

    def completed(specs: Sequence[Container] | None, known: Sequence[ContainerStatus] | None) -> list[ContainerStatus]:
        by_name = {one.name: one for one in known or []}
        return [by_name.get(spec.name) or entry(spec) for spec in specs or [] if spec.name in {*by_name, *names}]

    main = completed(pod.spec.containers, status.container_statuses)
    init = completed(pod.spec.init_containers, status.init_container_statuses)
    return msgspec.structs.replace(
        status,
        container_statuses=sorted(main, key=lambda s: s.name),
        init_container_statuses=init or None,
    )


# --- container states ------------------------------------------------------------------------------------------------


def _all_of(
    specs: Sequence[Container] | None,
    reported: Sequence[ContainerStatus],
    present: Sequence[ContainerStatus] | None,
    default: Waiting,
    *,
    is_init: bool,
    restart_policy: str,
) -> list[ContainerStatus]:
    """One status for each container of the spec, in its order; `default` for those that nothing is known of."""
    by_name = {status.name: status for status in reported if status.says_something}
    known = {status.name: status for status in present or []}
    return [
        _normalised(
            spec,
            by_name.get(spec.name),
            known.get(spec.name),
            default,
            is_init=is_init,
            restart_policy="Always" if is_init and spec.is_sidecar else restart_policy,
        )
        for spec in specs or []
    ]


def _normalised(
    spec: Container,
    status: ContainerStatus | None,
    known: ContainerStatus | None,
    default: Waiting,
    *,
    is_init: bool,
    restart_policy: str,
) -> ContainerStatus:
    """In the form in which Kubernetes keeps it: whole seconds, no nulls."""
    if known is not None and _stays(known, status, restart_policy):
        return known
    if status is None:
        status = ContainerStatus(name=spec.name, state=ContainerState(waiting=default))
    is_done_init = is_init and status.terminated is not None and status.terminated.exit_code == 0
    restarts = max(_int32(status.restart_count or 0), (known.restart_count or 0) if known else 0)
    return ContainerStatus(
        name=spec.name,
        image=status.image or spec.image,
        image_id=status.image_id or "",
        container_id=status.container_id or None,
        state=_in_seconds(status.state),
        last_state=_last_state(status, known),
        ready=is_done_init or (status.running is not None and status.ready),
        started=status.running is not None and status.started is not False,
        restart_count=restarts,
    )


def _stays(known: ContainerStatus, news: ContainerStatus | None, restart_policy: str) -> bool:
    """As Kubernetes has it: silence takes nothing back from a container that has started, and one that has ended for
    good is not believed to be there again, for the API server would refuse the whole status."""
    if news is None:
        return bool(known.running or known.terminated)
    return bool(known.terminated) and not news.terminated and not _may_start_again(known, restart_policy)


def _may_start_again(known: ContainerStatus, restart_policy: str) -> bool:
    """By the rule that the API server holds statuses against."""
    has_failed = known.terminated is not None and known.terminated.exit_code != 0
    return restart_policy == "Always" or (restart_policy == "OnFailure" and has_failed)


def _last_state(status: ContainerStatus, known: ContainerStatus | None) -> ContainerState:
    """How it ended before, which a plugin may leave out; it makes a container that waits to start again no new one."""
    told = _in_seconds(status.last_state)
    if told != ContainerState() or known is None:
        return told
    has_restarted = (status.restart_count or 0) > (known.restart_count or 0)
    if known.terminated and (has_restarted or not status.terminated):
        return ContainerState(terminated=known.terminated)
    return known.last_state or told


def _in_seconds(state: ContainerState | None) -> ContainerState:
    """As the API server keeps it: whole seconds, and nothing that is empty."""
    if state is None:
        return ContainerState()
    if (running := state.running) is not None:
        return ContainerState(running=Running(started_at=_whole(running.started_at)))
    if (ended := state.terminated) is not None:
        return ContainerState(
            terminated=Terminated(
                exit_code=_int32(ended.exit_code),
                signal=_int32(ended.signal) if ended.signal else UNSET,
                reason=ended.reason or ("Completed" if ended.exit_code == 0 else "Error"),
                message=ended.message or None,
                started_at=_whole(ended.started_at),
                finished_at=_whole(ended.finished_at),
                container_id=ended.container_id or UNSET,
            )
        )
    if (waiting := state.waiting) is not None:
        return ContainerState(waiting=Waiting(reason=waiting.reason or None, message=waiting.message or None))
    return state


def _int32(number: int) -> int:
    """As wide as Kubernetes has it: it would refuse the whole status otherwise."""
    return max(-(2**31), min(number, 2**31 - 1))


def _whole(moment: str | None) -> str | None:
    """RFC 3339 in UTC with a resolution of one second; None for what is no time, and for Go's zero time."""
    found = _moment(moment)
    return None if found is None or found.year == 1 else _rfc3339(found)


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _rfc3339(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _ephemeral(pod: Pod, now: datetime) -> list[ContainerStatus]:
    """They are added to a running pod, whose job cannot take them: each has failed as soon as it is seen."""
    known = {status.name: status for status in pod.status.ephemeral_container_statuses or []}
    return [known.get(c.name) or _refused(c, now) for c in pod.spec.ephemeral_containers or []]


def _refused(container: Container, now: datetime) -> ContainerStatus:
    ended = Terminated(
        exit_code=128,
        reason="ContainerCannotRun",
        message="this node runs no ephemeral containers: a running job takes no new ones",
        started_at=_rfc3339(now),
        finished_at=_rfc3339(now),
    )
    state, nothing = ContainerState(terminated=ended), ContainerState()
    return ContainerStatus(name=container.name, image=container.image, state=state, last_state=nothing, started=False)


def _settled(status: ContainerStatus, pod: Pod, now: datetime) -> ContainerStatus:
    """A container that a finished job says nothing of cannot be found any more."""
    is_waiting_for_init = status.waiting is not None and status.waiting.reason == "PodInitializing"
    if status.terminated is not None or is_waiting_for_init:
        return status
    terminated = Terminated(
        exit_code=137,
        reason="ContainerStatusUnknown",
        message="the job ended before the container could start",
        started_at=pod.status.start_time or _rfc3339(now),
        finished_at=_rfc3339(now),
    )
    return msgspec.structs.replace(status, state=ContainerState(terminated=terminated), ready=False, started=False)


def _with_short_messages(
    main: list[ContainerStatus], init: list[ContainerStatus]
) -> tuple[list[ContainerStatus], list[ContainerStatus]]:
    """As long as a kubelet lets them be: for a container, and for all of a pod together."""
    lengths = [len((s.terminated.message or "").encode()) for s in (*main, *init) if s.terminated]
    most = _LONGEST_MESSAGE
    if sum(min(length, most) for length in lengths) > _LONGEST_MESSAGES:
        most = _LONGEST_MESSAGES // len(lengths)
    if max(lengths, default=0) <= most:
        return main, init
    return [_cut(status, most) for status in main], [_cut(status, most) for status in init]


def _cut(status: ContainerStatus, most: int) -> ContainerStatus:
    if status.terminated is None or not status.terminated.message:
        return status
    message = status.terminated.message.encode()[:most].decode(errors="ignore")
    state = ContainerState(terminated=msgspec.structs.replace(status.terminated, message=message))
    return msgspec.structs.replace(status, state=state)


# --- phase -----------------------------------------------------------------------------------------------------------


def _phase(pod: Pod, main: Sequence[ContainerStatus], init: Sequence[ContainerStatus], job: JobView) -> str:
    if job.rejected is not None:
        return "Failed"
    if _has_expired(job):
        return "Failed"
    if job.has_ended:
        return "Succeeded" if statuses.is_success(main) else "Failed"
    sidecars = {spec.name for spec in pod.spec.init_containers or [] if spec.is_sidecar}
    if not all(_has_passed(status, is_sidecar=status.name in sidecars) for status in init):
        return "Pending"
    if any(status.waiting and status.last_state == ContainerState() for status in main):
        return "Pending"
    return "Running"


def _has_passed(status: ContainerStatus, *, is_sidecar: bool) -> bool:
    if is_sidecar:
        return bool(status.started) or status.terminated is not None
    return status.terminated is not None and status.terminated.exit_code == 0


def _has_expired(job: JobView) -> bool:
    return job.is_expired and job.has_ended


def _reason(job: JobView, main: Sequence[ContainerStatus], phase: str) -> str | None:
    """A reason of the batch system that is not a container's own end is the pod's reason as well."""
    if job.rejected is not None:
        return job.rejection
    if _has_expired(job):
        return "DeadlineExceeded"
    if phase == "Running" and job.remark is not None:
        return job.remark.reason or None
    if phase != "Failed":
        return None
    reasons = (status.terminated.reason for status in main if status.terminated)
    return next((r for r in reasons if r not in (None, "Error", "Completed", "ContainerStatusUnknown")), None)


def _message(job: JobView, phase: str) -> str | None:
    if job.rejected is not None:
        return job.rejected
    if _has_expired(job):
        return _EXPIRED
    return job.remark.message or None if phase == "Running" and job.remark is not None else None


# --- conditions ------------------------------------------------------------------------------------------------------

_OURS = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


def _conditions(pod: Pod, status: PodStatus, now: datetime) -> list[Condition]:
    """Ours, with their transition times, after those of other owners, which are kept as they are."""
    present = {condition.type: condition for condition in pod.status.conditions or []}
    foreign = [condition for condition in present.values() if condition.type not in _OURS]
    return [*foreign, *(_dated(condition, present, pod, now) for condition in _wanted(pod, status, present))]


def _dated(condition: Condition, present: Mapping[str, Condition], pod: Pod, now: datetime) -> Condition:
    before = present.get(condition.type)
    is_flipped = before is None or before.status != condition.status
    return msgspec.structs.replace(
        condition,
        last_transition_time=_rfc3339(now) if is_flipped or before is None else before.last_transition_time,
        last_probe_time=before.last_probe_time if before else None,
        observed_generation=pod.metadata.generation,
    )


def _wanted(pod: Pod, status: PodStatus, present: Mapping[str, Condition]) -> Iterable[Condition]:
    main = status.container_statuses or []
    init = status.init_container_statuses or []
    has_started = any(s.running or s.terminated or s.restart_count for s in main)
    yield Condition(type="PodScheduled", status="True")
    yield _condition("PodReadyToStartContainers", is_true=has_started or any(s.running or s.terminated for s in init))
    yield _initialized(pod, status.phase, init, has_started=has_started)
    sidecars = {spec.name for spec in pod.spec.init_containers or [] if spec.is_sidecar}
    containers_ready = _containers_ready(status.phase, [*main, *(s for s in init if s.name in sidecars)])
    yield containers_ready
    yield _ready(pod, containers_ready, present)


def _condition(kind: str, *, is_true: bool, reason: str | None = None, message: str | None = None) -> Condition:
    if is_true:
        return Condition(type=kind, status="True")
    return Condition(type=kind, status="False", reason=reason, message=message)


def _initialized(pod: Pod, phase: str, init: Sequence[ContainerStatus], *, has_started: bool) -> Condition:
    if phase == "Succeeded":
        return Condition(type="Initialized", status="True", reason="PodCompleted")
    sidecars = {spec.name for spec in pod.spec.init_containers or [] if spec.is_sidecar}
    open_ = [s.name for s in init if not _has_passed(s, is_sidecar=s.name in sidecars)]
    is_true = has_started or not open_
    message = f"containers with incomplete status: [{' '.join(open_)}]"
    return _condition("Initialized", is_true=is_true, reason="ContainersNotInitialized", message=message)


def _containers_ready(phase: str, main: Sequence[ContainerStatus]) -> Condition:
    if phase in ("Succeeded", "Failed"):
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        return Condition(type="ContainersReady", status="False", reason=reason)
    unready = [status.name for status in main if not status.ready]
    message = f"containers with unready status: [{' '.join(unready)}]"
    return _condition("ContainersReady", is_true=not unready, reason="ContainersNotReady", message=message)


def _ready(pod: Pod, containers_ready: Condition, present: Mapping[str, Condition]) -> Condition:
    if containers_ready.status != "True":
        return msgspec.structs.replace(containers_ready, type="Ready")
    gates = [gate.condition_type for gate in pod.spec.readiness_gates or []]
    closed = [gate for gate in gates if gate not in present or present[gate].status != "True"]
    message = f"corresponding condition of pod readiness gate does not exist or is not True: [{' '.join(closed)}]"
    return _condition("Ready", is_true=not closed, reason="ReadinessGatesNotReady", message=message)
