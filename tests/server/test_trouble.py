"""A plugin in trouble, hostile requests, logs: the server stays up and says what is wrong."""

import asyncio
import hashlib
import json
from collections.abc import Callable

import aiohttp
import msgspec
import pytest
from aiohttp import web

from interlink.testing.daemons import Daemon
from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import Document, ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin, cut


def following(document: Document) -> Document:
    """The question for a log that goes on."""
    return {"PodUID": uid_of(document), "ContainerName": "c", "Opts": {"Follow": True}}


BODIES = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"[{}]",
    b"[{},{}]",
    b'"text"',
    b"{",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"pod":{"metadata":{"uid":"../../etc/passwd"}}}',
    b'{"metadata":{"uid":"../x"},"spec":{"nodeName":"vk"}}',
    json.dumps({"pod": {"metadata": {"uid": "a" * 5000}, "spec": {"nodeName": "vk"}}}).encode(),
    json.dumps({"pod": {"metadata": {"uid": "1"}, "spec": {"nodeName": "vk", "containers": "none"}}}).encode(),
    json.dumps([{"metadata": {"uid": 7}}]).encode(),
]
ROUTES = [
    "/create",
    "/delete",
    "/status",
    "/getLogs",
    "/pinglink",
    "/updateCache",
    "/interlink/v1/announce",
    "/interlink/v1/changes",
    "/interlink/v1/refresh",
    "/interlink/v1/usage",
]


@pytest.mark.parametrize("route", ROUTES)
async def test_measured_malformed_bodies_end_in_answers(client: ServerClient, server: Programs, route: str) -> None:
    """Each gets an answer, no traceback is logged, and the process lives on."""
    pid = server.server.pid

    codes = [(await client.ask(route, body))[0] for body in BODIES]

    assert all(code < 500 for code in codes), dict(zip(BODIES, codes, strict=True))
    assert server.server.pid == pid
    assert "Traceback" not in server.server.log.read_text()


async def test_every_line_of_the_log_is_a_json_object(client: ServerClient, server: Programs) -> None:
    """Also after bytes that are no HTTP, of which each leaves one line."""
    for data in (
        b"hello\r\n\r\n",
        b'GET "/\x1b[31m HTTP/1.1\r\n\r\n',
        b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.server_port)
        writer.write(data)
        async with asyncio.timeout(10):
            assert (await reader.readline()).split()[1] == b"400"
        writer.close()
        await writer.wait_closed()
    await client.ask("/create", b"{")

    lines = [json.loads(line) for line in server.server.log.read_text().splitlines()]

    assert [line["status"] for line in lines if line["event"] == "request.invalid"] == [400] * 4
    assert not any("exception" in line for line in lines)


async def test_r3_a_client_that_goes_away_while_it_sends(client: ServerClient, server: Programs) -> None:
    """Half a request, then nothing: the server goes on."""
    for route in ("create", "delete", "status", "getLogs"):
        _, writer = await asyncio.open_connection("127.0.0.1", server.server_port)
        writer.write(f"POST /{route} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{".encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    assert (await client.ask("/healthz", method="GET"))[0] == 200


async def test_breaker_opens_shows_and_closes(client: ServerClient, plugin: StrangePlugin) -> None:
    """After failures in a row the plugin is left alone for a while; ping, readiness and metric say so."""
    plugin.behaviours |= {"ping": cut, "status": cut}
    for _ in range(5):
        await client.ask("/pinglink")

    code, text = await client.ask("/pinglink")

    assert (code, "not asked after" in text) == (503, True)
    assert "not asked after" in await client.ready()
    assert await client.metric("interlink_plugin_breaker_open") == 1
    plugin.behaviours.clear()

    async def answers() -> bool:
        return (await client.ask("/pinglink"))[0] == 200

    assert await until_async(answers, deadline_s=20)
    assert await client.metric("interlink_plugin_breaker_open") == 0


async def test_ping_is_passed_through(client: ServerClient, plugin: StrangePlugin) -> None:
    """Resources and taints arrive as the plugin gave them; also what is no JSON."""
    text = '{"status":"ok","resources":{"cpu":"128"},"taints":[{"key":"m","effect":"NoSchedule"}],"more":1}'

    async def answer(_: web.Request, __: object) -> web.Response:
        return web.Response(text=text)

    plugin.behaviours["ping"] = answer

    assert await client.ask("/pinglink") == (200, text)


async def test_what_the_site_says_holds_while_the_plugin_answers(client: ServerClient, plugin: StrangePlugin) -> None:
    """It is not asked again as long as other answers show that it lives, and is as soon as one is missing."""
    code, _ = await client.create(pod())
    assert code == 200

    async def was_asked() -> bool:
        return plugin.calls["status"] > 1

    assert await until_async(was_asked, deadline_s=20)
    await client.ask("/pinglink")
    pings = plugin.calls["ping"]
    for _ in range(3):
        assert (await client.ask("/pinglink"))[0] == 200
    assert plugin.calls["ping"] == pings

    plugin.behaviours |= {"ping": cut, "status": cut}

    async def is_noticed() -> bool:
        return (await client.ask("/pinglink"))[0] != 200

    assert await until_async(is_noticed, deadline_s=20)
    assert plugin.calls["ping"] > pings


async def test_without_other_answers_every_ping_is_passed_on(client: ServerClient, plugin: StrangePlugin) -> None:
    """With no live pod nothing else is asked."""
    for _ in range(3):
        assert (await client.ask("/pinglink"))[0] == 200

    assert plugin.calls["ping"] == 3


async def test_logs_pass_as_they_come(client: ServerClient, plugin: StrangePlugin, server: Programs) -> None:
    """Bytes arrive one by one while the log is being written, and a reader that leaves frees the plugin."""
    gate, left = asyncio.Event(), asyncio.Event()

    async def follow(request: web.Request, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        await gate.wait()
        try:
            while True:
                await response.write(b"more\n")
                await asyncio.sleep(0.01)
        finally:
            left.set()

    plugin.behaviours["logs"] = follow
    document = pod()
    await client.create(document)
    question = following(document)
    async with aiohttp.ClientSession() as session:
        response = await session.post(f"http://127.0.0.1:{server.server_port}/getLogs", json=question)
        async with asyncio.timeout(5):
            assert await response.content.readline() == b"first\n"
        gate.set()
        assert await response.content.readline() == b"more\n"
        response.close()

    async with asyncio.timeout(10):
        await left.wait()


async def test_follow_of_a_silent_log_begins_at_once(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """Before the first line: whoever reads it can tell a silent log from a server that does not answer."""
    gate = asyncio.Event()

    async def silent(request: web.Request, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await gate.wait()
        return response

    plugin.behaviours["logs"] = silent
    document = pod()
    await client.create(document)
    question = following(document)
    async with aiohttp.ClientSession() as session, asyncio.timeout(5):
        response = await session.post(f"http://127.0.0.1:{server.server_port}/getLogs", json=question)
        gate.set()
        assert await response.read() == b""


async def test_t14_many_followers_do_not_delay_status(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """With 50 open log streams a status question is answered at once."""
    gate = asyncio.Event()

    async def follow(request: web.Request, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x\n")
        await gate.wait()
        return response

    plugin.behaviours["logs"] = follow
    document = pod()
    await client.create(document)
    question = following(document)
    url = f"http://127.0.0.1:{server.server_port}/getLogs"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        streams = await asyncio.gather(*(session.post(url, json=question) for _ in range(50)))
        async with asyncio.timeout(2):
            assert len(await client.status(document)) == 1
        gate.set()
        for stream in streams:
            stream.close()


async def test_log_error_keeps_the_plugins_words(client: ServerClient, plugin: StrangePlugin) -> None:
    """An error before the first byte is an error answer, with the text of the plugin."""

    async def refuse(_: web.Request, __: object) -> web.Response:
        return web.Response(status=400, text="container c is waiting to start")

    plugin.behaviours["logs"] = refuse
    code, text = await client.ask("/getLogs", {"PodUID": "1", "ContainerName": "c"})

    assert (code, "waiting to start" in text) == (422, True)


async def test_second_server_on_a_directory_refuses(server: Programs, make_server: Callable[..., Programs]) -> None:
    """It names the first one and ends with code 2; the first goes on."""
    second = make_server()
    second.server.start(is_awaited=False)

    assert second.server.await_exit() == 2
    assert f"another server uses {server.cache.parent}: process {server.server.pid}" in second.server.log.read_text()
    assert server.server.pid is not None


async def test_newer_record_is_refused(client: ServerClient, server: Programs) -> None:
    """A record of a newer program ends the start with a clear error; it is not touched."""
    document = pod()
    await client.create(document)
    server.server.stop()
    record = server.cache / f"{uid_of(document)}.yaml"
    text = reseal(record.read_text(), '"format": 1', '"format": 99')
    record.write_text(text)

    server.server.start(is_awaited=False)

    assert server.server.await_exit() == 2
    assert "has format 99" in server.server.log.read_text()
    assert record.read_text() == text


def reseal(text: str, old: str, new: str) -> str:
    """A record changed as another program would write it: with a checksum that is right."""
    assert old in text
    document = msgspec.json.decode(text.replace(old, new))
    body = msgspec.json.encode(document["record"])
    document["checksum"] = "sha256:" + hashlib.sha256(body).hexdigest()
    return msgspec.json.format(msgspec.json.encode(document)).decode()


async def test_r2_stale_socket_is_no_obstacle(plugin: StrangePlugin, make_server: Callable[..., Programs]) -> None:
    """After kill -9 the socket file is still there, and the server starts again; a living one is not replaced."""
    folder = make_server().folder
    socket = folder / "interlink.sock"
    programs = make_server(InterlinkAddress=f"unix://{socket}")
    first = Daemon([*programs.server.argv], log=folder / "first.log")
    first.start()
    assert await until_async(lambda: answers_on(str(socket)), deadline_s=20)
    first.kill()
    assert socket.exists()

    first.start()

    assert await until_async(lambda: answers_on(str(socket)), deadline_s=20)
    first.stop()
    assert not socket.exists()
    assert plugin.port


async def answers_on(socket: str) -> bool:
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket)) as session,
            session.get("http://server/healthz") as response,
        ):
            return response.status == 200
    except aiohttp.ClientError:
        return False
