"""The spans of a plugin and of a virtual kubelet."""

from collections.abc import Iterator

import aiohttp
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interlink.model.ids import JobID
from interlink.sdk import hosting, serving, tracing
from interlink.sdk.addresses import Address
from interlink.sdk.plugin import Plugin
from interlink.wire.messages import RetrievedPodData
from tests.unit.builders import document, pod


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    found, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield found
    provider.shutdown()


class Accepting(Plugin):
    async def create(self, request: RetrievedPodData) -> JobID:
        return JobID("j1")


async def test_a_plugin_has_a_span_for_each_route(exporter: InMemorySpanExporter) -> None:
    """About the pod, with the answer's status."""
    app = serving.application(Accepting())  # type: ignore[abstract]
    async with (
        hosting.serving(app, Address("http", "127.0.0.1", 0)) as port,
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/create", json={"pod": document()}) as response,
    ):
        assert response.status == 200

    [span] = exporter.get_finished_spans()
    assert span.name == "CreateSidecar"
    assert span.attributes is not None
    assert (span.attributes["pod.uid"], span.attributes["exit.code"]) == ("uid-1", 200)


def test_a_span_about_a_pod_says_which(exporter: InMemorySpanExporter) -> None:
    """As the virtual kubelet makes them."""
    with tracing.of_pod("interlink-service", "CreatePodVK", pod()):
        pass

    [span] = exporter.get_finished_spans()
    assert span.attributes == {"pod.name": "p", "pod.namespace": "ns", "pod.uid": "uid-1"}
