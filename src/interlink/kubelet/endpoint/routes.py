"""The HTTPS endpoint on the node's port: the paths of a kubelet, as the API server and metrics-server call them."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from interlink.aio import clock
from interlink.kubelet.endpoint import listing, logs, resource_metrics, summary, usage
from interlink.kubelet.endpoint.usage import NodeUsage, Usages
from interlink.model.pods import Pod, Seen
from interlink.sdk import hosting
from interlink.sdk.errors import NotFound, SDKError
from interlink.sdk.serving import pass_on
from interlink.wire.messages import LogRequest

log = structlog.get_logger(__name__)

OpenLog = Callable[[LogRequest], contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]]
_STREAMED = ("exec", "attach", "portForward", "run")


class Node(msgspec.Struct, frozen=True):
    """What the endpoint shows. `usages` is asked at each scrape, and raises SDKError when it cannot be answered."""

    name: str
    configuration: dict[str, Any]
    pods: Callable[[], Sequence[Seen]]
    open_log: OpenLog
    usages: Callable[[], Awaitable[Usages]]


def application(node: Node, readiness: hosting.Readiness, guard: Middleware | None) -> web.Application:
    """`guard` None lets everybody in."""
    routes = _Routes(node)
    streamed = [web.route("*", f"/{name}/{{path:.*}}", _not_yet(name)) for name in _STREAMED]
    found = [
        web.get("/healthz/{check:ping|log|syncloop}", _ok),
        web.get("/containerLogs/{namespace}/{pod}/{container}", routes.logs),
        web.get("/pods", routes.pods),
        web.get("/runningpods/", routes.running_pods),
        web.get("/stats/summary", routes.summary),
        web.post("/stats/summary", routes.summary),
        web.get("/metrics/resource", routes.resource_metrics),
        web.get("/configz", routes.configz),
    ]
    return hosting.application([*found, *streamed], readiness=readiness, guard=guard)


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _not_yet(name: str) -> hosting.Handler:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(
            status=501, text=f"{name} is not possible on this node yet: its pods run at a remote site\n"
        )

    return refuse


class _Routes:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._node_usage = NodeUsage()
        self._started_at = clock.rfc3339(clock.now())

    async def logs(self, request: web.Request) -> web.StreamResponse:
        place = request.match_info
        pod = self._find(place["namespace"], place["pod"])
        options = logs.log_options(request)
        logs.check_readable(pod, place["container"], is_previous=bool(options.previous))
        question = LogRequest(
            namespace=place["namespace"],
            pod_uid=pod.uid,
            pod_name=place["pod"],
            container=place["container"],
            options=options,
        )
        try:
            async with self._node.open_log(question) as chunks:
                return await pass_on(request, chunks)
        except NotFound as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        except SDKError as error:
            raise web.HTTPBadGateway(text=f"cannot read the log: {error}") from error

    def _find(self, namespace: str, name: str) -> Pod:
        """Raises HTTPNotFound."""
        for pod in self._pods():
            if (pod.metadata.namespace, pod.metadata.name) == (namespace, name):
                return pod
        raise web.HTTPNotFound(text=f"pod {name!r} not found in namespace {namespace!r}")

    def _pods(self) -> list[Pod]:
        return [seen.pod for seen in self._node.pods()]

    async def pods(self, _: web.Request) -> web.Response:
        return web.Response(body=listing.all_pods(self._node.pods()), content_type="application/json")

    async def running_pods(self, _: web.Request) -> web.Response:
        return _json(listing.running_pods(self._pods()))

    async def configz(self, _: web.Request) -> web.Response:
        return _json({"kubeletconfig": self._node.configuration})

    async def summary(self, _: web.Request) -> web.Response:
        found = await self._usages()
        node = self._node_usage.of(found or {})
        return _json(summary.summary(self._node.name, self._started_at, node, usage.rows(self._pods(), found or {})))

    async def resource_metrics(self, _: web.Request) -> web.Response:
        found = await self._usages()
        rows = usage.rows(self._pods(), found or {})
        text = resource_metrics.text(self._node_usage.of(found or {}), rows, has_failed=found is None)
        return web.Response(body=text.encode(), headers={"Content-Type": resource_metrics.CONTENT_TYPE})

    async def _usages(self) -> Usages | None:
        """None when they could not be asked for."""
        try:
            return await self._node.usages()
        except SDKError as error:
            log.warning("usage.unknown", error=str(error))
            return None


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
