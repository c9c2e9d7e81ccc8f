"""What the pod loop does while creates wait. Time is virtual."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import msgspec
import prometheus_client
import pytest

from interlink.kube.client import KubeClient
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.sources import KubeSource
from interlink.kubelet.pods.podloop import PodLoop
from interlink.model.phases import Place
from interlink.wire.messages import Change, JobStatus
from tests.unit.builders import Document, document, raws, running, seen
from tests.unit.virtual_time import in_virtual_time

WITH_ID: Document = {"annotations": {"JobID": "j1"}}
STARTED: Document = {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}
A_WRITE_S = 1.0


class Kubernetes:
    """Takes a second for each write, and remembers when it was there and how often a container had restarted."""

    def __init__(self) -> None:
        self.written: list[tuple[float, str, int]] = []

    async def patch(self, path: str, body: bytes) -> bytes:
        await asyncio.sleep(A_WRITE_S)
        uid = path.split("/")[-2]
        status = msgspec.json.decode(body)["status"]
        self.written.append((asyncio.get_running_loop().time(), uid, status["containerStatuses"][0]["restartCount"]))
        metadata = WITH_ID | {"name": uid, "resourceVersion": str(len(self.written) + 1)}
        return msgspec.json.encode(document(uid, metadata=metadata, status=status))

    def first(self, uid: str, restarts: int) -> float:
        return next((at for at, *what in self.written if what == [uid, restarts]), float("inf"))


class Site(PodLoop):
    """A pod loop whose creates never begin, and that is told what a server would tell."""

    def __init__(self) -> None:
        self.kubernetes = Kubernetes()
        super().__init__(
            cast("KubeClient", self.kubernetes),
            cast("Server", None),
            cast("KubeSource", None),
            lambda: cast("Surroundings", None),
            place=Place(host_ip="", pod_ip=""),
            pods_path="",
            pods_params={},
            concurrent_creates=1,
            tell=lambda _: None,
        )
        self.reflector.synced.set()

    def have(self, *uids: str) -> None:
        for uid in uids:
            self.reflector.pods[uid] = seen(uid, metadata=WITH_ID | {"name": uid}, status=STARTED)

    def keep_creates_waiting(self) -> None:
        for uid in ("new-1", "new-2", "new-3"):
            self.reflector.pods[uid] = seen(uid)
            self._creates.add(uid)

    def tell_of(self, uid: str, *, restarts: int) -> None:
        entry = running(restartCount=restarts)
        status = JobStatus(name=uid, uid=uid, namespace="ns", job_id="j1", containers=raws(entry))
        self._take(Change(status=status, revision=1))

    def _take(self, *changes: Change) -> None:
        self.jobs.changes.update({change.status.uid: change for change in changes})
        self._on_jobs([change.status.uid for change in changes])

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        work = asyncio.create_task(self.run(), name="loop")
        try:
            yield
        finally:
            work.cancel()
            await asyncio.sleep(0)
            work.cancel()
            await asyncio.wait([work])


@in_virtual_time
async def test_news_that_come_while_older_ones_are_written_do_not_wait_for_ever() -> None:
    """The older ones' time was forgotten together with theirs: they were put aside as new again and again."""
    site = Site()
    site.have("p")
    async with site.at_work():
        site.tell_of("p", restarts=0)
        await asyncio.sleep(A_WRITE_S / 2)
        site.keep_creates_waiting()
        site.tell_of("p", restarts=1)
        await asyncio.sleep(60)

    assert site.kubernetes.first("p", 1) < A_WRITE_S / 2 + 10 + 2 * A_WRITE_S


@in_virtual_time
async def test_news_wait_for_ten_seconds_at_most() -> None:
    """Whenever the first one of those that wait was put aside."""
    site = Site()
    uids = [f"p{number}" for number in range(10)]
    site.have(*uids)
    site.keep_creates_waiting()
    told: dict[str, float] = {}
    async with site.at_work():
        for uid in uids:
            told[uid] = asyncio.get_running_loop().time()
            site.tell_of(uid, restarts=1)
            await asyncio.sleep(1.7)
        await asyncio.sleep(60)

    assert all(site.kubernetes.first(uid, 1) <= at + 10 + A_WRITE_S for uid, at in told.items())


@in_virtual_time
async def test_the_time_of_news_of_no_pod_is_not_kept() -> None:
    """A job may end after its pod was deleted by force."""
    site = Site()
    async with site.at_work():
        site.tell_of("gone", restarts=0)
        await asyncio.sleep(1)

    assert site._told_at == {}


# --- metrics ---------------------------------------------------------------------------------------------------------


def metric(name: str, **labels: str) -> float:
    return prometheus_client.REGISTRY.get_sample_value(f"interlink_kubelet_{name}", labels) or 0.0


@in_virtual_time
async def test_pods_are_counted_by_phase() -> None:
    """As they are when somebody looks."""
    site = Site()
    for number, phase in enumerate(("Pending", "Pending", "Running", "Succeeded", "Failed")):
        site.reflector.pods[f"p{number}"] = seen(f"p{number}", status={"phase": phase})

    counts = [metric("pods", phase=phase) for phase in ("Pending", "Running", "Succeeded", "Failed")]
    assert counts == [2, 1, 1, 1]
    site.reflector.pods.clear()
    assert metric("pods", phase="Pending") == 0


@in_virtual_time
async def test_the_work_queues_have_a_length() -> None:
    """Creates that wait, and pods with news."""
    site = Site()
    site.have("p")
    site.keep_creates_waiting()
    site.tell_of("p", restarts=0)
    assert (metric("queue_length", queue="creates"), metric("queue_length", queue="pods")) == (3, 1)

    async with site.at_work():
        await asyncio.sleep(15)
        assert metric("queue_length", queue="pods") == 0


@in_virtual_time
async def test_the_lag_of_a_status_is_measured() -> None:
    """From the server's word to the end of the write."""
    site = Site()
    site.have("p")
    count, total = metric("status_lag_seconds_count"), metric("status_lag_seconds_sum")
    async with site.at_work():
        site.tell_of("p", restarts=0)
        await asyncio.sleep(5)

    assert metric("status_lag_seconds_count") - count == 1
    assert metric("status_lag_seconds_sum") - total == pytest.approx(A_WRITE_S, abs=0.1)
