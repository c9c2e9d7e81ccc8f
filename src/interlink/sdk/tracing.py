"""Spans of requests and of what is done for one pod; they go nowhere unless a program has a collector."""

import contextlib
from collections.abc import Iterator, Mapping

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from opentelemetry import trace

from interlink.model.pods import Pod


def middleware(tracer: str, names: Mapping[str, str]) -> Middleware:
    """A span for each request whose path has a name."""

    @web.middleware
    async def traced(request: web.Request, handler: Handler) -> web.StreamResponse:
        name = names.get(request.path)
        if name is None:
            return await handler(request)
        with trace.get_tracer(tracer).start_as_current_span(name) as span:
            for header in ("X-Forwarded-Email", "X-Forwarded-User"):
                span.set_attribute(header, request.headers.get(header, "unknown"))
            response = await handler(request)
            span.set_attribute("exit.code", response.status)
            return response

    return traced


@contextlib.contextmanager
def of_pod(tracer: str, name: str, pod: Pod) -> Iterator[None]:
    """A span about a pod."""
    with trace.get_tracer(tracer).start_as_current_span(name):
        tell_pod(pod)
        yield


def tell_pod(pod: Pod) -> None:
    """Which pod the present span is about."""
    trace.get_current_span().set_attributes(
        {"pod.name": pod.metadata.name, "pod.namespace": pod.metadata.namespace, "pod.uid": pod.uid}
    )
