"""News of running pods wait while creates do; ends, job ids and old news never. Time is virtual."""

import asyncio

import pytest

from interlink.kubelet.pods.deferring import AGAIN_S, PATIENCE_S, Deferred, can_wait
from interlink.wire.messages import Change, JobStatus
from tests.unit.builders import Document, pod
from tests.unit.virtual_time import in_virtual_time

WITH_ID: Document = {"annotations": {"JobID": "j1"}}
DELETED: Document = WITH_ID | {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
STARTED: Document = {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}


def change(*, job_id: str = "j1", has_ended: bool = False, rejected: str | None = None) -> Change:
    status = JobStatus(name="p", namespace="ns", uid="uid-1", job_id=job_id)
    return Change(status=status, revision=1, has_ended=has_ended, rejected=rejected)


def test_news_of_a_running_pod_can_wait() -> None:
    """The pod has its job id already."""
    assert can_wait(pod(metadata=WITH_ID, status=STARTED), change(), age_s=0)


@pytest.mark.parametrize(
    ("metadata", "news", "age_s"),
    [
        pytest.param({}, change(), 0, id="no job id yet"),
        pytest.param(WITH_ID, change(job_id="j2"), 0, id="another job id"),
        pytest.param(WITH_ID, change(has_ended=True), 0, id="the end"),
        pytest.param(WITH_ID, change(rejected="no"), 0, id="rejected"),
        pytest.param(DELETED, change(), 0, id="being deleted"),
        pytest.param(WITH_ID, change(), PATIENCE_S, id="has waited long enough"),
    ],
)
def test_what_cannot_wait(metadata: Document, news: Change, age_s: float) -> None:
    """Nothing that a crash could lose, and nothing for ever."""
    assert not can_wait(pod(metadata=metadata, status=STARTED), news, age_s=age_s)


@in_virtual_time
async def test_what_waits_comes_back_once() -> None:
    """As soon as it is resumed, in the order in which it was put aside."""
    again: list[str] = []
    deferred = Deferred(again.append)
    for uid in ("a", "b", "a"):
        deferred.put(uid)

    deferred.resume()
    await asyncio.sleep(2 * AGAIN_S)

    assert again == ["a", "b"]


@in_virtual_time
async def test_what_nobody_resumes_comes_back_after_a_while() -> None:
    """Creates that never end do not hide that pods run."""
    again: list[str] = []
    deferred = Deferred(again.append)
    for uid in ("a", "b"):
        deferred.put(uid)
        await asyncio.sleep(AGAIN_S - 1)
        assert uid not in again
        await asyncio.sleep(1.1)

    assert again == ["a", "b"]
