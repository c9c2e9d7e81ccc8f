"""A plugin's HTTP side: the existing wire dialect, and what is under `/interlink/v1/` of our own."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from interlink.aio.supervising import run_repeatedly
from interlink.model import ids
from interlink.model.errors import ModelError
from interlink.model.pods import Pod
from interlink.sdk import hosting, library_logs, listening, noticing, running, tokens, tracing
from interlink.sdk.listening import Listening
from interlink.sdk.plugin import Metered, Plugin, Recurring, Refreshing
from interlink.sdk.tls import TLSFile
from interlink.wire import codec, messages
from interlink.wire.messages import CreateAnswer, LogRequest, Refresh, RetrievedPodData, UsageRequest

log = structlog.get_logger(__name__)

_SPANS = {
    "/create": "CreateSidecar",
    "/delete": "DeleteSidecar",
    "/status": "StatusSidecar",
    "/getLogs": "GetLogsSidecar",
}


def serve(plugin: Plugin, address: str, *, tls: TLSFile | None = None, token_file: str | Path = "") -> None:
    """Serve a plugin until SIGTERM or SIGINT: its calls, `/healthz`, `/readyz`, `/metrics`. Requests in flight finish.

    address: unix:///path, http://host:port or https://host:port; `tls` names the files for https, and with an authority
    clients must show a certificate of it. token_file: callers must show the bearer token that it holds. Logs go to
    stderr, a JSON line each, unless the program has configured structlog. What is wrong with the arguments ends the
    program with one line and exit code 2.

        serve(MyPlugin(), "http://127.0.0.1:4000")
    """
    if not structlog.is_configured():
        _log_to_stderr()
    try:
        asyncio.run(run(plugin, listening.at(address, tls_files=tls, token_file=token_file)))
    except ModelError as error:
        sys.stderr.write(f"Error: {error}\n")
        raise SystemExit(2) from error


async def run(plugin: Plugin, where: Listening) -> None:
    """The same for a running loop. Raises ConfigurationError when the address cannot be taken."""
    guard = tokens.guard(where.token_file) if where.token_file else None
    async with hosting.serving(application(plugin, guard=guard), where.address, tls=where.tls) as port:
        log.info("plugin.ready", address=str(where.address), port=port)
        chores = plugin.chores() if isinstance(plugin, Recurring) else []
        await running.until_stopped(
            *(run_repeatedly(c.name, c.run, on_failure=running.log_failure, pause_s=c.pause_s) for c in chores)
        )


def _log_to_stderr() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(level=logging.WARNING, handlers=[library_logs.handler(structlog.processors.JSONRenderer())])


def application(plugin: Plugin, *, guard: Middleware | None = None) -> web.Application:
    """Any method is accepted on the routes of the existing contract, as its programs use GET and POST alike."""
    handlers = _Handlers(plugin)
    app = hosting.application(
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
        guard=guard,
    )
    app.middlewares.append(tracing.middleware("interlink-sidecar", _SPANS))
    return app


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
        tracing.tell_pod(pod)
        job_id = await self._plugin.create(data)
        log.info("job.created", pod=pod.full_name, pod_uid=pod.uid, job_id=job_id)
        return json_answer(CreateAnswer(pod_uid=pod.uid, job_id=job_id))

    async def delete(self, request: web.Request) -> web.Response:
        pod = codec.decode_one(await request.read(), Pod)
        tracing.tell_pod(pod)
        await self._plugin.delete(pod)
        log.info("job.deleting", pod=pod.full_name, pod_uid=pod.uid)
        return web.Response(text="the job is being ended")

    async def status(self, request: web.Request) -> web.Response:
        pods = codec.decode_list(await request.read(), Pod)
        if not pods:
            return json_answer(await self._plugin.capacity())
        return await noticing.status(self._plugin, request, pods)

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
    return await pass_on(request, chunks, first=await anext(chunks, b""))


async def pass_on(request: web.Request, chunks: AsyncIterator[bytes], *, first: bytes = b"") -> web.StreamResponse:
    """The same for a stream that has begun elsewhere: the answer begins at once, however silent the stream is."""
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
