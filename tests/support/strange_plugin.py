"""A plugin that does what a test tells it: slow, wrong, deaf, forgetful. Real HTTP, in the test's own loop."""

import asyncio
import collections
import contextlib
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from interlink.sdk import noticing

Document = dict[str, Any]
Behaviour = Callable[[web.Request, Any], Awaitable[web.StreamResponse | None]]


class StrangePlugin:
    """`jobs` is its batch system: container states by pod UID. A behaviour set for a route may answer in its place;
    one that returns None lets the plugin answer as usual. With `notices` it waits for news when it is asked to, and
    `tags` are those in the questions."""

    def __init__(self) -> None:
        self.port = 0
        self.jobs: dict[str, Document] = {}
        self.remarks: dict[str, Document] = {}
        self.submissions: collections.Counter[str] = collections.Counter()
        self.calls: collections.Counter[str] = collections.Counter()
        self.asked: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.behaviours: dict[str, Behaviour] = {}
        self.has_jobs_route = True
        self.notices = False
        self.overstays = False
        self.is_waiting = False
        self.tags: list[str] = []
        self._rung = asyncio.Event()

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes(
            [
                web.route("*", "/create", self._create),
                web.route("*", "/delete", self._delete),
                web.route("*", "/status", self._status),
                web.route("*", "/getLogs", self._logs),
                web.post("/interlink/v1/jobs", self._jobs),
                web.post("/interlink/v1/refresh", self._refresh),
            ]
        )
        return app

    def run(self, uid: str) -> None:
        self.jobs[uid] = {"running": {"startedAt": "2026-07-14T10:00:00Z"}}

    def end(self, uid: str, exit_code: int = 0) -> None:
        self.jobs[uid] = {
            "terminated": {
                "exitCode": exit_code,
                "startedAt": "2026-07-14T10:00:00Z",
                "finishedAt": "2026-07-14T10:00:05Z",
            }
        }
        self._rung.set()

    async def _answer(self, route: str, request: web.Request) -> tuple[Any, web.StreamResponse | None]:
        body = await request.read()
        self.bodies.append(body)
        data = json.loads(body or b"null")
        name = "ping" if route == "status" and data == [] else route
        self.calls[name] += 1
        behaviour = self.behaviours.get(name)
        return data, await behaviour(request, data) if behaviour else None

    async def _create(self, request: web.Request) -> web.StreamResponse:
        data, answer = await self._answer("create", request)
        return answer or self.accept(data)

    def accept(self, data: Document) -> web.Response:
        uid = data["pod"]["metadata"]["uid"]
        self.submissions[uid] += 1
        self.run(uid)
        return web.json_response({"PodUID": uid, "PodJID": f"job-{uid[:8]}"})

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        data, answer = await self._answer("delete", request)
        if answer:
            return answer
        uid = data["metadata"]["uid"]
        if uid not in self.jobs:
            return web.Response(status=404, text="no such job")
        self.end(uid, 143)
        return web.Response(text="ok")

    async def _status(self, request: web.Request) -> web.StreamResponse:
        data, answer = await self._answer("status", request)
        if answer:
            return answer
        if not data:
            return web.json_response({"status": "ok", "resources": {"cpu": "64"}})
        uids = [pod["metadata"]["uid"] for pod in data]
        self.asked.append(uids)
        headers = await self._news(request, uids) if self.notices else {}
        if headers and headers["ETag"] == request.headers.get("If-None-Match"):
            return web.Response(status=304, headers=headers)
        return web.json_response([self.status(uid) for uid in uids if uid in self.jobs], headers=headers)

    async def _news(self, request: web.Request, uids: list[str]) -> dict[str, str]:
        """The tag of what is so in the end."""
        tag = request.headers.get("If-None-Match", "")
        self.tags.append(tag)
        wait_s = noticing.wait_asked_s(request.headers.getall("Prefer", ())) if tag else 0.0
        if wait_s and tag == self._tag(uids):
            self._rung.clear()
            self.is_waiting = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(3600 if self.overstays else wait_s):
                    await self._rung.wait()
            self.is_waiting = False
        return {"ETag": self._tag(uids), **({"Preference-Applied": "wait"} if wait_s else {})}

    def _tag(self, uids: list[str]) -> str:
        states = json.dumps([self.jobs.get(uid) for uid in uids]).encode()
        return f'"{zlib.crc32(states)}"'

    def status(self, uid: str, **extra: Any) -> Document:
        container = {"name": "c", "state": self.jobs[uid], "ready": "running" in self.jobs[uid], "restartCount": 0}
        return {
            "name": "p",
            "UID": uid,
            "namespace": "ns",
            "JID": f"job-{uid[:8]}",
            "containers": [container],
            "initContainers": None,
            **({"interlink": self.remarks[uid]} if uid in self.remarks else {}),
        } | extra

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        _, answer = await self._answer("logs", request)
        return answer or web.Response(body=b"a line\n")

    async def _refresh(self, request: web.Request) -> web.StreamResponse:
        _, answer = await self._answer("refresh", request)
        return answer or web.Response(text="ok")

    async def _jobs(self, request: web.Request) -> web.StreamResponse:
        if not self.has_jobs_route:
            return web.Response(status=404)
        _, answer = await self._answer("jobs", request)
        return answer or web.json_response(
            [
                {
                    "tag": f"il-default-{uid}-a0",
                    "job_id": f"job-{uid[:8]}",
                    "node": "vk",
                    "is_alive": "running" in state,
                }
                for uid, state in self.jobs.items()
            ]
        )


@asynccontextmanager
async def serving(plugin: StrangePlugin, port: int = 0) -> AsyncIterator[StrangePlugin]:
    """The plugin on loopback; leaving the context closes every connection at once."""
    runner = web.AppRunner(plugin.app(), shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port or plugin.port, reuse_address=True)
        await site.start()
        plugin.port = runner.addresses[0][1]
        yield plugin
    finally:
        await runner.cleanup()


async def cut(request: web.Request, _: Any) -> web.Response:
    """Close the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
