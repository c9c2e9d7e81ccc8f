"""Calls from one part to the next over HTTP, TCP or unix socket, with errors named for what the caller can do."""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiohttp import hdrs

from interlink.sdk.addresses import Address
from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, Rejected, SDKError, Unreachable
from interlink.wire import codec, messages

_TEXT_LIMIT = 4096
_KINDS: dict[str, type[SDKError]] = {
    "rejected": Rejected,
    "conflict": Refused,
    "not_found": NotFound,
    "unreachable": Unreachable,
    "unknown": OutcomeUnknown,
    "invalid": Rejected,
}


class Reply(NamedTuple):
    """`is_unchanged`: what was asked for is as the tag in the question says, and `body` is empty."""

    body: bytes
    headers: Mapping[str, str]
    is_unchanged: bool


class Link:
    """A pool of connections to one address. Open it inside a running loop; close it at the end."""

    def __init__(
        self,
        address: Address,
        *,
        peer: str,
        tls: ssl.SSLContext | None = None,
        token_file: Path | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.address = address
        self._peer = peer
        self._token_file = token_file
        self._own_headers = {"Content-Type": "application/json", **(headers or {})}
        connector = (
            aiohttp.UnixConnector(path=address.socket, limit=0)
            if address.socket
            else aiohttp.TCPConnector(ssl=tls or True, limit=0)
        )
        self._session = aiohttp.ClientSession(
            base_url=f"http://{peer}" if address.socket else str(address),
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: bytes | None, *, timeout_s: float, session: str = "") -> bytes:
        """The body of a 2xx answer.

        Raises Unreachable when nothing can have been done, OutcomeUnknown when it may have, and Rejected, Refused or
        NotFound for a definitive answer.
        """
        return (await self.ask(method, path, body, timeout_s=timeout_s, session=session)).body

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        timeout_s: float,
        session: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """The same with what is around the body; `headers` are added. With If-None-Match, 304 is an answer too."""
        sent = {**self._headers(session), **(headers or {})}
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(method, path, data=body, headers=sent) as response,
            ):
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise self._translated(error, path) from error
        is_unchanged = response.status == 304 and hdrs.IF_NONE_MATCH in sent
        if is_unchanged or 200 <= response.status < 300:
            return Reply(body=content, headers=response.headers, is_unchanged=is_unchanged)
        raise self._refusal(response.status, content, path)

    @contextlib.asynccontextmanager
    async def stream(
        self, method: str, path: str, body: bytes, *, timeout_s: float, session: str = ""
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a 2xx answer as it comes; leaving the context frees the connection. Errors as in `call`.

        The answer must begin within `timeout_s`; afterwards it may be silent for ever, as a followed log.
        """
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(timeout_s):
                    response = await stack.enter_async_context(
                        self._session.request(method, path, data=body, headers=self._headers(session))
                    )
                    is_given = 200 <= response.status < 300
                    text = b"" if is_given else await response.content.read(_TEXT_LIMIT)
            except (aiohttp.ClientError, OSError) as error:
                raise self._translated(error, path) from error
            if not is_given:
                raise self._refusal(response.status, text, path)
            yield self._chunks(response, path)

    async def _chunks(self, response: aiohttp.ClientResponse, path: str) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise self._translated(error, path) from error

    def _headers(self, session: str) -> Mapping[str, str]:
        headers = dict(self._own_headers)
        if session:
            headers[messages.SESSION_HEADER] = session
        if self._token_file is not None and (token := self._token()):
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _token(self) -> str:
        assert self._token_file is not None
        try:
            return self._token_file.read_text().strip()
        except OSError as error:
            raise Unreachable(f"cannot read the token file {self._token_file}: {error.strerror}") from error

    def _translated(self, error: Exception, path: str) -> SDKError:
        where = f"{self._peer} at {self.address}"
        if isinstance(error, aiohttp.ClientConnectorError):
            return Unreachable(f"cannot reach the {where}: {_reason(error.os_error)}")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Unreachable(f"cannot reach the {where}: no connection in time")
        if isinstance(error, TimeoutError):
            return OutcomeUnknown(f"the {where} did not answer {path} in time")
        return OutcomeUnknown(f"the {where} closed the connection during {path}: {str(error) or type(error).__name__}")

    def _refusal(self, status: int, content: bytes, path: str) -> SDKError:
        with contextlib.suppress(codec.InvalidMessage):
            problem = codec.decode(content, messages.Problem)
            return _KINDS.get(problem.kind, OutcomeUnknown)(problem.message)
        text = content[:_TEXT_LIMIT].decode(errors="replace").strip() or "no text"
        message = f"the {self._peer} answered {path} with {status}: {text}"
        if status in (404, 405):
            return NotFound(message)
        if status in (401, 403, 408, 425, 429):
            return Unreachable(message)
        return Rejected(text) if 400 <= status < 500 else OutcomeUnknown(message)


def _reason(error: OSError) -> str:
    """The system's words; a resolver has numbers and words of its own."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno)
