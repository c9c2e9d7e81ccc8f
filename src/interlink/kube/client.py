"""The verbs of the Kubernetes API that we use, as bytes in and bytes out; types are the caller's."""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType

import aiohttp
import msgspec
import prometheus_client

from interlink.kube.credentials import Credentials
from interlink.kube.errors import Conflict, Gone, KubeError, NotFound, Refused, Unavailable

MERGE = "application/merge-patch+json"
STRATEGIC_MERGE = "application/strategic-merge-patch+json"

CALLS = prometheus_client.Counter("interlink_kube_calls", "Calls of the Kubernetes API.", ["verb", "code"])
_TIMEOUT_S = 30.0


class _Status(msgspec.Struct):
    """The part of a Kubernetes Status that says what went wrong."""

    message: str = ""
    reason: str = ""


class KubeClient:
    """Open inside a running loop. Every call is bounded in time and raises the errors of `interlink.kube.errors`."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._may_write: Callable[[], None] = lambda: None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=credentials.tls or False, limit=64),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )

    async def __aenter__(self) -> "KubeClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    def guarded(self, may_write: Callable[[], None]) -> "KubeClient":
        """The same connections, but before each write `may_write` is called and may raise to forbid it."""
        guarded = copy.copy(self)
        guarded._may_write = may_write
        return guarded

    async def get(self, path: str, **params: str) -> bytes:
        return await self._call("get", "GET", path, params=params)

    async def create(self, path: str, body: bytes) -> bytes:
        """Raises Conflict when the object exists."""
        return await self._call("create", "POST", path, body=body)

    async def replace(self, path: str, body: bytes) -> bytes:
        return await self._call("update", "PUT", path, body=body)

    async def patch(self, path: str, body: bytes, *, kind: str = STRATEGIC_MERGE) -> bytes:
        return await self._call("patch", "PATCH", path, body=body, content_type=kind)

    async def delete(self, path: str, *, uid: str, grace_s: int = 0) -> None:
        """Delete exactly the object with this UID; absent is fine. Raises Conflict when another has its name."""
        options = {"gracePeriodSeconds": grace_s, "preconditions": {"uid": uid}}
        with contextlib.suppress(NotFound):
            await self._call("delete", "DELETE", path, body=msgspec.json.encode(options))

    async def _call(
        self,
        verb: str,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        try:
            headers = {"Content-Type": content_type, **await self._credentials.headers()}
            if method != "GET":
                self._may_write()
            async with (
                asyncio.timeout(_TIMEOUT_S),
                self._session.request(
                    method, self._credentials.server + path, params=params, data=body, headers=headers
                ) as response,
            ):
                content = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            CALLS.labels(verb, "none").inc()
            raise Unavailable(f"cannot {verb} {path}: {str(error) or type(error).__name__}") from error
        CALLS.labels(verb, str(response.status)).inc()
        if response.status >= 300:
            raise self._error(response, content, f"{verb} {path}")
        return content

    @contextlib.asynccontextmanager
    async def watch(self, path: str, *, silence_s: float, **params: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch. Raises Unavailable when nothing comes for `silence_s` seconds."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s)
        try:
            headers = await self._credentials.headers()
            async with self._session.get(
                self._credentials.server + path, params={"watch": "true", **params}, headers=headers, timeout=timeout
            ) as response:
                CALLS.labels("watch", str(response.status)).inc()
                if response.status >= 300:
                    raise self._error(response, await response.read(), f"watch {path}")
                yield _lines(response)
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"the watch of {path} broke off: {str(error) or type(error).__name__}") from error

    def _error(self, response: aiohttp.ClientResponse, content: bytes, what: str) -> KubeError:
        try:
            status = msgspec.json.decode(content, type=_Status)
        except msgspec.MsgspecError:
            status = _Status(message=content[:200].decode(errors="replace"))
        text = f"cannot {what}: {response.status} {status.message or status.reason}"
        match response.status:
            case 401:
                self._credentials.forget_token()
                return Unavailable(text)
            case 404:
                return NotFound(text)
            case 409:
                return Conflict(text)
            case 410:
                return Gone(text)
            case 429 | 500 | 502 | 503 | 504:
                return Unavailable(text, retry_after_s=_seconds(response.headers.get("Retry-After")))
            case _:
                return Refused(text)


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdecimal() else None


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Whole lines, however long; aiohttp's own line reader has a limit."""
    rest = bytearray()
    async for chunk in response.content.iter_any():
        rest += chunk
        *lines, tail = rest.split(b"\n") if b"\n" in chunk else (rest,)
        rest = bytearray(tail)
        for line in lines:
            if line:
                yield bytes(line)
