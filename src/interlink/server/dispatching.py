"""All calls to the plugin: measured, and not made while it fails again and again."""

import contextlib
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence

from interlink.model.ids import JobID, PodUID
from interlink.model.pods import Pod
from interlink.sdk.client import PluginClient, Statuses
from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, Rejected, Unreachable
from interlink.server import metrics
from interlink.server.breaker import Breaker
from interlink.wire.messages import ContainerUsage, Job, LogRequest, Refresh, RetrievedPodData

_SITE_HOLDS_S = 60.0
_ANSWERING_S = 10.0


class Dispatcher:
    """The plugin as the server sees it. Errors are those of `interlink.sdk.errors`."""

    def __init__(self, plugin: PluginClient, breaker: Breaker) -> None:
        self._plugin = plugin
        self._breaker = breaker
        self.speaks_our_dialect = True
        """Until it has answered a question of ours with 'not found'."""
        self._answered_at = -math.inf
        self._site: tuple[float, bytes] = (-math.inf, b"")

    @property
    def trouble(self) -> str:
        return f"the plugin is {self._breaker.reason}" if self._breaker.is_open else ""

    async def create(self, request: RetrievedPodData, *, session: str) -> JobID:
        with self._call("create"):
            return await self._plugin.create(request, session=session)

    async def delete(self, pod: bytes, *, session: str) -> None:
        with self._call("delete"):
            await self._plugin.delete(pod, session=session)

    async def status(self, pods: Sequence[Pod], *, tag: str = "", wait_s: int = 0) -> Statuses:
        """Measured by itself when it may wait for news."""
        with self._call("news" if tag else "status"):
            return await self._plugin.status(pods, tag=tag, wait_s=wait_s)

    async def jobs(self) -> list[Job]:
        """Every job of ours at the batch system; NotFound from a plugin that has no such question."""
        try:
            with self._call("jobs"):
                found = await self._plugin.jobs()
        except (NotFound, Rejected):
            self.speaks_our_dialect = False
            raise
        self.speaks_our_dialect = True
        return found

    async def ping(self) -> bytes:
        """What it says of its site; while it answers other questions, and so lives, that holds for a minute."""
        now = time.monotonic()
        asked_at, answer = self._site
        if now - asked_at < _SITE_HOLDS_S and now - self._answered_at < _ANSWERING_S:
            return answer
        with self._call("ping"):
            answer = await self._plugin.ping()
        self._site = (now, answer)
        return answer

    async def refresh(self, message: Refresh) -> None:
        """Not guarded, as `logs`."""
        await self._plugin.refresh(message)

    async def usage(self, pods: Sequence[PodUID]) -> list[ContainerUsage]:
        """Not guarded, as `logs`; nothing from a plugin that has no such question."""
        try:
            return await self._plugin.usage(pods)
        except NotFound:
            return []

    @contextlib.asynccontextmanager
    async def logs(self, request: LogRequest, *, session: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Not guarded: a log that cannot be read says nothing of the plugin."""
        async with self._plugin.logs(request, session=session) as chunks:
            yield chunks

    @contextlib.contextmanager
    def _call(self, name: str) -> Iterator[None]:
        refusal = self._breaker.refusal()
        if refusal:
            raise Unreachable(f"the plugin is {refusal}")
        started = time.monotonic()
        outcome = "cancelled"
        try:
            yield
            outcome = "ok"
        except (Rejected, Refused, NotFound):
            outcome = "refused"
            raise
        except (Unreachable, OutcomeUnknown) as error:
            outcome = "failed"
            self._answered_at = -math.inf
            self._breaker.failed(str(error))
            raise
        finally:
            if outcome in ("ok", "refused"):
                self._breaker.succeeded()
                if name != "ping":
                    self._answered_at = time.monotonic()
            elif outcome == "cancelled":
                self._breaker.gave_up()
            metrics.PLUGIN_CALLS.labels(name, outcome).observe(time.monotonic() - started)
            metrics.BREAKER.set(self._breaker.is_open)
