"""Events: told at once, written one by one, repeats counted, never in the way."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from interlink.kube import events
from interlink.kube.client import KubeClient
from interlink.kube.credentials import Credentials
from interlink.kube.events import About, Allowances, Events, Note
from interlink.testing.waiting import until_async
from tests.unit.small_server import serving

POD = About(kind="Pod", name="p", uid="u", namespace="ns", field_path="spec.containers{c}")
NOTE = Note(POD, "Started", "Started container c")


class Kubernetes:
    """Keeps events by path; `answers` are given first, whatever is asked."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.calls: list[str] = []
        self.events: dict[str, dict[str, Any]] = {}

    async def __call__(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.calls.append(request.method)
        if self.answers:
            return web.json_response({}, status=self.answers.pop(0))
        if request.method == "POST":
            self.events[f"{request.path}/{body['metadata']['name']}"] = body
        elif request.path not in self.events:
            return web.json_response({}, status=404)
        else:
            self.events[request.path] |= body
        return web.json_response(body)

    def one(self) -> dict[str, Any]:
        assert len(self.events) == 1
        return next(iter(self.events.values()))


@asynccontextmanager
async def telling(kubernetes: Kubernetes) -> AsyncIterator[Events]:
    async with serving(kubernetes) as url, KubeClient(Credentials(url, None, None)) as client:
        told = Events(client, component="virtual-kubelet", host="vk")
        task = asyncio.create_task(told.run())
        yield told
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def calls(kubernetes: Kubernetes, count: int) -> None:
    async def are_there() -> bool:
        return len(kubernetes.calls) == count

    assert await until_async(are_there, deadline_s=10), kubernetes.calls


async def test_an_event_is_about_its_object() -> None:
    """In the object's namespace, from this node, with the part that it is about."""
    kubernetes = Kubernetes()
    async with telling(kubernetes) as told:
        told.tell(NOTE)
        await calls(kubernetes, 1)

    path, event = next(iter(kubernetes.events.items()))
    assert path.startswith("/api/v1/namespaces/ns/events/p.")
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "namespace": "ns",
        "fieldPath": "spec.containers{c}",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Started", "Started container c")
    assert (event["source"], event["count"]) == ({"component": "virtual-kubelet", "host": "vk"}, 1)


async def test_a_repeat_raises_the_count() -> None:
    """Of the same object, with the time of the last; the first time stays."""
    kubernetes = Kubernetes()
    async with telling(kubernetes) as told:
        for _ in range(3):
            told.tell(NOTE)
        await calls(kubernetes, 3)

    event = kubernetes.one()
    assert (event["count"], kubernetes.calls) == (3, ["POST", "PATCH", "PATCH"])
    assert event["firstTimestamp"] <= event["lastTimestamp"]


async def test_a_repeat_of_a_forgotten_event_is_a_new_one() -> None:
    """Kubernetes keeps events for an hour."""
    kubernetes = Kubernetes()
    async with telling(kubernetes) as told:
        told.tell(NOTE)
        await calls(kubernetes, 1)
        kubernetes.events.clear()
        told.tell(NOTE)
        await calls(kubernetes, 3)

    assert kubernetes.one()["count"] == 1


async def test_an_event_waits_for_an_api_server_that_is_away() -> None:
    """It is tried again; one that is refused is not."""
    kubernetes = Kubernetes(503, 500, 200, 403)
    async with telling(kubernetes) as told:
        told.tell(NOTE)
        told.tell(Note(POD, "Killing", "refused"))
        told.tell(Note(POD, "Killing", "written"))
        await calls(kubernetes, 5)

    assert kubernetes.one()["message"] == "written"


async def test_one_object_cannot_flood() -> None:
    """After 25 events one has to wait five minutes for the next; others are not held up."""
    kubernetes = Kubernetes()
    async with telling(kubernetes) as told:
        for number in range(40):
            told.tell(Note(POD, "Failed", f"{number}"))
        told.tell(Note(About(kind="Node", name="vk", uid="vk"), "Starting", "x"))
        await calls(kubernetes, 26)

    assert [path for path in kubernetes.events if "/namespaces/default/events/vk." in path]


def test_an_allowance_comes_back() -> None:
    """One in five minutes."""
    now = [0.0]
    allowances = Allowances(lambda: now[0])

    assert [allowances.take("u") for _ in range(26)] == [True] * 25 + [False]
    now[0] = 301.0
    assert [allowances.take("u"), allowances.take("u")] == [True, False]


async def test_telling_never_waits() -> None:
    """Not even when the queue is full and nobody writes: what is too much is dropped."""
    async with KubeClient(Credentials("http://127.0.0.1:1", None, None)) as client:
        told = Events(client, component="c", host="h")
        before = events.DROPPED.labels("queue full")._value.get()
        for _ in range(5000):
            told.tell(NOTE)

        assert events.DROPPED.labels("queue full")._value.get() - before == 904


def test_a_long_message_is_cut() -> None:
    """At what Kubernetes takes."""
    assert len(events.shortened("x" * 5000)) == 1024
    assert events.shortened("x") == "x"
