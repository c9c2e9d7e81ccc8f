"""The verbs of the Kubernetes API against a real HTTP server: answers, errors by what can be done, watches."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from aiohttp import web
from lightkube.config.models import User

from interlink.kube import client as kube
from interlink.kube.client import KubeClient
from interlink.kube.credentials import Credentials
from interlink.kube.errors import Conflict, Gone, KubeError, NotFound, Refused, Unavailable
from tests.unit.small_server import Handler, cut, serving

NOWHERE = "http://127.0.0.1:9"


@asynccontextmanager
async def client_of(handler: Handler, user: User | None = None) -> AsyncIterator[KubeClient]:
    async with serving(handler) as url, KubeClient(Credentials(url + "/", None, user)) as client:
        yield client


def answering(status: int, body: Any = None, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return handler


def status_object(message: str = "", reason: str = "") -> dict[str, str]:
    return {"kind": "Status", "message": message, "reason": reason}


# --- errors ----------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[int, type[KubeError]]] = [
    (401, Unavailable),
    (403, Refused),
    (404, NotFound),
    (409, Conflict),
    (410, Gone),
    (422, Refused),
    (429, Unavailable),
    (500, Unavailable),
    (502, Unavailable),
    (503, Unavailable),
    (504, Unavailable),
]


@pytest.mark.parametrize(("status", "kind"), ERRORS)
async def test_an_error_answer_is_named_for_what_can_be_done(status: int, kind: type[KubeError]) -> None:
    """The text holds the verb, the path, the status and the server's own words."""
    async with client_of(answering(status, status_object("in its own words"))) as client:
        with pytest.raises(kind, match=rf"^cannot get /a: {status} in its own words$") as caught:
            await client.get("/a")

    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("body", "text"),
    [(status_object(reason="Expired"), "Expired"), ("<html>proxy</html>", "<html>proxy</html>"), ("", "")],
)
async def test_an_error_without_a_message_shows_what_there_is(body: Any, text: str) -> None:
    """The reason, or the first words of an answer that is not Kubernetes' own."""
    async with client_of(answering(503, body)) as client:
        with pytest.raises(Unavailable, match=rf"503 {text}$"):
            await client.get("/a")


async def test_a_long_error_page_is_cut() -> None:
    """A proxy's page does not fill the log."""
    async with client_of(answering(502, "x" * 5000)) as client:
        with pytest.raises(Unavailable) as caught:
            await client.get("/a")

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("header", "seconds"),
    [({"Retry_After": "7"}, 7.0), ({}, None), ({"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None)],
)
async def test_a_busy_server_may_say_when_to_come_back(header: dict[str, str], seconds: float | None) -> None:
    """The seconds of Retry-After are passed on."""
    async with client_of(answering(429, status_object(), **header)) as client:
        with pytest.raises(Unavailable) as caught:
            await client.get("/a")

    assert caught.value.retry_after_s == seconds


async def cutting(request: web.Request) -> web.Response:
    return cut(request)


async def cutting_half_way(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"half")
    cut(request)
    return response


@pytest.mark.parametrize("handler", [cutting, cutting_half_way])
async def test_a_cut_connection_is_unavailable(handler: Handler) -> None:
    """Before an answer and in the middle of one alike."""
    async with client_of(handler) as client:
        with pytest.raises(Unavailable, match="cannot patch /a: "):
            await client.patch("/a", b"{}")


async def test_a_server_that_is_away_is_unavailable() -> None:
    """Nobody listens there."""
    async with KubeClient(Credentials(NOWHERE, None, None)) as client:
        with pytest.raises(Unavailable, match="cannot get /a: "):
            await client.get("/a")


async def test_a_server_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is bounded in time, and the text says so even though the error itself has none."""
    monkeypatch.setattr(kube, "_TIMEOUT_S", 0.02)

    async def hanging(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with client_of(hanging) as client:
        with pytest.raises(Unavailable, match="cannot get /a: TimeoutError"):
            await client.get("/a")


# --- requests --------------------------------------------------------------------------------------------------------


class Recorder:
    """Answers 200 and remembers what came."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, bytes]] = []

    async def __call__(self, request: web.Request) -> web.Response:
        kind = request.headers.get("Content-Type", "")
        self.requests.append((request.method, str(request.rel_url), kind, await request.read()))
        return web.json_response({})


async def test_each_verb_is_a_request() -> None:
    """Method, content type and body are what the Kubernetes API asks for."""
    recorder = Recorder()
    async with client_of(recorder) as client:
        await client.get("/a", limit="5")
        await client.create("/b", b"1")
        await client.replace("/c", b"2")
        await client.patch("/d", b"3")
        await client.patch("/e", b"4", kind=kube.MERGE)

    assert recorder.requests == [
        ("GET", "/a?limit=5", "application/json", b""),
        ("POST", "/b", "application/json", b"1"),
        ("PUT", "/c", "application/json", b"2"),
        ("PATCH", "/d", "application/strategic-merge-patch+json", b"3"),
        ("PATCH", "/e", "application/merge-patch+json", b"4"),
    ]


async def test_a_deletion_names_the_object_by_its_uid() -> None:
    """Another object of the same name is never deleted."""
    recorder = Recorder()
    async with client_of(recorder) as client:
        await client.delete("/a", uid="u", grace_s=3)

    assert json.loads(recorder.requests[0][3]) == {"gracePeriodSeconds": 3, "preconditions": {"uid": "u"}}


@pytest.mark.parametrize(("status", "kind"), [(404, None), (409, Conflict)])
async def test_deleting_what_is_gone_is_fine(status: int, kind: type[KubeError] | None) -> None:
    """Absent is as good as deleted; another object with the name is a conflict."""
    async with client_of(answering(status, status_object())) as client:
        if kind is None:
            await client.delete("/a", uid="u")
        else:
            with pytest.raises(kind):
                await client.delete("/a", uid="u")


async def test_a_401_has_the_token_read_anew(tmp_path: Path) -> None:
    """A rotated token is used from the next call on, without waiting for its time."""
    seen: list[str] = []
    token = tmp_path / "token"
    token.write_text("old\n")

    async def guarded(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.Response(status=200 if seen[-1] == "Bearer new" else 401, text="{}")

    async with client_of(guarded, User(token_file=str(token))) as client:
        with pytest.raises(Unavailable):
            await client.get("/a")
        token.write_text("new\n")
        await client.get("/a")
    assert seen == ["Bearer old", "Bearer new"]


async def test_a_token_file_that_is_away_is_unavailable(tmp_path: Path) -> None:
    """While a token is being replaced a call fails like any other that may be repeated."""
    async with client_of(answering(200, {}), User(token_file=str(tmp_path / "absent"))) as client:
        with pytest.raises(KubeError):
            await client.get("/a")


# --- watches ---------------------------------------------------------------------------------------------------------


def sending(*chunks: bytes, is_cut: bool = False) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if is_cut:
            cut(request)
        return response

    return handler


async def watched(handler: Handler, *, silence_s: float = 5) -> list[bytes]:
    async with client_of(handler) as client, client.watch("/w", silence_s=silence_s) as lines:
        return [line async for line in lines]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"\n\na\n\n"], [b"a"]),
        ([b"a\nhalf"], [b"a"]),
        ([], []),
    ],
)
async def test_a_watch_gives_whole_lines(chunks: list[bytes], lines: list[bytes]) -> None:
    """However the bytes are cut on the way; an unfinished last line is not given."""
    assert await watched(sending(*chunks)) == lines


async def test_a_line_of_a_watch_may_be_very_long() -> None:
    """An object of some megabytes comes whole, and the one behind it too."""
    long = b"x" * 3_000_000

    assert await watched(sending(long + b"\n" + b"y\n")) == [long, b"y"]


async def test_a_watch_asks_for_what_it_is_told() -> None:
    """The parameters travel in the query."""
    recorder = Recorder()
    params = {"resourceVersion": "7", "allowWatchBookmarks": "true"}
    async with client_of(recorder) as client, client.watch("/w", silence_s=5, **params) as lines:
        assert [line async for line in lines] == []

    assert recorder.requests[0][1] == "/w?watch=true&resourceVersion=7&allowWatchBookmarks=true"


@pytest.mark.parametrize(("status", "kind"), [(410, Gone), (403, Refused), (500, Unavailable)])
async def test_a_watch_that_is_refused_is_an_error(status: int, kind: type[KubeError]) -> None:
    """The same errors as of a call."""
    with pytest.raises(kind, match=rf"cannot watch /w: {status} no"):
        await watched(answering(status, status_object("no")))


async def test_a_watch_that_is_cut_is_unavailable() -> None:
    """What came before has been given."""
    found: list[bytes] = []

    async def watch(client: KubeClient) -> None:
        async with client.watch("/w", silence_s=5) as lines:
            async for line in lines:
                found.append(line)  # noqa: PERF401 -- what came before the error counts

    async with client_of(sending(b"a\n", is_cut=True)) as client:
        with pytest.raises(Unavailable, match="the watch of /w broke off"):
            await watch(client)
    assert found == [b"a"]


async def test_a_silent_watch_is_unavailable() -> None:
    """A connection over which nothing comes, not even a bookmark, is given up."""

    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    with pytest.raises(Unavailable, match="the watch of /w broke off"):
        await watched(silent, silence_s=0.02)


async def test_an_error_of_the_watcher_is_not_the_servers() -> None:
    """What the code that reads a watch raises comes out as it is."""
    async with client_of(sending(b"a\n")) as client:
        with pytest.raises(KeyError):
            async with client.watch("/w", silence_s=5):
                raise KeyError


# --- metrics ---------------------------------------------------------------------------------------------------------


def calls(verb: str, code: str) -> float:
    return prometheus_client.REGISTRY.get_sample_value("interlink_kube_calls_total", {"verb": verb, "code": code}) or 0


@pytest.mark.parametrize("status", [200, 409, 503])
async def test_calls_are_counted_by_verb_and_code(status: int) -> None:
    """Each verb of RBAC has its count; those that fail as well."""
    names = ("get", "create", "update", "patch", "delete", "watch")
    before = [calls(verb, str(status)) for verb in names]
    async with client_of(answering(status, {})) as client:
        for call in (
            client.get("/x"),
            client.create("/x", b"{}"),
            client.replace("/x", b"{}"),
            client.patch("/x", b"{}"),
            client.delete("/x", uid="u"),
            watched_by(client),
        ):
            with contextlib.suppress(KubeError):
                await call

    assert [calls(verb, str(status)) - count for verb, count in zip(names, before, strict=True)] == [1] * 6


async def watched_by(client: KubeClient) -> None:
    async with client.watch("/x", silence_s=5) as lines:
        async for _ in lines:
            pass


async def test_calls_that_get_no_answer_are_counted() -> None:
    """With the code `none`."""
    before = calls("get", "none")
    async with KubeClient(Credentials(NOWHERE, None, None)) as client:
        with pytest.raises(Unavailable):
            await client.get("/x")

    assert calls("get", "none") - before == 1
