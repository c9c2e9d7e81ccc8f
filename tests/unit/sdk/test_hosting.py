"""Serving HTTP: health, readiness, errors as answers, sockets that are free, taken or left over."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlink.model.errors import ConfigurationError, InvalidID
from interlink.sdk import hosting
from interlink.sdk.addresses import Address
from interlink.sdk.errors import NotFound, OutcomeUnknown, Overloaded, Refused, Rejected, SDKError, Unreachable
from interlink.wire.codec import InvalidMessage

LOOPBACK = Address("http", "127.0.0.1", 0)


def app_of(error: Exception | None = None, problems: list[str] | None = None) -> web.Application:
    """An application whose one route `/x` raises."""

    async def handler(request: web.Request) -> web.Response:
        await request.read()
        if error is not None:
            raise error
        return web.Response(text="ok")

    return hosting.application([web.post("/x", handler)], readiness=lambda: problems or [], body_limit_bytes=100)


async def answer(app: web.Application, path: str, *, method: str = "GET", body: bytes = b"") -> tuple[int, str]:
    async with (
        hosting.serving(app, LOOPBACK) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        session.request(method, path, data=body) as response,
    ):
        return response.status, await response.text()


# --- health ----------------------------------------------------------------------------------------------------------


async def test_a_process_that_serves_is_healthy() -> None:
    """Whatever is wrong with its surroundings."""
    assert await answer(app_of(problems=["the disk is full"]), "/healthz") == (200, "ok")


@pytest.mark.parametrize(
    ("problems", "expected"), [([], (200, "ok")), (["a"], (503, "a")), (["a", "b"], (503, "a\nb"))]
)
async def test_a_process_with_problems_is_not_ready(problems: list[str], expected: tuple[int, str]) -> None:
    """It says which, one a line."""
    assert await answer(app_of(problems=problems), "/readyz") == expected


async def test_metrics_are_there() -> None:
    """In the form of Prometheus, by route and status."""
    app = app_of()
    async with hosting.serving(app, LOOPBACK) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        await session.post("/x")
        text = await (await session.get("/metrics")).text()

    assert 'interlink_http_request_seconds_count{code="200",route="/x"}' in text


# --- errors as answers -----------------------------------------------------------------------------------------------

ANSWERS: list[tuple[Exception, int, str]] = [
    (Rejected("no"), 422, "rejected"),
    (Refused("no"), 409, "conflict"),
    (NotFound("no"), 404, "not_found"),
    (Unreachable("no"), 503, "unreachable"),
    (Overloaded("no"), 429, "unreachable"),
    (OutcomeUnknown("no"), 502, "unknown"),
    (SDKError("no"), 502, "unknown"),
    (InvalidMessage("no"), 400, "invalid"),
    (InvalidID("no"), 400, "invalid"),
]


@pytest.mark.parametrize(("error", "status", "kind"), ANSWERS)
async def test_an_error_becomes_an_answer(error: Exception, status: int, kind: str) -> None:
    """With a status for existing programs, and a kind and a text for ours."""
    code, body = await answer(app_of(error), "/x", method="POST")

    assert (code, json.loads(body)) == (status, {"kind": kind, "message": "no"})


async def test_a_fault_of_ours_tells_no_secrets() -> None:
    """The answer has the kind of the error only; the log of the program has the rest."""
    code, body = await answer(app_of(KeyError("s3cr3t")), "/x", method="POST")

    assert (code, json.loads(body)["kind"]) == (500, "unknown")
    assert "s3cr3t" not in body


async def test_the_next_request_is_served_after_a_fault() -> None:
    """The process goes on."""
    app = app_of(KeyError("x"))
    async with hosting.serving(app, LOOPBACK) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        codes = [(await session.post("/x")).status, (await session.get("/healthz")).status]

    assert codes == [500, 200]


@pytest.mark.parametrize(("path", "method", "status"), [("/no", "GET", 404), ("/x", "GET", 405)])
async def test_what_is_not_served_is_a_plain_answer(path: str, method: str, status: int) -> None:
    """Unknown paths and methods are no faults."""
    assert (await answer(app_of(), path, method=method))[0] == status


async def test_a_body_above_the_limit_is_refused() -> None:
    """Before it has filled the memory."""
    assert (await answer(app_of(), "/x", method="POST", body=b"x" * 101))[0] == 413
    assert (await answer(app_of(), "/x", method="POST", body=b"x" * 100))[0] == 200


async def test_a_request_that_waits_for_news_ends_with_the_program() -> None:
    """Stopping does not wait until its client has had enough."""
    began = asyncio.Event()

    async def news(request: web.Request) -> web.Response:
        with hosting.waiting_for_news(request):
            began.set()
            await asyncio.Event().wait()
        return web.Response()

    app = hosting.application([web.get("/news", news)], readiness=list)
    async with asyncio.timeout(5), aiohttp.ClientSession() as session:
        async with hosting.serving(app, LOOPBACK) as port:
            task = asyncio.ensure_future(session.get(f"http://127.0.0.1:{port}/news"))
            await began.wait()
        with pytest.raises(aiohttp.ClientError):
            await task


# --- addresses -------------------------------------------------------------------------------------------------------


async def over_socket(path: Path) -> str:
    connector = aiohttp.UnixConnector(str(path))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://s/healthz") as response:
        return await response.text()


def at(path: Path) -> Address:
    return Address("unix", socket=str(path))


async def test_a_port_that_is_taken_is_named() -> None:
    """The error says which address and why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("http", "127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigurationError, match=f"cannot listen on {address}: Address already in use"):
            async with hosting.serving(app_of(), address):
                pass


async def test_a_unix_socket_is_private_and_goes_with_the_program(tmp_path: Path) -> None:
    """Nobody else may connect, and nothing is left behind."""
    path = tmp_path / "s"
    async with hosting.serving(app_of(), at(path)) as port:
        assert (port, path.stat().st_mode & 0o777, await over_socket(path)) == (0, 0o600, "ok")

    assert not path.exists()


async def test_a_socket_left_over_from_a_crash_is_replaced(tmp_path: Path) -> None:
    """Nobody answers it any more."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    async with hosting.serving(app_of(), at(path)):
        assert await over_socket(path) == "ok"


async def test_a_socket_that_is_answered_is_not_taken(tmp_path: Path) -> None:
    """A second program on the same socket does not start."""
    path = tmp_path / "s"
    async with hosting.serving(app_of(), at(path)):
        with pytest.raises(ConfigurationError, match=f"another process listens on unix://{path}"):
            async with hosting.serving(app_of(), at(path)):
                pass


async def test_a_program_that_does_not_start_leaves_the_other_its_socket(tmp_path: Path) -> None:
    """The one that was there first goes on answering."""
    path = tmp_path / "s"
    async with hosting.serving(app_of(), at(path)):
        with pytest.raises(ConfigurationError):
            async with hosting.serving(app_of(), at(path)):
                pass
        assert path.exists()


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    """A mistyped path costs nobody a file."""
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(ConfigurationError):
        async with hosting.serving(app_of(), at(path)):
            pass

    assert path.read_text() == "data"


# The listener is not closed when it cannot be bound; that is left to the end of the program.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("place", "reason"), [("no/s", "No such file or directory"), ("s" * 120, "AF_UNIX path too long")]
)
async def test_a_socket_that_cannot_be_made_is_named(tmp_path: Path, place: str, reason: str) -> None:
    """Where its directory is missing or its path is too long."""
    with pytest.raises(ConfigurationError, match=f"cannot listen on unix://{tmp_path}/{place}: {reason}"):
        async with hosting.serving(app_of(), at(tmp_path / place)):
            pass


async def test_stopping_lets_a_request_in_flight_finish() -> None:
    """Its client has its answer."""
    began = asyncio.Event()
    release = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        began.set()
        await release.wait()
        return web.Response(text="done")

    async def finish() -> Any:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.text()

    app = hosting.application([web.get("/slow", slow)], readiness=list)
    async with asyncio.timeout(5):
        async with hosting.serving(app, LOOPBACK) as port:
            url = f"http://127.0.0.1:{port}/slow"
            task = asyncio.ensure_future(finish())
            await began.wait()
            asyncio.get_running_loop().call_later(0.02, release.set)
        assert await task == "done"
