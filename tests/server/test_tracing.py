"""Traces reach an OTLP collector under the names of the existing system."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import trustme
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import ServerClient, pod, uid_of


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.spans: dict[str, dict[str, str]] = {}
        self.services: set[str] = set()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 -- the name in the protocol
        with self.lock:
            for resource in request.resource_spans:
                self.services |= {a.value.string_value for a in resource.resource.attributes if a.key == "service.name"}
                for span in (span for scope in resource.scope_spans for span in scope.spans):
                    self.spans[span.name] = {a.key: a.value.string_value for a in span.attributes}
        return trace_service_pb2.ExportTraceServiceResponse()


@pytest.fixture
def collector() -> Iterator[tuple[Collector, int]]:
    server = grpc.server(ThreadPoolExecutor(2))
    found = Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(found, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield found, port
    server.stop(0).wait()


async def test_spans_of_the_routes(
    make_server: Callable[..., Programs], session: aiohttp.ClientSession, collector: tuple[Collector, int]
) -> None:
    """CreateAPI carries the pod; nothing of its environment; the service has the name that was asked for."""
    found, port = collector
    programs = make_server()
    programs.server.environ |= {
        "ENABLE_TRACING": "1",
        "TELEMETRY_ENDPOINT": f"127.0.0.1:{port}",
        "TELEMETRY_UNIQUE_ID": "site-a",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    programs.start()
    document = pod()
    await ServerClient(session, programs.server_port).create(document)

    async def has_span() -> bool:
        return "CreateAPI" in found.spans

    assert await until_async(has_span, deadline_s=20)
    assert found.spans["CreateAPI"]["pod.uid"] == uid_of(document)
    assert found.services == {"InterLink-Plugin-site-a"}
    assert "s3cr3t" not in str(found.spans)


async def test_collector_that_nobody_vouches_for(
    make_server: Callable[..., Programs], session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """TELEMETRY_INSECURE_SKIP_VERIFY takes the certificate that it shows, of whatever authority and name."""
    trusted, own = trustme.CA(), trustme.CA()
    shown, client = own.issue_cert("collector.elsewhere"), trusted.issue_cert("server")
    trusted.cert_pem.write_to_path(tmp_path / "ca")
    client.private_key_pem.write_to_path(tmp_path / "key")
    client.cert_chain_pems[0].write_to_path(tmp_path / "crt")
    pair = (shown.private_key_pem.bytes(), shown.cert_chain_pems[0].bytes())
    found, server = Collector(), grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(found, server)  # type: ignore[no-untyped-call]
    credentials = grpc.ssl_server_credentials([pair], trusted.cert_pem.bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    programs = make_server()
    programs.server.environ |= {
        "ENABLE_TRACING": "1",
        "TELEMETRY_ENDPOINT": f"127.0.0.1:{port}",
        "TELEMETRY_CA_CRT_FILEPATH": str(tmp_path / "ca"),
        "TELEMETRY_CLIENT_CRT_FILEPATH": str(tmp_path / "crt"),
        "TELEMETRY_CLIENT_KEY_FILEPATH": str(tmp_path / "key"),
        "TELEMETRY_INSECURE_SKIP_VERIFY": "true",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    programs.start()
    await ServerClient(session, programs.server_port).create(pod())

    async def has_span() -> bool:
        return "CreateAPI" in found.spans

    assert await until_async(has_span, deadline_s=20)
    server.stop(0).wait()
