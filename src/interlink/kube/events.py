"""Events about pods and nodes, told without delaying anybody: a queue, and one writer behind it.

The same event again raises the count of the object that is there. What exceeds the queue, or an object's allowance, is
dropped and counted: events explain, nothing depends on them.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import prometheus_client
import structlog

from interlink.aio import clock
from interlink.aio.backoff import Backoff
from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError, NotFound, Unavailable

log = structlog.get_logger(__name__)

WRITTEN = prometheus_client.Counter("interlink_kube_events_written", "Events written to Kubernetes, repeats included.")
DROPPED = prometheus_client.Counter("interlink_kube_events_dropped", "Events that were not written.", ["why"])

_QUEUE = 4096
_KNOWN = 4096
_PAUSE_S = 0.02
_ATTEMPTS = 8
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 230
# A kubelet's allowance: so many at once for one object, then one every five minutes.
_BURST = 25.0
_REFILL_PER_S = 1 / 300


class About(msgspec.Struct, frozen=True):
    """The object that an event is about; `field_path` names a part of it."""

    kind: str
    name: str
    uid: str
    namespace: str = ""
    field_path: str = ""


class Note(msgspec.Struct, frozen=True):
    about: About
    reason: str
    message: str
    is_warning: bool = False


class Told(msgspec.Struct, frozen=True):
    """An event that Kubernetes has."""

    name: str
    count: int
    first_at: datetime


class Allowances:
    """How many events each object may still have; pure but for the clock it is given."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, uid: str) -> bool:
        now = self._now()
        left, at = self._left.pop(uid, (_BURST, now))
        left = min(_BURST, left + (now - at) * _REFILL_PER_S)
        is_allowed = left >= 1
        self._left[uid] = (left - 1 if is_allowed else left, now)
        while len(self._left) > _KNOWN:
            self._left.popitem(last=False)
        return is_allowed


class Events:
    """`tell` never waits and never raises; `run` writes what was told, in order."""

    def __init__(self, client: KubeClient, *, component: str, host: str) -> None:
        self._client = client
        self._source = {"component": component, "host": host}
        self._waiting: asyncio.Queue[Note] = asyncio.Queue(_QUEUE)
        self._told: OrderedDict[Note, Told] = OrderedDict()
        self._allowances = Allowances()

    def tell(self, note: Note) -> None:
        try:
            self._waiting.put_nowait(note)
        except asyncio.QueueFull:
            DROPPED.labels("queue full").inc()

    async def run(self) -> None:
        """Never returns; ends by cancellation."""
        while True:
            note = await self._waiting.get()
            if not self._allowances.take(note.about.uid):
                DROPPED.labels("too many").inc()
                continue
            await self._write(note)
            await asyncio.sleep(_PAUSE_S)

    async def _write(self, note: Note) -> None:
        delays = Backoff(base_s=0.5, cap_s=10.0)
        for _ in range(_ATTEMPTS):
            try:
                self._remember(note, await self._once(note))
            except Unavailable:
                await asyncio.sleep(delays.next_s())
            except KubeError as error:
                log.debug("event.refused", reason=note.reason, error=str(error))
                DROPPED.labels("refused").inc()
                return
            else:
                WRITTEN.inc()
                return
        DROPPED.labels("unavailable").inc()

    async def _once(self, note: Note) -> Told:
        """A repeat of an event that Kubernetes has forgotten meanwhile is a new one."""
        now = clock.now()
        before = self._told.get(note)
        namespace = note.about.namespace or "default"
        if before is not None:
            again = msgspec.structs.replace(before, count=before.count + 1)
            try:
                await self._client.patch(paths.event(namespace, again.name), repeat(again, now))
            except NotFound:
                pass
            else:
                return again
        told = Told(name=f"{note.about.name[:_LONGEST_NAME]}.{time.time_ns():x}", count=1, first_at=now)
        await self._client.create(paths.events(namespace), document(note, told, self._source))
        return told

    def _remember(self, note: Note, told: Told) -> None:
        self._told.pop(note, None)
        self._told[note] = told
        while len(self._told) > _KNOWN:
            self._told.popitem(last=False)


def document(note: Note, told: Told, source: dict[str, str]) -> bytes:
    about = note.about
    involved: dict[str, Any] = {"apiVersion": "v1", "kind": about.kind, "name": about.name, "uid": about.uid}
    if about.namespace:
        involved["namespace"] = about.namespace
    if about.field_path:
        involved["fieldPath"] = about.field_path
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": told.name, "namespace": about.namespace or "default"},
        "involvedObject": involved,
        "type": "Warning" if note.is_warning else "Normal",
        "reason": note.reason,
        "message": shortened(note.message),
        "source": source,
        "reportingComponent": source["component"],
        "reportingInstance": source["host"],
        "count": told.count,
        "firstTimestamp": clock.rfc3339(told.first_at),
        "lastTimestamp": clock.rfc3339(told.first_at),
    }
    return msgspec.json.encode(event)


def repeat(told: Told, now: datetime) -> bytes:
    return msgspec.json.encode({"count": told.count, "lastTimestamp": clock.rfc3339(now)})


def shortened(message: str) -> str:
    """Kubernetes takes 1024 characters."""
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 3] + "..."
