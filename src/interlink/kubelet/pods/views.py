"""What the server says of a job, as the plan and the status of its pod need it; pure."""

from collections.abc import Iterable

import msgspec
import structlog

from interlink.kubelet.pods.planning import Known
from interlink.model import statuses
from interlink.model.phases import JobView
from interlink.model.statuses import ContainerStatus
from interlink.wire.messages import Change

log = structlog.get_logger(__name__)


def known(change: Change | None) -> Known | None:
    if change is None:
        return None
    return Known(
        has_job=bool(change.status.job_id),
        has_ended=change.has_ended,
        is_deleting=change.is_deleting,
        is_rejected=change.rejected is not None,
    )


def view(change: Change, *, is_expired: bool = False) -> JobView:
    return JobView(
        containers=readable(change.status.containers, change.status.uid),
        init_containers=readable(change.status.init_containers, change.status.uid),
        remark=change.status.remark or None,
        has_ended=change.has_ended,
        rejected=change.rejected,
        is_expired=is_expired and change.is_deleting,
    )


def readable(raws: Iterable[msgspec.Raw] | None, pod_uid: str) -> list[ContainerStatus]:
    """An entry that is no container status says nothing."""
    found = []
    for raw in raws or []:
        try:
            found.append(statuses.read(raw))
        except msgspec.MsgspecError as error:
            log.warning("status.unreadable", pod_uid=pod_uid, error=str(error))
    return found
