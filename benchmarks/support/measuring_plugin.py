"""A plugin that costs as little as possible and counts what it is asked: a process of its own beside the server.

Every pod that is asked for has a job, running until it is deleted or `POST /bench/end` ends all of them at once.
An asker that can wait for news is told of the end at once, as by a plugin that notices it (docs/protocol.md).
`GET /bench/counts` tells the calls by kind, `POST /bench/reset` forgets them and lets new jobs run.
"""

import asyncio
import collections
import contextlib

import click
import msgspec
from aiohttp import web

from interlink.sdk import noticing
from interlink.wire.messages import Job


class Counts(msgspec.Struct, frozen=True):
    """`calls` by kind: create, delete, status, ping, jobs; `asked`: the pods in the latest status question; `doubled`:
    pods that were created more than once."""

    calls: dict[str, int]
    asked: int
    doubled: int = 0


class _Meta(msgspec.Struct, frozen=True):
    name: str
    uid: str
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: list[_Named] = []


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta
    spec: _Spec = _Spec()


class _Create(msgspec.Struct, frozen=True):
    pod: _Pod


_pods = msgspec.json.Decoder(list[_Pod])
_creates = msgspec.json.Decoder(_Create)
_CAPACITY = b'{"status":"ok","resources":{"cpu":"100000","memory":"1000Ti","pods":"100000"}}'
_RUNNING = {"running": {"startedAt": "2026-07-14T10:00:01Z"}}
_ENDED = {
    "terminated": {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": "2026-07-14T10:00:01Z",
        "finishedAt": "2026-07-14T10:00:05Z",
    }
}


class MeasuringPlugin:
    def __init__(self) -> None:
        self._calls: collections.Counter[str] = collections.Counter()
        self._asked = 0
        self._nodes: dict[str, str] = {}
        self._ended: set[str] = set()
        self._mark = 0
        self._rung = asyncio.Event()
        self._created: collections.Counter[str] = collections.Counter()
        self._texts: dict[tuple[str, bool], bytes] = {}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30)
        app.add_routes(
            [
                web.route("*", "/create", self._create),
                web.route("*", "/delete", self._delete),
                web.route("*", "/status", self._status),
                web.post("/interlink/v1/jobs", self._jobs),
                web.get("/bench/counts", self._counts),
                web.post("/bench/reset", self._reset),
                web.post("/bench/end", self._end),
            ]
        )
        return app

    async def _create(self, request: web.Request) -> web.Response:
        self._calls["create"] += 1
        pod = _creates.decode(await request.read()).pod
        self._nodes[pod.metadata.uid] = pod.spec.node_name
        self._created[pod.metadata.uid] += 1
        return _json({"PodUID": pod.metadata.uid, "PodJID": _job_id(pod.metadata.uid)})

    async def _delete(self, request: web.Request) -> web.Response:
        self._calls["delete"] += 1
        self._ended.add(msgspec.json.decode(await request.read(), type=_Pod).metadata.uid)
        self._ring()
        return web.Response(text="ok")

    async def _status(self, request: web.Request) -> web.Response:
        pods = _pods.decode(await request.read() or b"[]")
        self._calls["status" if pods else "ping"] += 1
        if not pods:
            return web.Response(body=_CAPACITY, content_type="application/json")
        self._asked = len(pods)
        self._nodes.update({pod.metadata.uid: pod.spec.node_name for pod in pods})
        headers = await self._news(request)
        if headers.get("ETag") == request.headers.get("If-None-Match"):
            return web.Response(status=304, headers=headers)
        body = b"[" + b",".join(self._text(pod) for pod in pods) + b"]"
        return web.Response(body=body, content_type="application/json", headers=headers)

    async def _news(self, request: web.Request) -> dict[str, str]:
        """Wait for an end, if that is asked for and all others have been told."""
        wait_s = noticing.wait_asked_s(request.headers.getall("Prefer", ()))
        is_told = request.headers.get("If-None-Match") == f'"{self._mark}"'
        if is_told and wait_s:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._rung.wait()
        applied = {"Preference-Applied": "wait"} if wait_s else {}
        return {"ETag": f'"{self._mark}"', **applied}

    def _text(self, pod: _Pod) -> bytes:
        """A pod's status; made once for each state, so that answering costs next to nothing."""
        has_ended = pod.metadata.uid in self._ended
        key = (pod.metadata.uid, has_ended)
        if key not in self._texts:
            self._texts[key] = msgspec.json.encode(_status(pod, has_ended=has_ended))
        return self._texts[key]

    def _ring(self) -> None:
        self._mark += 1
        self._rung.set()
        self._rung = asyncio.Event()

    async def _jobs(self, _: web.Request) -> web.Response:
        self._calls["jobs"] += 1
        return _json(
            [
                Job(tag=f"il-bench-{uid}-a0", job_id=_job_id(uid), node=node, is_alive=uid not in self._ended)
                for uid, node in self._nodes.items()
            ]
        )

    async def _counts(self, _: web.Request) -> web.Response:
        return _json(
            Counts(calls=dict(self._calls), asked=self._asked, doubled=sum(n > 1 for n in self._created.values()))
        )

    async def _reset(self, _: web.Request) -> web.Response:
        self._calls.clear()
        return web.Response()

    async def _end(self, _: web.Request) -> web.Response:
        self._ended.update(self._nodes)
        self._ring()
        return web.Response()


def _status(pod: _Pod, *, has_ended: bool) -> object:
    state = _ENDED if has_ended else _RUNNING
    containers = [
        {"name": c.name, "image": "", "imageID": "", "state": state, "ready": not has_ended, "restartCount": 0}
        for c in pod.spec.containers
    ]
    return {
        "name": pod.metadata.name,
        "UID": pod.metadata.uid,
        "namespace": pod.metadata.namespace,
        "JID": _job_id(pod.metadata.uid),
        "containers": containers,
        "initContainers": [],
    }


def _job_id(uid: str) -> str:
    return f"job-{uid}"


def _json(message: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(message), content_type="application/json")


@click.command()
@click.option("--port", type=int, required=True)
def main(port: int) -> None:
    web.run_app(MeasuringPlugin().app(), host="127.0.0.1", port=port, access_log=None, print=None)


if __name__ == "__main__":
    main()
