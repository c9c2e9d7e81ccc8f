"""A pod's create at the virtual kubelet: what is in its way, and how long it takes. Time is virtual."""

import asyncio
from typing import Any, cast

import prometheus_client
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interlink.kube.client import KubeClient
from interlink.kube.events import Note
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.errors import Waits
from interlink.kubelet.inputs.sources import KubeSource
from interlink.kubelet.pods.creating import Creator
from interlink.kubelet.pods.publishing import Publisher
from interlink.kubelet.pods.rejections import Rejections
from interlink.model.ids import JobID
from interlink.model.phases import JobView
from interlink.model.pods import Pod
from interlink.sdk.errors import Unreachable
from interlink.wire.messages import PodCreateRequest
from tests.unit.builders import seen
from tests.unit.kubelet.inputs.kubernetes import HERE
from tests.unit.virtual_time import in_virtual_time

A_CREATE_S = 3.0


class Kubernetes:
    """Has nothing."""

    async def get(self, path: str, **_: str) -> bytes:
        return b'{"items": []}'


class Around:
    """Server and publisher of a creator, in one."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.published: list[tuple[JobView, JobID | None]] = []
        self.told: list[Note] = []
        self.creator = Creator(
            cast("Server", self),
            KubeSource(cast("KubeClient", Kubernetes())),
            lambda: HERE,
            cast("Publisher", self),
            self.told.append,
            Rejections(lambda: asyncio.get_running_loop().time()),
        )

    async def create(self, request: PodCreateRequest, pod: Pod) -> JobID:
        await asyncio.sleep(A_CREATE_S)
        if self._error is not None:
            raise self._error
        return JobID("j1")

    async def publish(self, pod: Pod, job: JobView, job_id: JobID | None) -> Any:
        self.published.append((job, job_id))


def metric(name: str) -> float:
    return prometheus_client.REGISTRY.get_sample_value(f"interlink_kubelet_create_seconds_{name}") or 0.0


@in_virtual_time
async def test_the_time_of_a_create_is_measured() -> None:
    """From the pod being seen first, whatever it waited for, to its job id being written."""
    around = Around()
    count, total = metric("count"), metric("sum")
    seen_at = asyncio.get_running_loop().time()
    await asyncio.sleep(2)

    await around.creator.create(seen(), seen_at=seen_at)

    assert [job_id for _, job_id in around.published] == ["j1"]
    assert metric("count") - count == 1
    assert metric("sum") - total == pytest.approx(2 + A_CREATE_S, abs=0.1)


@in_virtual_time
async def test_a_create_that_fails_is_not_measured() -> None:
    """It has not taken any time yet; the pod says why it waits."""
    around = Around(Unreachable("the plugin is away"))
    count = metric("count")

    with pytest.raises(Waits):
        await around.creator.create(seen(), seen_at=0.0)

    assert metric("count") == count
    [(view, _)] = around.published
    assert view.waiting is not None
    assert (view.waiting.reason, view.waiting.message) == ("SiteUnreachable", "the plugin is away")
    assert [note.reason for note in around.told] == ["BackOff"]


@in_virtual_time
async def test_a_create_is_a_span() -> None:
    """Of the call to the server, about the pod."""
    around, exporter, provider = Around(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", provider.get_tracer)
        await around.creator.create(seen(), seen_at=0.0)

    [span] = exporter.get_finished_spans()
    assert span.name == "CreatePodVK"
    assert span.attributes is not None
    assert span.attributes["pod.uid"] == "uid-1"
