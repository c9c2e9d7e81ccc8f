"""The HTTPS endpoint on the node's port, as the API server calls it for `kubectl logs`."""

from collections.abc import Callable, Mapping

import structlog
from aiohttp import web

from interlink.aio import clock
from interlink.kubelet.server import Server
from interlink.model.pods import Pod
from interlink.sdk import hosting
from interlink.sdk.errors import NotFound, SDKError
from interlink.sdk.serving import stream
from interlink.wire.messages import LogOptions, LogRequest

log = structlog.get_logger(__name__)

FindPod = Callable[[str, str], Pod | None]


def application(server: Server, find_pod: FindPod, readiness: hosting.Readiness) -> web.Application:
    routes = _Routes(server, find_pod)
    return hosting.application(
        [web.get("/containerLogs/{namespace}/{pod}/{container}", routes.logs)], readiness=readiness
    )


class _Routes:
    def __init__(self, server: Server, find_pod: FindPod) -> None:
        self._server = server
        self._find_pod = find_pod

    async def logs(self, request: web.Request) -> web.StreamResponse:
        place = request.match_info
        pod = self._find_pod(place["namespace"], place["pod"])
        if pod is None:
            raise web.HTTPNotFound(text=f"pod {place['pod']!r} not found in namespace {place['namespace']!r}")
        question = LogRequest(
            namespace=place["namespace"],
            pod_uid=pod.uid,
            pod_name=place["pod"],
            container=place["container"],
            options=log_options(request),
        )
        try:
            async with self._server.logs(question) as chunks:
                return await stream(request, chunks)
        except NotFound as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        except SDKError as error:
            raise web.HTTPBadGateway(text=f"cannot read the log: {error}") from error


def log_options(request: web.Request) -> LogOptions:
    """The query of `kubectl logs` in the contract's form, in which zero lines would mean all.

    Raises HTTPUnprocessableEntity for what contradicts itself.
    """
    query = request.query
    if "sinceSeconds" in query and "sinceTime" in query:
        raise web.HTTPUnprocessableEntity(text="at most one of sinceTime or sinceSeconds may be specified")
    is_news_only = query.get("tailLines") == "0"
    since = clock.now().isoformat() if is_news_only else query.get("sinceTime", "0001-01-01T00:00:00Z")
    return LogOptions(
        tail=_number(query, "tailLines"),
        limit_bytes=_number(query, "limitBytes"),
        since_seconds=0 if is_news_only else _number(query, "sinceSeconds"),
        since_time=since,
        timestamps=query.get("timestamps") == "true",
        follow=query.get("follow") == "true",
        previous=query.get("previous") == "true",
    )


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "0")
    if not text.isdecimal():
        raise web.HTTPUnprocessableEntity(text=f"{name} must be a number that is not negative, not {text!r}")
    return int(text)
