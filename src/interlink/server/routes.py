"""HTTP for the service: the existing dialect at any method, our own under `/interlink/v1/`."""

import msgspec
import structlog
from aiohttp import web
from opentelemetry import trace

from interlink.model import ids
from interlink.model.ids import DEFAULT_CLUSTER, Owner
from interlink.model.pods import Pod
from interlink.sdk import hosting, tracing
from interlink.sdk.errors import Unreachable
from interlink.sdk.serving import json_answer, pass_on
from interlink.server.errors import StoreUnavailable
from interlink.server.service import Service
from interlink.wire import codec, messages
from interlink.wire.messages import (
    Announcement,
    ChangesRequest,
    CreateAnswer,
    LogRequest,
    PodCreateRequest,
    Refresh,
    UsageRequest,
)

log = structlog.get_logger(__name__)

# As the existing system names them.
_SPANS = {
    "/create": "CreateAPI",
    "/delete": "DeleteAPI",
    "/status": "StatusAPI",
    "/getLogs": "GetLogsAPI",
    "/pinglink": "PingAPI",
}


def application(service: Service, *, create_hold_s: float, body_limit_bytes: int) -> web.Application:
    """`create_hold_s`: how long a create waits for a plugin that cannot be reached, when its caller does not say."""
    routes = _Routes(service, create_hold_s)
    app = hosting.application(
        [
            web.route("*", "/create", routes.create),
            web.route("*", "/delete", routes.delete),
            web.route("*", "/status", routes.status),
            web.route("*", "/getLogs", routes.logs),
            web.route("*", "/pinglink", routes.ping),
            web.route("*", "/updateCache", routes.update_cache),
            web.post(messages.ANNOUNCE, routes.announce),
            web.post(messages.CHANGES, routes.changes),
            web.post(messages.USAGE, routes.usage),
            web.post(messages.REFRESH, routes.refresh),
        ],
        readiness=service.problems,
        body_limit_bytes=body_limit_bytes,
    )
    app.middlewares.append(tracing.middleware("interlink-API", _SPANS))
    return app


class _Routes:
    def __init__(self, service: Service, create_hold_s: float) -> None:
        self._service = service
        self._create_hold_s = create_hold_s

    def _hold_s(self, request: web.Request) -> float:
        """An existing virtual kubelet gives a pod up at the first error, so its create is held."""
        text = request.headers.get(messages.HOLD_HEADER, "")
        return float(text) if text.isdecimal() else self._create_hold_s

    async def create(self, request: web.Request) -> web.Response:
        message = codec.decode_one(await request.read(), PodCreateRequest)
        pod = codec.decode(bytes(message.pod), Pod)
        tracing.tell_pod(pod)
        try:
            job_id = await self._service.create(
                message,
                pod,
                _owner(request, pod),
                node=_node(request),
                session=_session(request),
                hold_s=self._hold_s(request),
            )
        except StoreUnavailable as error:
            raise Unreachable(f"the server cannot write its cache: {error}") from error
        return json_answer(CreateAnswer(pod_uid=pod.uid, job_id=job_id))

    async def delete(self, request: web.Request) -> web.Response:
        body = await request.read()
        pod = codec.decode_one(body, Pod)
        tracing.tell_pod(pod)
        try:
            await self._service.delete(pod, body, _owner(request, pod), node=_node(request), session=_session(request))
        except StoreUnavailable as error:
            raise Unreachable(f"the server cannot write its cache: {error}") from error
        return web.Response(text="the job is being ended")

    async def status(self, request: web.Request) -> web.Response:
        pods = codec.decode_list(await request.read(), Pod)
        trace.get_current_span().set_attribute("pods.count", len(pods))
        return json_answer(await self._service.statuses(pods, _cluster(request), node=_node(request)))

    async def logs(self, request: web.Request) -> web.StreamResponse:
        message = codec.decode(await request.read(), LogRequest)
        asked = self._service.logs(message, _cluster(request), node=_node(request), session=_session(request))
        async with asked as chunks:
            return await pass_on(request, chunks)

    async def ping(self, _: web.Request) -> web.Response:
        return web.Response(body=await self._service.ping(), content_type="application/json")

    async def update_cache(self, _: web.Request) -> web.Response:
        """Kept for existing virtual kubelets, which have nothing to update: the plugin is asked every interval."""
        return web.Response(text="Updated cache")

    async def announce(self, request: web.Request) -> web.Response:
        message = codec.decode(await request.read(), Announcement)
        for known in message.pods:
            ids.pod_uid(known.pod.uid)
        owner = ids.owner(message.owner.cluster, message.owner.node)
        message = msgspec.structs.replace(message, owner=owner)
        return json_answer(await self._service.announce(message))

    async def changes(self, request: web.Request) -> web.Response:
        message = codec.decode(await request.read(), ChangesRequest)
        owner = ids.owner(message.owner.cluster, message.owner.node)
        message = msgspec.structs.replace(message, owner=owner)
        with hosting.waiting_for_news(request):
            return json_answer(await self._service.changes(message))

    async def refresh(self, request: web.Request) -> web.Response:
        message = codec.decode(await request.read(), Refresh)
        await self._service.refresh(message, _owner(request, message.pod))
        return web.Response(text="the files have been replaced")

    async def usage(self, request: web.Request) -> web.Response:
        message = codec.decode(await request.read(), UsageRequest)
        asked = message.owner or Owner(cluster=DEFAULT_CLUSTER, node="")
        return json_answer(await self._service.usage(ids.owner(asked.cluster, asked.node)))


def _cluster(request: web.Request) -> str:
    """An existing virtual kubelet names no cluster: then it is the default one."""
    return ids.cluster_name(request.headers.get(messages.CLUSTER_HEADER, DEFAULT_CLUSTER))


def _node(request: web.Request) -> str:
    """Empty for an existing virtual kubelet, which does not say who it is."""
    return request.headers.get(messages.NODE_HEADER, "")


def _owner(request: web.Request, pod: Pod) -> Owner:
    return ids.owner(_cluster(request), pod.spec.node_name)


def _session(request: web.Request) -> str:
    return request.headers.get(messages.SESSION_HEADER, "")
