"""A complete, current picture of some pods: list, watch, and list again when the watch cannot go on.

What it shows is keyed by UID: a pod that was deleted and made again under the same name while the watch was away
appears as one that is gone and another that is new.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog
from msgspec import Raw

from interlink.aio.backoff import Backoff
from interlink.kube.client import KubeClient
from interlink.kube.errors import Gone, KubeError, Unavailable
from interlink.model import pods
from interlink.model.pods import Seen

log = structlog.get_logger(__name__)

_PAGE = "500"
_WATCH_S = (240, 480)
_SILENCE_MARGIN_S = 30
_PAUSE_S = 0.1


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[Raw] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: Raw


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""


class Reflector:
    """`on_change(seen, is_gone)` is called for each difference, never concurrently; `synced` is set after the first
    complete list and stays set."""

    def __init__(
        self, client: KubeClient, path: str, params: Mapping[str, str], on_change: Callable[[Seen, bool], None]
    ) -> None:
        self._client = client
        self._path = path
        self._params = dict(params)
        self._on_change = on_change
        self.pods: dict[str, Seen] = {}
        self.synced = asyncio.Event()
        self._version = ""

    async def run(self) -> None:
        """Never returns and never gives up; ends by cancellation."""
        delays = Backoff()
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
                delays.reset()
                await asyncio.sleep(_PAUSE_S)
            except Gone:
                self._version = ""
                await asyncio.sleep(delays.next_s())
            except (KubeError, msgspec.MsgspecError) as error:
                log.warning("watch.broken", path=self._path, error=str(error))
                asked = error.retry_after_s if isinstance(error, Unavailable) else None
                await asyncio.sleep(asked or delays.next_s())

    async def _list(self) -> None:
        found: dict[str, Seen] = {}
        page = _ListMeta(continue_="")
        while True:
            params = self._params | {"limit": _PAGE} | ({"continue": page.continue_} if page.continue_ else {})
            answer = msgspec.json.decode(await self._client.get(self._path, **params), type=_List)
            for raw in answer.items or []:
                seen = pods.seen(bytes(raw))
                found[seen.pod.uid] = seen
            page = answer.metadata
            if not page.continue_:
                break
        self._replace(found)
        self._version = page.resource_version
        self.synced.set()

    def _replace(self, found: dict[str, Seen]) -> None:
        gone = [seen for uid, seen in self.pods.items() if uid not in found]
        news = [s for s in found.values() if _version(self.pods.get(s.pod.uid)) != _version(s)]
        self.pods = found
        for seen in gone:
            self._on_change(seen, True)
        for seen in sorted(news, key=_age):
            self._on_change(seen, False)

    async def _watch(self) -> None:
        seconds = random.randint(*_WATCH_S)  # noqa: S311 -- spreads reconnects
        params = self._params | {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        async with self._client.watch(self._path, silence_s=seconds + _SILENCE_MARGIN_S, **params) as lines:
            async for line in lines:
                self._apply(msgspec.json.decode(line, type=_Event))

    def _apply(self, event: _Event) -> None:
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=_Status)
            if status.code == 410:
                raise Gone(status.message)
            raise Unavailable(f"the watch of {self._path} reports {status.code}: {status.message}")
        seen = pods.seen(bytes(event.object))
        self._version = seen.pod.metadata.resource_version
        if event.type == "DELETED":
            self.pods.pop(seen.pod.uid, None)
            self._on_change(seen, True)
        elif event.type in ("ADDED", "MODIFIED"):
            self._take(seen)

    def note(self, seen: Seen) -> None:
        """Take the answer to our own write, unless the pod has gone meanwhile. It is no change: the writer knows."""
        known = self.pods.get(seen.pod.uid)
        if known is not None and _is_newer(seen, known):
            self.pods[seen.pod.uid] = seen

    def _take(self, seen: Seen) -> None:
        known = self.pods.get(seen.pod.uid)
        if known is not None and not _is_newer(seen, known):
            return
        self.pods[seen.pod.uid] = seen
        self._on_change(seen, False)


def _is_newer(news: Seen, known: Seen) -> bool:
    """Resource versions are numbers that grow; since Kubernetes 1.35 that is part of the API's contract."""
    new, old = _version(news), _version(known)
    if new.isdecimal() and old.isdecimal():
        return int(new) > int(old)
    return new != old


def _version(seen: Seen | None) -> str:
    return seen.pod.metadata.resource_version if seen else ""


def _age(seen: Seen) -> Any:
    return seen.pod.metadata.creation_timestamp, seen.pod.uid
