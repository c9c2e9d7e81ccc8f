"""What a broken or refused request leaves in the log."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from interlink.model.errors import InvalidID
from interlink.sdk import hosting
from interlink.sdk.addresses import Address
from interlink.sdk.errors import NotFound, Overloaded, Refused, Rejected, Unreachable
from interlink.wire.codec import InvalidMessage

Line = dict[str, Any]


def app_of(error: Exception | None = None) -> web.Application:
    async def handler(request: web.Request) -> web.Response:
        await request.read()
        if error is not None:
            raise error
        return web.Response(text="ok")

    return hosting.application(
        [web.post("/x", handler), web.post("/interlink/v1/x", handler)], readiness=list, body_limit_bytes=100
    )


async def lines_of(*pieces: bytes, error: Exception | None = None) -> tuple[int, list[Line]]:
    """The status of the answer to these bytes, sent piece by piece, and what was logged."""
    with capture_logs() as lines:
        async with hosting.serving(app_of(error), Address("http", "127.0.0.1", 0)) as port, asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.02)
            answer = await reader.readline()
            writer.close()
            await writer.wait_closed()
    return int(answer.split()[1]), [dict(line) for line in lines]


def post(headers: str = "Content-Length: 2", body: bytes = b"{}", *, path: str = "/x", method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode() + body


NO_HTTP: list[tuple[bytes, str]] = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTPS"),
    (b"hello\r\n\r\n", "Invalid method"),
    (b'"evil"\x1b[31m\r\n\r\n', "Invalid"),
    (b"GET /x HTTP/9.9\r\n\r\n", "Invalid HTTP version"),
    (post("Transfer-Encoding: chunked", b"zz\r\n"), "chunk size"),
    (post(f"X-Long: {'a' * 9000}"), "more than 8190 bytes"),
    (post(path=f"/{'a' * 9000}"), "more than 8190 bytes"),
    (post("Content-Length: -1"), "Content-Length"),
]


@pytest.mark.parametrize(("data", "reason"), NO_HTTP)
async def test_bytes_that_are_no_http_are_one_warning(data: bytes, reason: str) -> None:
    """With the reason on one line and no traceback; there is no method and no path to tell."""
    status, [line] = await lines_of(data)

    assert (status, line["event"], line["status"], line["log_level"]) == (400, "request.invalid", 400, "warning")
    assert reason in line["reason"]
    assert "\n" not in line["reason"]
    assert len(line["reason"]) <= 300
    assert line["remote"] == "127.0.0.1"
    assert "exc_info" not in line


@pytest.mark.parametrize(
    ("pieces", "status", "reason"),
    [
        ([post("Content-Length: 101", b"x" * 101)], 413, "size 100 exceeded"),
        ([post("Content-Encoding: gzip\r\nContent-Length: 5", b"abcde")], 400, "content-encoding"),
    ],
)
async def test_a_body_that_cannot_be_read_is_one_warning(pieces: list[bytes], status: int, reason: str) -> None:
    """A mistake of the client, and no fault of the program."""
    answered, [line] = await lines_of(*pieces)

    assert reason in line.pop("reason")
    assert answered == status
    assert line == {
        "event": "request.invalid", "log_level": "warning", "method": "POST", "path": "/x", "status": status
    }  # fmt: skip


async def test_a_body_that_is_not_looked_at_is_one_warning_too() -> None:
    """Whatever the route does with it."""
    broken = post("Content-Encoding: gzip\r\nContent-Length: 5", b"abcde", path="/healthz", method="GET")
    answered, [line] = await lines_of(broken)

    assert (answered, line["event"], line["path"], line["status"]) == (400, "request.invalid", "/healthz", 400)


@pytest.mark.parametrize(
    "pieces",
    [
        [post("Content-Length: 100", b"{")],
        [post("Transfer-Encoding: chunked", b"2\r\n{}\r\n"), b"zz\r\n"],
    ],
)
async def test_a_body_that_does_not_come_has_an_end(pieces: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops, or goes on with what is no HTTP: the request holds nobody, and is one line."""
    monkeypatch.setattr(hosting, "BODY_WITHIN_S", 0.2)
    answered, [line] = await lines_of(*pieces)

    assert (answered, line["event"], line["method"], line["path"], line["status"]) == (
        408, "request.refused", "POST", "/x", 408
    )  # fmt: skip
    assert "did not come" in line["reason"]


@pytest.mark.parametrize(
    ("error", "status", "event"),
    [
        (InvalidMessage("no"), 400, "request.invalid"),
        (InvalidID("no"), 400, "request.invalid"),
        (Rejected("no"), 422, "request.refused"),
        (Refused("no"), 409, "request.refused"),
        (Overloaded("no"), 429, "request.refused"),
        (web.HTTPForbidden(text="no"), 403, "request.refused"),
    ],
)
async def test_a_refused_request_is_one_line(error: Exception, status: int, event: str) -> None:
    """With method, path, status and reason."""
    answered, [line] = await lines_of(post(), error=error)

    assert answered == status
    assert (line["event"], line["method"], line["path"], line["status"], line["reason"]) == (
        event, "POST", "/x", status, "no"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "status"),
    [(post(path="/no"), 404), (post(path="/.env", method="GET"), 404), (post(method="PUT"), 405)],
)
async def test_what_is_not_served_is_one_line(request_: bytes, status: int) -> None:
    """Somebody looks for what is not here."""
    answered, [line] = await lines_of(request_)

    assert (answered, line["event"], line["status"]) == (status, "request.refused", status)


@pytest.mark.parametrize(
    ("request_", "error", "status"),
    [
        (post(), None, 200),
        (post(), NotFound("no pod"), 404),
        (post(), Unreachable("no plugin"), 503),
        (post(path="/interlink/v1/unknown"), None, 404),
    ],
)
async def test_ordinary_answers_are_not_told(request_: bytes, error: Exception | None, status: int) -> None:
    """Our programs ask each other for what may not be there; that a plugin is away is told where it is noticed."""
    assert await lines_of(request_, error=error) == (status, [])
