"""A plugin's HTTP side: the existing wire dialect, and what is under `/interlink/v1/` of our own."""

import contextlib
from collections.abc import AsyncIterator

import structlog
from aiohttp import web

from interlink.model import ids
from interlink.model.pods import Pod
from interlink.sdk import hosting
from interlink.sdk.plugin import Metered, Plugin, Refreshing
from interlink.wire import codec, messages
from interlink.wire.messages import CreateAnswer, LogRequest, Refresh, RetrievedPodData, UsageRequest

log = structlog.get_logger(__name__)


def application(plugin: Plugin) -> web.Application:
    """Any method is accepted on the routes of the existing contract, as its programs use GET and POST alike."""
    handlers = _Handlers(plugin)
    return hosting.application(
        [
            web.route("*", "/create", handlers.create),
            web.route("*", "/delete", handlers.delete),
            web.route("*", "/status", handlers.status),
            web.route("*", "/getLogs", handlers.logs),
            web.post(messages.JOBS, handlers.jobs),
            *([web.post(messages.USAGE, _usage(plugin))] if isinstance(plugin, Metered) else []),
            *([web.post(messages.REFRESH, _refresh(plugin))] if isinstance(plugin, Refreshing) else []),
        ],
        readiness=list,
    )


def _usage(plugin: Metered) -> hosting.Handler:
    async def usage(request: web.Request) -> web.Response:
        message = codec.decode(await request.read(), UsageRequest)
        return json_answer(list(await plugin.usage([ids.pod_uid(uid) for uid in message.pods])))

    return usage


def _refresh(plugin: Refreshing) -> hosting.Handler:
    async def refresh(request: web.Request) -> web.Response:
        await plugin.refresh(codec.decode(await request.read(), Refresh))
        return web.Response(text="the files have been replaced")

    return refresh


class _Handlers:
    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    async def create(self, request: web.Request) -> web.Response:
        data = codec.decode_one(await request.read(), RetrievedPodData)
        pod = codec.decode(bytes(data.pod), Pod)
        job_id = await self._plugin.create(data)
        log.info("job.created", pod=pod.full_name, pod_uid=pod.uid, job_id=job_id)
        return json_answer(CreateAnswer(pod_uid=pod.uid, job_id=job_id))

    async def delete(self, request: web.Request) -> web.Response:
        pod = codec.decode_one(await request.read(), Pod)
        await self._plugin.delete(pod)
        log.info("job.deleting", pod=pod.full_name, pod_uid=pod.uid)
        return web.Response(text="the job is being ended")

    async def status(self, request: web.Request) -> web.Response:
        pods = codec.decode_list(await request.read(), Pod)
        if not pods:
            return json_answer(await self._plugin.capacity())
        return json_answer(list(await self._plugin.status(pods)))

    async def logs(self, request: web.Request) -> web.StreamResponse:
        message = codec.decode(await request.read(), LogRequest)
        async with contextlib.aclosing(self._plugin.logs(message)) as chunks:
            return await stream(request, chunks)

    async def jobs(self, _: web.Request) -> web.Response:
        return json_answer(list(await self._plugin.jobs()))


async def stream(request: web.Request, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    """Pass bytes on as they come; a client that goes ends it.

    An error before the first chunk is an error answer; a later one cuts the connection, so that nobody takes a part for
    the whole.
    """
    first = await anext(chunks, b"")
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    await response.prepare(request)
    with hosting.waiting_for_news(request), contextlib.suppress(ConnectionResetError):
        try:
            await response.write(first)
            async for chunk in chunks:
                await response.write(chunk)
            await response.write_eof()
        except Exception as error:  # the outer edge of a request whose answer has begun
            log.warning("stream.broken", path=request.path, error=repr(error))
            if request.transport is not None:
                request.transport.abort()
    return response


def json_answer(message: object) -> web.Response:
    return web.Response(body=codec.encode(message), content_type="application/json")
