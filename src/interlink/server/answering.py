"""What virtual kubelets are told of a record; pure.

One of the existing kind takes a list in which every container has ended for the end of the pod, and so also an
empty or a short one. So each container of the pod is in it, and one that nothing is known of waits, with the reason.
"""

import msgspec
from msgspec import UNSET, Raw

from interlink.aio import clock
from interlink.model import statuses
from interlink.model.records import Intent, Record
from interlink.model.statuses import ContainerState, ContainerStatus, Terminated, Waiting
from interlink.wire.messages import JobStatus


def known(record: Record) -> JobStatus:
    """What is known, in our own dialect."""
    return JobStatus(
        name=record.pod.metadata.name,
        uid=record.pod_uid,
        namespace=record.pod.metadata.namespace,
        job_id=record.job_id or "",
        containers=list(record.containers),
        init_containers=list(record.init_containers),
        remark=record.remark or UNSET,
    )


def status(record: Record, trouble: str) -> JobStatus | None:
    """In the existing dialect; None for a deleted pod that never had a job. `trouble`: why a create that is open is
    not done."""
    never_was = record.intent is Intent.DELETE and record.job_id is None and not record.containers
    if never_was and record.has_ended and record.rejected is None:
        return None
    return msgspec.structs.replace(known(record), containers=[*record.containers, *_of_the_others(record, trouble)])


def _of_the_others(record: Record, trouble: str) -> list[Raw]:
    names = [container.name for container in record.pod.spec.containers or []]
    if len(names) == len(record.containers):
        return []
    told = {statuses.read(raw).name for raw in record.containers}
    state = _state(record, trouble)
    missing = [ContainerStatus(name=name, state=state) for name in names if name not in told]
    return [Raw(msgspec.json.encode(entry)) for entry in missing]


def _state(record: Record, trouble: str) -> ContainerState:
    if record.rejected is not None:
        return _ended(record, 1, "JobRejected", record.rejected)
    if record.has_ended:
        message = "the pod has ended, and nothing is known of this container"
        return _ended(record, 137, "ContainerStatusUnknown", message)
    if record.intent is Intent.CREATE:
        return _waits("SiteUnreachable", f"the pod waits for its job: {trouble}")
    return _waits("ContainerCreating", "the site has told nothing of the job yet")


def _ended(record: Record, exit_code: int, reason: str, message: str) -> ContainerState:
    moment = clock.rfc3339(record.ended_at or record.updated_at)
    end = Terminated(exit_code=exit_code, reason=reason, message=message, finished_at=moment)
    return ContainerState(terminated=end)


def _waits(reason: str, message: str) -> ContainerState:
    return ContainerState(waiting=Waiting(reason=reason, message=message))
