"""What is measured: a real server and the measuring plugin as processes, and a virtual kubelet's view of the server."""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.support import pods
from benchmarks.support.measuring_plugin import Counts
from interlink.kubelet.dialects.own import Remote
from interlink.model.pods import Pod
from interlink.sdk.addresses import Address
from interlink.sdk.errors import SDKError
from interlink.sdk.transport import Link
from interlink.testing import ports
from interlink.testing.daemons import Daemon
from interlink.testing.programs import Program, Programs
from interlink.testing.waiting import until_async
from interlink.wire.messages import Changes

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 300


class Plugin:
    """The measuring plugin, asked for its counts and told to end its jobs."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def counts(self) -> Counts:
        return msgspec.json.decode(await self._call("GET", "/bench/counts"), type=Counts)

    async def reset(self) -> None:
        await self._call("POST", "/bench/reset")

    async def end_all_jobs(self) -> None:
        await self._call("POST", "/bench/end")

    async def is_up(self) -> bool:
        try:
            await self.counts()
        except SDKError:
            return False
        return True

    async def _call(self, method: str, path: str) -> bytes:
        return await self._link.call(method, path, None, timeout_s=30)


class Stage:
    def __init__(self, programs: Programs, plugin: Plugin, remote: Remote) -> None:
        self.server: Program = programs.server
        self.cache: Path = programs.cache
        self.plugin = plugin
        self.remote = remote

    async def announce(self, known: Sequence[Pod]) -> None:
        """As a virtual kubelet that starts: what the server has first, then the complete list."""
        seen = await self.remote.changes("", 0, pods=(), wait_s=0)
        await self.remote.announce(known, epoch=seen.epoch, revision=seen.revision)

    async def fill(self, count: int) -> Changes:
        """A server that knows so many running pods."""
        await self.announce(pods.many(count))
        return await self.until(lambda seen: count_running(seen) == count, f"{count} pods are running")

    async def until(self, check: Callable[[Changes], bool], what: str, *, interval_s: float = 0.01) -> Changes:
        """All that the server has to tell, once it passes the check. A server that is away is asked again."""
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            with contextlib.suppress(SDKError):
                seen = await self.remote.changes("", 0, pods=(), wait_s=0)
                if check(seen):
                    return seen
            await asyncio.sleep(interval_s)
        raise TimeoutError(f"not within {WITHIN_S} s: {what}; end of the server's log:\n{self.server.tail()}")


def count_running(seen: Changes) -> int:
    return sum(b'"running"' in bytes(c) for change in seen.changes for c in change.status.containers or [])


@contextlib.asynccontextmanager
async def running(directory: Path, *, interval_s: float = 2.0) -> AsyncIterator[Stage]:
    """Both processes up, the cache empty; leaving the context ends them and removes what they wrote."""
    with tempfile.TemporaryDirectory(prefix="interlink-bench-", dir=directory) as name:
        port = ports.free()
        daemon = _plugin_daemon(Path(name), port)
        programs = Programs(Path(name), plugin_port=port, status_interval_s=interval_s)
        links = [_link(port, "plugin"), _link(programs.server_port, "server")]
        plugin = Plugin(links[0])
        try:
            daemon.start()
            await until_async(plugin.is_up, deadline_s=30, interval_s=0.01)
            daemon.check()
            programs.start()
            yield Stage(programs, plugin, Remote(links[1], pods.OWNER, may_act=lambda: None))
        finally:
            for link in links:
                await link.close()
            programs.stop()
            daemon.stop()


def _plugin_daemon(folder: Path, port: int) -> Daemon:
    argv = [sys.executable, "-m", "benchmarks.support.measuring_plugin", "--port", str(port)]
    return Daemon(argv, log=folder / "plugin.log", environ={"PYTHONPATH": str(ROOT)})


def _link(port: int, peer: str) -> Link:
    return Link(Address(scheme="http", host="127.0.0.1", port=port), peer=peer)
