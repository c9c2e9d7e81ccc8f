"""Traces to an OTLP collector, switched on and set up by the variables of the existing system.

ENABLE_TRACING=1 switches them on. TELEMETRY_ENDPOINT (localhost:4317) is the collector, TELEMETRY_UNIQUE_ID the end of
the service's name. With TELEMETRY_CA_CRT_FILEPATH the connection is mutual TLS, for which TELEMETRY_CLIENT_CRT_FILEPATH
and TELEMETRY_CLIENT_KEY_FILEPATH are needed too; with TELEMETRY_INSECURE_SKIP_VERIFY=true the certificate that the
collector shows at the start is trusted, whoever has signed it. Needs the extra `tracing`.
"""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog
from opentelemetry import trace

from interlink.model.errors import ConfigurationError
from interlink.observe import pinning

log = structlog.get_logger(__name__)

_FILES = ("TELEMETRY_CA_CRT_FILEPATH", "TELEMETRY_CLIENT_KEY_FILEPATH", "TELEMETRY_CLIENT_CRT_FILEPATH")


def configure(environment: Mapping[str, str], *, service: str) -> None:
    """Does nothing unless it is switched on. Raises ConfigurationError naming the variable."""
    if environment.get("ENABLE_TRACING") != "1":
        return
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "ENABLE_TRACING: install the extra: pip install 'interlink-kubelet[tracing]'"
        ) from error
    endpoint = environment.get("TELEMETRY_ENDPOINT") or "localhost:4317"
    credentials, options = _security(environment, endpoint)
    exporter = OTLPSpanExporter(
        endpoint=endpoint, insecure=credentials is None, credentials=credentials, channel_options=options
    )
    name = f"{service}-{environment.get('TELEMETRY_UNIQUE_ID') or uuid.uuid4()}"
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


def _security(environment: Mapping[str, str], endpoint: str) -> tuple[Any, Any]:
    """What gRPC needs for mutual TLS: credentials, and the options of the channel."""
    if not environment.get(_FILES[0]):
        return None, None
    import grpc

    authority, key, certificate = (_read(environment, variable) for variable in _FILES)
    options = None
    if environment.get("TELEMETRY_INSECURE_SKIP_VERIFY") == "true":
        try:
            authority, name = pinning.shown_by(endpoint)
            options = (("grpc.ssl_target_name_override", name),)
        except (OSError, ValueError) as error:
            log.warning("tracing.collector-unknown", error=str(error), consequence="its certificate is verified")
    return grpc.ssl_channel_credentials(authority, key, certificate), options


def _read(environment: Mapping[str, str], variable: str) -> bytes:
    path = environment.get(variable)
    if not path:
        raise ConfigurationError(f"{variable}: missing; with TELEMETRY_CA_CRT_FILEPATH all three files are needed")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{variable}: cannot read {path}: {error.strerror}") from error
