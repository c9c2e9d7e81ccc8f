"""Desired (Kubernetes) x known (cache) -> what to do. Pure; half a plan applied and planned again is harmless."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from interlink.model.ids import JobID, Owner, PodUID, Tag, parse_tag
from interlink.model.pods import Pod
from interlink.model.records import Intent, Record


class Plan(msgspec.Struct, frozen=True):
    """`adopt`: pods to remember, with their job ids; `delete`: gone from Kubernetes, their jobs are to end;
    `forget`: gone from Kubernetes and ended."""

    adopt: list[tuple[Pod, JobID]]
    delete: list[PodUID]
    forget: list[PodUID]


def plan_announcement(
    owner: Owner,
    known: Iterable[tuple[Pod, str | None]],
    records: Mapping[PodUID, Record],
    *,
    told: Collection[PodUID],
    given_up_before: datetime,
) -> Plan:
    """What one owner's complete pod list means for the records; other owners' are not touched.

    `told` are the records that the owner had been told before it made the list: only of these is absence a proof. A
    plugin that has not taken the deletion of a job that ended before `given_up_before` is not asked for ever.
    """
    pods = {PodUID(pod.uid): (pod, job_id) for pod, job_id in known}
    adopt = [
        (pod, JobID(job_id)) for uid, (pod, job_id) in pods.items() if job_id and lacks_job(records.get(uid), owner)
    ]
    gone = [records[uid] for uid in told if uid not in pods and uid in records and records[uid].owner == owner]
    return Plan(
        adopt=adopt,
        delete=[record.pod_uid for record in gone if not _is_settled(record, given_up_before)],
        forget=[record.pod_uid for record in gone if _is_settled(record, given_up_before)],
    )


def _is_settled(record: Record, given_up_before: datetime) -> bool:
    is_old = record.intent is Intent.DELETE and record.ended_at is not None and record.ended_at < given_up_before
    return record.is_over or is_old


def lacks_job(record: Record | None, owner: Owner) -> bool:
    """Whether Kubernetes knows more than the cache. A deletion that is under way needs no job id to go on."""
    if record is None:
        return True
    return record.owner == owner and record.job_id is None and record.intent is Intent.CREATE


class SeenJob(msgspec.Struct, frozen=True):
    """A job at the batch system: its name, and the node it says it was made for."""

    tag: str
    node: str
    is_alive: bool


class Orphan(msgspec.Struct, frozen=True):
    tag: Tag
    owner: Owner


class Sweep(msgspec.Struct, frozen=True):
    """`cancel` now; `suspects` are those seen for the first time, by tag."""

    cancel: list[Orphan]
    suspects: frozenset[str]


def plan_sweep(
    jobs: Iterable[SeenJob],
    records: Mapping[PodUID, Record],
    announced: Mapping[Owner, Collection[PodUID]],
    suspects: Collection[str],
) -> Sweep:
    """Which living jobs have no pod: none in the records, and none that its owner has announced, with a job id or
    without. Jobs of owners that have not announced, and foreign jobs, are never touched."""
    orphans = [orphan for job in jobs if (orphan := _orphan(job, records, announced)) is not None]
    return Sweep(
        cancel=[orphan for orphan in orphans if str(orphan.tag) in suspects],
        suspects=frozenset(str(orphan.tag) for orphan in orphans),
    )


def _orphan(
    job: SeenJob, records: Mapping[PodUID, Record], announced: Mapping[Owner, Collection[PodUID]]
) -> Orphan | None:
    tag = parse_tag(job.tag)
    if tag is None or not job.is_alive or tag.pod_uid in records:
        return None
    owner = Owner(cluster=tag.cluster, node=job.node)
    return Orphan(tag=tag, owner=owner) if tag.pod_uid not in announced.get(owner, [tag.pod_uid]) else None


def expired(
    records: Mapping[PodUID, Record],
    *,
    heard: Mapping[Owner, datetime],
    mentioned: Mapping[PodUID, datetime],
    began_at: datetime,
    lifetime: timedelta,
) -> list[PodUID]:
    """Tombstones of owners that cannot confirm: the job has ended, and the owner has asked about other pods (`heard`)
    when it had not `mentioned` this one for the lifetime.

    What was mentioned before this life of the server (`began_at`) is not known, so it may have been just then. Owners
    that announce are not in `heard`.
    """

    def silence(record: Record, ended_at: datetime) -> timedelta:
        last = max(ended_at, mentioned.get(record.pod_uid, began_at))
        return heard.get(record.owner, last) - last

    return [
        uid
        for uid, record in records.items()
        if record.intent is Intent.DELETE
        and record.ended_at is not None
        and silence(record, record.ended_at) > lifetime
    ]
