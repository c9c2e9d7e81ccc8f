"""Pods, records and container states in few words, for every unit test."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Raw

from interlink.model import pods, records
from interlink.model.ids import JobID, Owner
from interlink.model.pods import Pod, Seen
from interlink.model.records import Record
from interlink.model.statuses import ContainerStatus

Document = dict[str, Any]

NOW = datetime(2026, 7, 14, 10, 0, 0, tzinfo=UTC)
OWNER = Owner(cluster="c", node="vk")
OTHER = Owner(cluster="c", node="another")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def document(
    uid: str = "uid-1", *, metadata: Document | None = None, status: Document | None = None, **spec: Any
) -> Document:
    """A pod of one container `c` that is not restarted, as JSON."""
    base = {"nodeName": "vk", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    meta = {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": "1"}
    return {"metadata": meta | (metadata or {}), "spec": base | spec, "status": status or {"phase": "Pending"}}


def pod(uid: str = "uid-1", *, metadata: Document | None = None, status: Document | None = None, **spec: Any) -> Pod:
    return msgspec.convert(document(uid, metadata=metadata, status=status, **spec), Pod)


def seen(uid: str = "uid-1", **changes: Any) -> Seen:
    return pods.seen(msgspec.json.encode(document(uid, **changes)))


def record(uid: str = "uid-1", *, owner: Owner = OWNER, job_id: str | None = "j1", **spec: Any) -> Record:
    begun = records.begun(pod(uid, **spec), owner, NOW)
    return records.accepted(begun, JobID(job_id), NOW) if job_id else begun


def running(name: str = "c", **fields: Any) -> Document:
    state = {"running": {"startedAt": "2026-07-14T10:00:01Z"}}
    return {"name": name, "state": state, "ready": True} | fields


def ended(name: str = "c", exit_code: int = 0, **fields: Any) -> Document:
    times = {"startedAt": "2026-07-14T10:00:01Z", "finishedAt": "2026-07-14T10:00:02Z"}
    return {"name": name, "state": {"terminated": {"exitCode": exit_code, **times}}} | fields


def waiting(name: str = "c", reason: str = "PodInitializing", **fields: Any) -> Document:
    return {"name": name, "state": {"waiting": {"reason": reason}}} | fields


def silent(name: str = "c") -> Document:
    return {"name": name, "state": {}}


def status(entry: Document) -> ContainerStatus:
    return msgspec.convert(entry, ContainerStatus)


def statuses(*entries: Document) -> list[ContainerStatus]:
    return [status(entry) for entry in entries]


def raws(*entries: Any) -> list[Raw]:
    return [Raw(msgspec.json.encode(entry)) for entry in entries]
