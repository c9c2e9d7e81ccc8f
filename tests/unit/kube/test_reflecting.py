"""A picture of pods that stays complete: lists, watches, and what happens when they break."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
from aiohttp import web

from interlink.aio.backoff import Backoff
from interlink.kube import reflecting
from interlink.kube.client import KubeClient
from interlink.kube.credentials import Credentials
from interlink.kube.errors import Gone, Unavailable
from interlink.kube.reflecting import Reflector
from interlink.model import pods
from interlink.model.pods import Seen
from tests.unit.builders import Document, document
from tests.unit.small_server import cut, serving
from tests.unit.virtual_time import in_virtual_time

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
PODS = "/api/v1/pods"


def pod(uid: str, version: int, **metadata: Any) -> Document:
    return document(uid, metadata={"resourceVersion": str(version), "name": "p", **metadata})


def listing(version: str, *items: Document, more: str = "") -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        meta = {"resourceVersion": version} | ({"continue": more} if more else {})
        return web.json_response({"kind": "PodList", "metadata": meta, "items": items})

    return answer


def failing(status: int, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"message": "no"}, status=status, headers=headers)

    return answer


def events(*rows: tuple[str, Document], ends: bool = True, is_cut: bool = False) -> Answer:
    return lines(
        *(json.dumps({"type": kind, "object": item}).encode() for kind, item in rows), ends=ends, is_cut=is_cut
    )


def lines(*rows: bytes, ends: bool = True, is_cut: bool = False) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for row in rows:
            await response.write(row + b"\n")
        if is_cut:
            cut(request)
        elif not ends:
            await asyncio.Event().wait()
        return response

    return answer


def bookmark(version: int) -> tuple[str, Document]:
    return "BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}


class Scripted:
    """An API server that answers one request after another as told; when the script ends, watches stay open."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.at_end = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        if self._answers:
            return await self._answers.pop(0)(request)
        self.at_end.set()
        return await lines(ends=False)(request)

    @property
    def story(self) -> list[str]:
        """Each request in a word: a list, a page of one, or a watch from a version."""
        return [
            f"watch {q['resourceVersion']}" if "watch" in q else f"page {q['continue']}" if "continue" in q else "list"
            for q in self.asked
        ]


class Changes:
    """What a reflector has told: `+uid/version` and `-uid`."""

    def __init__(self) -> None:
        self.story: list[str] = []

    def __call__(self, seen: Seen, is_gone: bool) -> None:
        uid = seen.pod.uid
        self.story.append(f"-{uid}" if is_gone else f"+{uid}/{seen.pod.metadata.resource_version}")


@asynccontextmanager
async def reflecting_from(server: Scripted, changes: Changes) -> AsyncIterator[Reflector]:
    """A reflector that runs until the script of its server has ended."""
    async with serving(server) as url, KubeClient(Credentials(url, None, None)) as client:
        reflector = Reflector(client, PODS, {"fieldSelector": "spec.nodeName=vk"}, changes)
        task = asyncio.ensure_future(reflector.run())
        end = asyncio.ensure_future(server.at_end.wait())
        try:
            async with asyncio.timeout(5):
                await asyncio.wait([task, end], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            yield reflector
        finally:
            for each in (task, end):
                each.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await each


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses take no time worth mentioning."""
    monkeypatch.setattr(reflecting, "_PAUSE_S", 0.001)
    monkeypatch.setattr(Backoff, "next_s", lambda _: 0.001)


async def told(*answers: Answer) -> tuple[list[str], list[str]]:
    """What a server was asked and what was told of its answers, to the end of the script."""
    server, changes = Scripted(*answers), Changes()
    async with reflecting_from(server, changes):
        return server.story, changes.story


async def test_pods_are_listed_page_by_page() -> None:
    """All pages together are the picture; the watch begins where the list was made."""
    asked, found = await told(
        listing("5", pod("a", 1), more="next"), listing("5", pod("b", 2), more="last"), listing("5", pod("c", 3))
    )

    assert asked == ["list", "page next", "page last", "watch 5"]
    assert found == ["+a/1", "+b/2", "+c/3"]


async def test_only_the_nodes_own_pods_are_asked_for() -> None:
    """Every list and every watch carries the selector; a watch asks for bookmarks and an end."""
    server = Scripted(listing("5"))
    async with reflecting_from(server, Changes()):
        pass

    assert {q["fieldSelector"] for q in server.asked} == {"spec.nodeName=vk"}
    assert server.asked[0]["limit"] == "500"
    assert server.asked[1]["allowWatchBookmarks"] == "true"
    assert 240 <= int(server.asked[1]["timeoutSeconds"]) <= 480


async def test_an_empty_list_is_a_complete_list() -> None:
    """A node without pods is in the picture as well; also when the list is null."""

    async def null(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {"resourceVersion": "5"}, "items": None})

    async with reflecting_from(Scripted(null), Changes()) as reflector:
        assert reflector.synced.is_set()
        assert reflector.pods == {}


async def test_old_pods_come_first() -> None:
    """After a restart pods are taken up in the order of their age."""
    young, old = "2026-07-14T10:00:00Z", "2026-07-13T10:00:00Z"

    _, found = await told(listing("5", pod("y", 1, creationTimestamp=young), pod("o", 2, creationTimestamp=old)))
    assert found == ["+o/2", "+y/1"]


async def test_a_watch_tells_what_changes() -> None:
    """Added, modified and deleted pods, in the order in which they come."""
    _, found = await told(
        listing("1"),
        events(("ADDED", pod("a", 2)), ("MODIFIED", pod("a", 3)), ("ADDED", pod("b", 4)), ("DELETED", pod("a", 5))),
    )

    assert found == ["+a/2", "+a/3", "+b/4", "-a"]


@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_watch_goes_on_where_it_ended(is_cut: bool) -> None:
    """Without a new list, from the last version that was seen, be it of a pod or of a bookmark."""
    asked, found = await told(
        listing("1"),
        events(("ADDED", pod("a", 2)), is_cut=is_cut),
        events(bookmark(9), is_cut=is_cut),
        events(("MODIFIED", pod("a", 12)), is_cut=is_cut),
    )

    assert asked == ["list", "watch 1", "watch 2", "watch 9", "watch 12"]
    assert found == ["+a/2", "+a/12"]


async def test_a_silent_watch_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection over which nothing comes is not waited for; the watch goes on from the last version."""
    monkeypatch.setattr(reflecting, "_WATCH_S", (0, 0))
    monkeypatch.setattr(reflecting, "_SILENCE_MARGIN_S", 0.02)

    asked, _ = await told(listing("1"), events(("ADDED", pod("a", 2)), ends=False))
    assert asked[:3] == ["list", "watch 1", "watch 2"]


def expired(code: int = 410) -> tuple[str, Document]:
    return "ERROR", {"kind": "Status", "code": code, "message": "too old resource version"}


@pytest.mark.parametrize("gone", [failing(410), events(expired())], ids=["answer", "event"])
async def test_a_version_that_is_too_old_means_a_new_list(gone: Answer) -> None:
    """What changed meanwhile is told as if it had been watched: gone, new and changed pods, and no others."""
    asked, found = await told(
        listing("5", pod("a", 1), pod("b", 2), pod("c", 3)), gone, listing("9", pod("b", 2), pod("c", 7), pod("d", 8))
    )

    assert asked == ["list", "watch 5", "list", "watch 9"]
    assert found == ["+a/1", "+b/2", "+c/3", "-a", "+c/7", "+d/8"]


async def test_a_pod_made_again_under_the_same_name_is_another_pod() -> None:
    """While the watch was away `p` was deleted and made again: one pod is gone and another is new."""
    _, found = await told(listing("5", pod("old", 1)), failing(410), listing("9", pod("new", 8)))

    assert found == ["+old/1", "-old", "+new/8"]


async def test_a_list_that_expires_half_way_is_made_anew() -> None:
    """Nothing is told of a list that is not complete."""
    asked, found = await told(listing("5", pod("a", 1), more="next"), failing(410), listing("6", pod("b", 2)), events())

    assert asked[:3] == ["list", "page next", "list"]
    assert found == ["+b/2"]


async def test_a_list_that_fails_half_way_removes_nothing() -> None:
    """A picture is replaced by a complete one only."""
    _, found = await told(
        listing("5", pod("a", 1), pod("b", 2)),
        failing(410),
        listing("9", pod("a", 1), more="next"),
        failing(500),
        listing("9", pod("a", 1), pod("b", 2)),
    )

    assert found == ["+a/1", "+b/2"]


@pytest.mark.parametrize("trouble", [failing(500), failing(403), failing(429), events(expired(500))])
async def test_trouble_with_a_watch_is_no_new_list(trouble: Answer) -> None:
    """It goes on from the version that it has."""
    asked, _ = await told(listing("5", pod("a", 1)), trouble, trouble)

    assert asked == ["list", "watch 5", "watch 5", "watch 5"]


@pytest.mark.parametrize("trouble", [failing(500), failing(403), failing(401)])
async def test_a_first_list_is_asked_for_until_it_comes(trouble: Answer) -> None:
    """There is no picture before the first complete list."""
    asked, found = await told(trouble, trouble, listing("5", pod("a", 1)))

    assert asked == ["list", "list", "list", "watch 5"]
    assert found == ["+a/1"]


async def test_the_pause_is_as_long_as_the_server_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry-After is obeyed."""
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await told(failing(429, **{"Retry-After": "17"}), listing("5"))
    assert paused[0] == 17


@pytest.mark.parametrize("line", [b"<html>", b"{}", b'{"type": "ADDED", "object": []}'])
async def test_a_line_that_is_no_event_does_not_end_the_picture(line: bytes) -> None:
    """The watch is opened again; the reflector never gives up."""
    asked, _ = await told(listing("5"), lines(line), events(("ADDED", pod("a", 6))))

    assert asked[-1] == "watch 6"


# --- our own writes --------------------------------------------------------------------------------------------------


def seen(uid: str, version: int) -> Seen:
    return pods.seen(msgspec.json.encode(pod(uid, version)))


@pytest.mark.parametrize(
    ("noted", "version"),
    [(seen("a", 7), "7"), (seen("a", 5), "5"), (seen("a", 4), "5"), (seen("a", 10), "10"), (seen("gone", 9), "5")],
)
async def test_the_answer_to_a_write_is_taken_when_it_is_newer(noted: Seen, version: str) -> None:
    """Versions are compared as numbers; a pod that has gone meanwhile does not come back. The writer is not told."""
    changes = Changes()
    async with reflecting_from(Scripted(listing("5", pod("a", 5))), changes) as reflector:
        reflector.note(noted)

        assert {uid: s.pod.metadata.resource_version for uid, s in reflector.pods.items()} == {"a": version}
    assert changes.story == ["+a/5"]


async def test_a_watch_event_older_than_our_write_is_not_taken() -> None:
    """An event that was on its way when we wrote does not take our write back."""
    _, found = await told(listing("5", pod("a", 5)), events(("MODIFIED", pod("a", 8)), ("MODIFIED", pod("a", 7))))

    assert found == ["+a/5", "+a/8"]


# --- no hot loop -----------------------------------------------------------------------------------------------------


class Stubborn(KubeClient):
    """Lists well; each watch ends as told. Counts lists, and ends the test when there are too many."""

    def __init__(self, watch: Exception | None) -> None:
        self._watch = watch
        self.calls = 0

    async def get(self, path: str, **params: str) -> bytes:
        self._count()
        return b'{"metadata": {"resourceVersion": "1"}}'

    @asynccontextmanager
    async def watch(self, path: str, *, silence_s: float, **params: str) -> AsyncIterator[AsyncIterator[bytes]]:
        self._count()
        if self._watch is not None:
            raise self._watch
        yield _nothing()

    def _count(self) -> None:
        self.calls += 1
        if self.calls > 1000:
            raise asyncio.CancelledError


async def _nothing() -> AsyncIterator[bytes]:
    lines: tuple[bytes, ...] = ()
    for line in lines:
        yield line


@pytest.mark.parametrize(
    "watch",
    [
        None,
        Unavailable("no"),
        Gone("too old"),
    ],
)
@in_virtual_time
async def test_a_watch_that_ends_at_once_is_no_hot_loop(
    watch: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken server is asked some ten times a second, for a list and a watch, and not as fast as it can answer."""
    monkeypatch.undo()
    client = Stubborn(watch)
    with suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(10):
            await Reflector(client, PODS, {}, Changes()).run()

    assert client.calls <= 220
