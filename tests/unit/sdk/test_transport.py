"""Calls between parts: what a failure means for the caller. A real server answers, cuts and hangs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from interlink.sdk import addresses
from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, Rejected, SDKError, Unreachable
from interlink.sdk.transport import Link
from interlink.wire import codec
from tests.unit.small_server import Handler, cut, serving


@contextlib.asynccontextmanager
async def link_to(url: str, **options: Any) -> AsyncIterator[Link]:
    link = Link(addresses.parse(url, None, key="test"), peer="plugin", **options)
    try:
        yield link
    finally:
        await link.close()


async def called(handler: Handler, *, timeout_s: float = 10, session: str = "", **options: Any) -> bytes:
    async with serving(handler) as url, link_to(url, **options) as link:
        return await link.call("POST", "/x", b"{}", timeout_s=timeout_s, session=session)


async def streamed(handler: Handler, *, timeout_s: float = 10) -> list[bytes]:
    async with (
        serving(handler) as url,
        link_to(url) as link,
        link.stream("GET", "/x", b"{}", timeout_s=timeout_s) as chunks,
    ):
        return [chunk async for chunk in chunks]


def answering(status: int, body: str | bytes = "in its own words") -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body.encode() if isinstance(body, str) else body)

    return handler


@pytest.mark.parametrize("status", [200, 201, 202, 299])
async def test_any_2xx_is_success(status: int) -> None:
    """Existing programs answer with several of them."""
    assert await called(answering(status, b"\x00\xff")) == b"\x00\xff"
    assert b"".join(await streamed(answering(status, b"\x00\xff"))) == b"\x00\xff"


TEXTS: list[tuple[int, type[SDKError]]] = [
    (400, Rejected),
    (401, Unreachable),
    (403, Unreachable),
    (404, NotFound),
    (405, NotFound),
    (408, Unreachable),
    (409, Rejected),
    (413, Rejected),
    (422, Rejected),
    (425, Unreachable),
    (429, Unreachable),
    (500, OutcomeUnknown),
    (502, OutcomeUnknown),
    (503, OutcomeUnknown),
    (504, OutcomeUnknown),
]


@pytest.mark.parametrize(("status", "kind"), TEXTS)
async def test_an_error_of_an_existing_program(status: int, kind: type[SDKError]) -> None:
    """It has only a status and a text: 4xx is definitive, 5xx may have done something."""
    for ask in (called, streamed):
        with pytest.raises(kind, match="in its own words") as caught:
            await ask(answering(status))
        assert type(caught.value) is kind


PROBLEMS: list[tuple[str, type[SDKError]]] = [
    ("rejected", Rejected),
    ("conflict", Refused),
    ("not_found", NotFound),
    ("unreachable", Unreachable),
    ("unknown", OutcomeUnknown),
    ("invalid", Rejected),
    ("of the future", OutcomeUnknown),
]


@pytest.mark.parametrize(("kind", "error"), PROBLEMS)
@pytest.mark.parametrize("status", [400, 500])
async def test_an_error_of_ours_says_what_it_is(kind: str, error: type[SDKError], status: int) -> None:
    """The kind counts and not the status; the text is the message alone."""
    with pytest.raises(error, match=r"^no such partition$") as caught:
        await called(answering(status, codec.problem(kind, "no such partition")))

    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("body", "text"), [("", "no text"), (b"\xff", "\ufffd"), ("x" * 10_000, "x"), ('{"kind": 1}', "kind")]
)
async def test_an_error_with_any_body_has_a_short_text(body: str | bytes, text: str) -> None:
    """Empty, not UTF-8, endless or nearly ours."""
    with pytest.raises(OutcomeUnknown, match=text) as caught:
        await called(answering(500, body))

    assert len(str(caught.value)) < 4200


# --- connections -----------------------------------------------------------------------------------------------------


async def cutting(request: web.Request) -> web.Response:
    return cut(request)


async def cutting_half_way(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"half")
    cut(request)
    return response


async def hanging(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


@pytest.mark.parametrize("handler", [cutting, cutting_half_way])
async def test_a_cut_connection_has_an_unknown_outcome(handler: Handler) -> None:
    """The request may have been carried out before."""
    for ask in (called, streamed):
        with pytest.raises(OutcomeUnknown, match=r"the plugin at http://.* closed the connection during /x: \w"):
            await ask(handler)


async def test_an_answer_that_does_not_come_has_an_unknown_outcome() -> None:
    """Each call has its own limit, and so has the beginning of a stream."""
    for ask in (called, streamed):
        with pytest.raises(OutcomeUnknown, match="did not answer /x in time"):
            await ask(hanging, timeout_s=0.05)


async def refusing_and_hanging(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=500)
    await response.prepare(request)
    return await hanging(request)


async def test_an_error_whose_text_does_not_come_has_an_unknown_outcome() -> None:
    """The limit holds until it is known whether there will be a stream."""
    with pytest.raises(OutcomeUnknown, match="did not answer /x in time"):
        await streamed(refusing_and_hanging, timeout_s=0.05)


async def test_a_stream_that_has_begun_may_be_silent() -> None:
    """As the log of a quiet container that is followed."""

    async def quiet(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(0.3)
        await response.write(b"at last")
        return response

    assert await streamed(quiet, timeout_s=0.15) == [b"at last"]


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "unix:///nowhere/i.sock"])
async def test_where_nobody_listens_nothing_has_been_done(address: str) -> None:
    """It may simply be repeated; the text names the peer, the address and the reason."""
    async with link_to(address) as link:
        with pytest.raises(
            Unreachable, match=f"cannot reach the plugin at {address}: (Connection refused|No such file)"
        ):
            await link.call("GET", "/x", None, timeout_s=5)
        with pytest.raises(Unreachable, match=f"cannot reach the plugin at {address}"):
            async with link.stream("GET", "/x", b"", timeout_s=5):
                pass


async def test_a_name_that_does_not_resolve_is_said_to() -> None:
    """The text gives the resolver's reason."""
    async with link_to("http://no.such.host.invalid:1") as link:
        with pytest.raises(Unreachable) as caught:
            await link.call("GET", "/x", None, timeout_s=5)

    assert "Unknown error" not in str(caught.value)


async def test_what_was_streamed_before_a_cut_has_been_given() -> None:
    """And then comes the error."""
    chunks: list[bytes] = []

    async def read(link: Link) -> None:
        async with link.stream("GET", "/x", b"", timeout_s=5) as stream:
            async for chunk in stream:
                chunks.append(chunk)  # noqa: PERF401 -- what came before the error counts

    async with serving(cutting_half_way) as url, link_to(url) as link:
        with pytest.raises(OutcomeUnknown):
            await read(link)
    assert chunks == [b"half"]


async def test_a_unix_socket_is_called_like_a_host(tmp_path: Path) -> None:
    """By its path."""

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_post("/x", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, tmp_path / "s").start()
    async with link_to(f"unix://{tmp_path}/s") as link:
        assert await link.call("POST", "/x", b"", timeout_s=5) == b"hello"
    await runner.cleanup()


# --- headers ---------------------------------------------------------------------------------------------------------


async def sent_headers(session: str = "", **options: Any) -> dict[str, str]:
    seen: dict[str, str] = {}

    async def handler(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.Response()

    await called(handler, session=session, **options)
    return seen


async def test_a_call_says_of_which_session_it_is() -> None:
    """So that one request can be followed through all logs; without one there is no such header."""
    assert (await sent_headers("CreatePod#7"))["InterLink-Http-Session"] == "CreatePod#7"
    assert "InterLink-Http-Session" not in await sent_headers()


async def test_own_headers_travel_with_every_call() -> None:
    """As the cluster's name does."""
    assert (await sent_headers(headers={"InterLink-Cluster": "c"}))["InterLink-Cluster"] == "c"


async def test_a_token_file_is_read_for_each_call(tmp_path: Path) -> None:
    """A rotated token is used at once."""
    token = tmp_path / "token"
    found = []
    for text in ("one\n", "two"):
        token.write_text(text)
        found.append((await sent_headers(token_file=token))["Authorization"])

    assert found == ["Bearer one", "Bearer two"]


async def test_a_missing_token_file_means_that_nothing_was_done(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(Unreachable, match=f"cannot read the token file {tmp_path}/no: No such file"):
        await called(answering(200), token_file=tmp_path / "no")
