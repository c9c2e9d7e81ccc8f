"""The cache record of one pod, and how it may change. All functions are pure and return a new record.

A record is the server's memory of what it has promised: the intent before the plugin is asked, the job id before it
is passed on, a terminal state before it is told. It never holds an environment or the content of a Secret.
"""

import enum
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

import msgspec
from msgspec import Raw

from interlink.model import statuses
from interlink.model.ids import JobID, Owner, PodUID, Tag
from interlink.model.pods import Pod, skeleton
from interlink.model.statuses import ContainerState, ContainerStatus, Remark, Terminated

FORMAT = 1


class Intent(enum.StrEnum):
    """What has been promised and is not yet known to be done."""

    CREATE = "create"
    NONE = "none"
    DELETE = "delete"


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    format: int
    pod: Pod
    owner: Owner
    intent: Intent
    created_at: datetime
    updated_at: datetime
    attempt: int = 0
    job_id: JobID | None = None
    submitted_at: datetime | None = None
    containers: tuple[Raw, ...] = ()
    init_containers: tuple[Raw, ...] = ()
    remark: Remark | None = None
    rejected: str | None = None
    absent_since: datetime | None = None
    ended_at: datetime | None = None
    confirmed_at: datetime | None = None
    """When the plugin took the deletion, or denied that there is a job."""
    revision: int = 0
    """How often the record has changed; never falls."""

    @property
    def pod_uid(self) -> PodUID:
        return PodUID(self.pod.uid)

    @property
    def tag(self) -> Tag:
        return Tag(cluster=self.owner.cluster, pod_uid=self.pod_uid, attempt=self.attempt)

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    @property
    def is_over(self) -> bool:
        """Deleted, ended and confirmed: nothing is left to do for it."""
        return self.has_ended and self.intent is Intent.DELETE and self.confirmed_at is not None

    @property
    def is_live(self) -> bool:
        """Whether the plugin is to be asked about it."""
        return not self.has_ended and (self.job_id is not None or self.intent is Intent.DELETE)


def begun(pod: Pod, owner: Owner, now: datetime) -> Record:
    return Record(format=FORMAT, pod=skeleton(pod), owner=owner, intent=Intent.CREATE, created_at=now, updated_at=now)


def adopted(pod: Pod, owner: Owner, job_id: JobID, now: datetime) -> Record:
    """A pod that Kubernetes knows with a job id and the cache does not know."""
    return accepted(begun(pod, owner, now), job_id, now)


def accepted(record: Record, job_id: JobID, now: datetime) -> Record:
    """The plugin has the job; a deletion that was asked meanwhile stays asked."""
    intent = Intent.DELETE if record.intent is Intent.DELETE else Intent.NONE
    return replace(record, now, intent=intent, job_id=job_id, submitted_at=record.submitted_at or now)


def rejected(record: Record, reason: str, now: datetime) -> Record:
    """The plugin refused for good; a deletion that was asked meanwhile stays asked, and a result stays a result."""
    if record.has_ended:
        return record
    intent = Intent.DELETE if record.intent is Intent.DELETE else Intent.NONE
    return replace(record, now, intent=intent, rejected=reason, ended_at=now)


def deleting(record: Record, pod: Pod, now: datetime) -> Record:
    """The tombstone: from here on nothing is created for this pod. `pod` brings the grace period that is asked."""
    metadata = msgspec.structs.replace(
        record.pod.metadata,
        deletion_timestamp=pod.metadata.deletion_timestamp,
        deletion_grace_period_seconds=pod.metadata.deletion_grace_period_seconds,
    )
    return _changed(record, now, intent=Intent.DELETE, pod=msgspec.structs.replace(record.pod, metadata=metadata))


def confirmed(record: Record, now: datetime) -> Record:
    """The plugin has taken the deletion; until then it is asked again, also when the job has ended by itself."""
    return record if record.confirmed_at else replace(record, now, confirmed_at=now)


def settled(record: Record, now: datetime) -> Record:
    """A deleted pod's job has ended, or the plugin denies that it exists."""
    return _changed(record, now, ended_at=record.ended_at or now, confirmed_at=record.confirmed_at or now)


def observed(
    record: Record,
    containers: Sequence[Raw],
    init_containers: Sequence[Raw],
    job_id: str,
    now: datetime,
    *,
    remark: Remark | None = None,
) -> Record:
    """What a plugin's answer makes of a record; the same record when it brings nothing new.

    Terminal never changes again; a state that says nothing leaves what was known. Raises msgspec.MsgspecError for an
    entry that is no container status.
    """
    if record.has_ended or (record.remark == remark and _is_known(record, containers, init_containers, job_id)):
        return record
    main = _merged(record.containers, containers)
    init = _merged(record.init_containers, init_containers)
    has_ended = statuses.have_ended(
        [statuses.read(raw) for raw in main],
        [statuses.read(raw) for raw in init],
        expected=len(record.pod.spec.containers or []),
        restart_policy=record.pod.spec.restart_policy,
    )
    known_id = record.job_id or (JobID(job_id) if job_id else None)
    return _changed(
        record,
        now,
        containers=main,
        init_containers=init,
        remark=None if has_ended else remark,
        job_id=known_id,
        absent_since=None,
        ended_at=now if has_ended else None,
    )


def _is_known(record: Record, containers: Sequence[Raw], init_containers: Sequence[Raw], job_id: str) -> bool:
    """Whether a plugin repeats itself word for word: everything was concluded when it said so first.

    This is what nearly all answers about thousands of running jobs are. An end is always looked at again, so that a
    record of an earlier version does not stay open.
    """
    return (
        record.absent_since is None
        and (record.job_id is not None or not job_id)
        and tuple(containers) == record.containers
        and tuple(init_containers) == record.init_containers
        and not any(b'"terminated"' in bytes(raw) for raw in (*containers, *init_containers))
    )


def says_something(states: Sequence[Raw]) -> bool:
    """Whether any of these is a state at all. Raises msgspec.MsgspecError for an entry that is no container status."""
    return any(statuses.read(raw).says_something for raw in states)


def _merged(known: Sequence[Raw], news: Sequence[Raw]) -> tuple[Raw, ...]:
    """The known states with the news over them, by container name; an empty state is no news."""
    by_name = {statuses.read(raw).name: raw for raw in known}
    for raw in news:
        status = statuses.read(raw)
        if status.says_something or status.name not in by_name:
            by_name[status.name] = raw.copy()
    return tuple(by_name.values())


def unmentioned(record: Record, now: datetime, grace: timedelta) -> Record:
    """The plugin, asked for this pod explicitly, does not have it. After the grace period the job counts as lost."""
    if record.has_ended:
        return record
    if record.intent is Intent.DELETE:
        return settled(record, now)
    if record.absent_since is None:
        return replace(record, now, absent_since=now)
    if now - record.absent_since < grace:
        return record
    lost = tuple(Raw(msgspec.json.encode(_lost(container.name, now))) for container in record.pod.spec.containers or [])
    return replace(record, now, containers=lost, ended_at=now)


def _lost(name: str, now: datetime) -> ContainerStatus:
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    terminated = Terminated(
        exit_code=137,
        reason="JobLost",
        message="the batch system no longer knows this job and it left no result",
        started_at=moment,
        finished_at=moment,
    )
    return ContainerStatus(name=name, state=ContainerState(terminated=terminated))


def replace(record: Record, now: datetime, **changes: object) -> Record:
    return msgspec.structs.replace(record, updated_at=now, revision=record.revision + 1, **changes)


def _changed(record: Record, now: datetime, **changes: object) -> Record:
    """The record with the changes, or the same record when they change nothing."""
    if msgspec.structs.replace(record, **changes) == record:
        return record
    return replace(record, now, **changes)


class Decision(enum.Enum):
    """What a create request for a pod means, given what is known."""

    BEGIN = "begin"
    ASK_FIRST = "ask first"
    ANSWER = "answer"
    REJECTED = "rejected"
    REFUSE_DELETED = "refuse: deleted"
    REFUSE_OWNER = "refuse: another owner"


def decide_create(record: Record | None, owner: Owner) -> Decision:
    if record is None:
        return Decision.BEGIN
    if record.owner != owner:
        return Decision.REFUSE_OWNER
    if record.rejected is not None:
        return Decision.REJECTED
    match record.intent:
        case Intent.DELETE:
            return Decision.REFUSE_DELETED
        case Intent.CREATE:
            return Decision.ASK_FIRST
        case Intent.NONE:
            return Decision.ANSWER
    assert_never(record.intent)
