"""TLS before HTTP: a handshake that fails is one line of the log, with the reason and who it was.

asyncio's own server says nothing of these.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

import structlog

log = structlog.get_logger(__name__)

HANDSHAKE_WITHIN_S = 30.0


class Handshakes:
    """Makes the protocol of each new connection; `serve` that of one whose handshake has succeeded."""

    def __init__(self, serve: Callable[[], asyncio.Protocol], tls: ssl.SSLContext) -> None:
        self._serve = serve
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self) -> asyncio.Protocol:
        return _Handshake(self._begin)

    def close(self) -> None:
        """End those that are under way."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, transport: asyncio.Transport, early: "_Handshake") -> None:
        task = asyncio.create_task(self._shake_hands(transport, early))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, transport: asyncio.Transport, early: "_Handshake") -> None:
        remote = _name(transport)
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, early, self._tls, server_side=True, ssl_handshake_timeout=HANDSHAKE_WITHIN_S
            )
        except (ssl.SSLError, ConnectionAbortedError) as error:
            log.warning("tls.refused", remote=remote, reason=_words(error))
        except OSError:
            # A client that does not trust us, or somebody who only looks whether the port is open.
            log.info("tls.refused", remote=remote, reason="the client closed the connection")
        else:
            if secured is not None:
                early.hand_over(secured, self._serve())


class _Handshake(asyncio.Protocol):
    """Keeps what comes between the end of the handshake and the beginning of HTTP."""

    def __init__(self, begin: Callable[[asyncio.Transport, "_Handshake"], None]) -> None:
        self._begin = begin
        self._received: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        plain.pause_reading()
        self._begin(plain, self)

    def data_received(self, data: bytes) -> None:
        self._received.append(data)

    def hand_over(self, secured: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        secured.set_protocol(protocol)
        protocol.connection_made(secured)
        for data in self._received:
            protocol.data_received(data)


def _name(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "unix socket"


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error)
