"""What a handshake that fails leaves in the log, and that the next one succeeds."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from structlog.testing import capture_logs

from interlink.kubelet.certificates.contexts import ServingTLS
from interlink.kubelet.certificates.making import Pair
from interlink.sdk import handshaking, hosting, tls
from interlink.sdk.addresses import Address
from interlink.sdk.tls import TLSFile

GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
OURS, STRANGER = trustme.CA(), trustme.CA()
LEAF = OURS.issue_cert("127.0.0.1")


def of_server_and_plugin(folder: Path) -> ssl.SSLContext:
    for name, content in {
        "crt": LEAF.cert_chain_pems[0].bytes(),
        "key": LEAF.private_key_pem.bytes(),
        "ca": OURS.cert_pem.bytes(),
    }.items():
        (folder / name).write_bytes(content)
    file = TLSFile(cert_file=str(folder / "crt"), key_file=str(folder / "key"), ca_cert_file=str(folder / "ca"))
    return tls.server_context(file, key="TLS")


def of_the_nodes_endpoint(_: Path) -> ssl.SSLContext:
    context = ServingTLS(Pair(certificate=LEAF.cert_chain_pems[0].bytes(), key=LEAF.private_key_pem.bytes()))
    context.trust(OURS.cert_pem.bytes())
    return context


def client(*, shows: trustme.CA | None, trusts: trustme.CA = OURS) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    trusts.configure_trust(context)
    if shows is not None:
        shows.issue_cert("vk").configure_cert(context)
    return context


@pytest.fixture(params=[of_server_and_plugin, of_the_nodes_endpoint])
async def port(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[int]:
    app = hosting.application([], readiness=list)
    async with hosting.serving(app, Address("https", "127.0.0.1", 0), tls=request.param(tmp_path)) as found:
        yield found


async def ask(port: int, context: ssl.SSLContext | None, data: bytes = GET) -> tuple[str, bytes]:
    """Our address, and what came back; nothing where the connection was refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    name, answer = writer.get_extra_info("sockname"), b""
    with contextlib.suppress(OSError):
        if context is not None:
            await writer.start_tls(context)
        writer.write(data)
        answer = await reader.read()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return f"{name[0]}:{name[1]}", answer


BAD: list[tuple[str, Callable[[], ssl.SSLContext | None], bytes, str, str]] = [
    ("a certificate of another authority", lambda: client(shows=STRANGER), GET, "certificate", "warning"),
    ("one that does not trust us", lambda: client(shows=OURS, trusts=STRANGER), GET, "closed", "info"),
    ("HTTP in the clear", lambda: None, GET, "http request", "warning"),
    ("anything", lambda: None, b"\x00" * 64, "wrong version number", "warning"),
]


@pytest.mark.parametrize(("context", "data", "reason", "level"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_a_handshake_that_fails_is_one_line(
    port: int, context: Callable[[], ssl.SSLContext | None], data: bytes, reason: str, level: str
) -> None:
    """With the reason and who it was, without a traceback; the next connection is served."""
    with capture_logs() as lines:
        remote, _ = await ask(port, context(), data)
        assert (await ask(port, client(shows=OURS)))[1].startswith(b"HTTP/1.1 200")

    (line,) = lines
    assert (line["event"], line["log_level"], line["remote"]) == ("tls.refused", level, remote)
    assert reason in line["reason"]
    assert "exc_info" not in line


async def test_no_client_certificate_is_one_line(tmp_path: Path) -> None:
    """Where one is demanded; the node's endpoint looks at who calls later."""
    app = hosting.application([], readiness=list)
    context = of_server_and_plugin(tmp_path)
    with capture_logs() as lines:
        async with hosting.serving(app, Address("https", "127.0.0.1", 0), tls=context) as port:
            await ask(port, client(shows=None))

    assert [(line["event"], line["reason"]) for line in lines] == [("tls.refused", "peer did not return a certificate")]


async def test_a_handshake_that_does_not_come_has_an_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for for ever."""
    monkeypatch.setattr(handshaking, "HANDSHAKE_WITHIN_S", 0.05)
    with capture_logs() as lines:
        _, answer = await ask(port, None, b"")

    assert answer == b""
    assert [line["event"] for line in lines] == ["tls.refused"]


async def test_who_only_looks_at_the_port_is_no_warning(port: int) -> None:
    """As a load balancer does it every few seconds."""
    with capture_logs() as lines:
        for _ in range(3):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()
        await ask(port, client(shows=OURS))

    assert [line["log_level"] for line in lines] == ["info"] * 3


async def test_a_request_that_comes_with_the_end_of_the_handshake(tmp_path: Path) -> None:
    """In one packet with it, as a client may send it: nothing of it is lost."""
    app = hosting.application([], readiness=list)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = client(shows=OURS).wrap_bio(incoming, outgoing)
    context = of_server_and_plugin(tmp_path)
    async with hosting.serving(app, Address("https", "127.0.0.1", 0), tls=context) as port, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not _is_done(secure):
            writer.write(outgoing.read())
            incoming.write(await reader.read(65536))
        secure.write(GET)
        writer.write(outgoing.read())
        answer = b""
        while b"200 OK" not in answer:
            incoming.write(await reader.read(65536))
            answer += _decrypted(secure)
        writer.close()
        await writer.wait_closed()


def _is_done(secure: ssl.SSLObject) -> bool:
    """What the handshake's last step has to send is left for the request to follow at once."""
    try:
        secure.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _decrypted(secure: ssl.SSLObject) -> Any:
    try:
        return secure.read(65536)
    except ssl.SSLWantReadError:
        return b""
