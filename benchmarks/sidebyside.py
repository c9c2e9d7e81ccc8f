"""Implementations of the wire contract side by side: the same work on a real control plane, one after the other.

Ours by default; another one is given by its two commands, which are configured by the existing configuration files and
environment variables (INTERLINKCONFIGPATH, CONFIGPATH, NODENAME, KUBECONFIG, KUBELET_PORT, POD_IP). A measuring plugin
counts what it is asked. One table, one picture; every row is of one run with the same API server.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import click

from benchmarks.support import apiserver, chart, contestants
from benchmarks.support.apiserver import Observer
from benchmarks.support.contestants import OURS, Commands, Contestant
from benchmarks.support.options import directory_option, is_quick, output_option, pods_option
from benchmarks.support.stage import Plugin
from interlink.cli import tables
from interlink.kube import credentials, paths
from interlink.kube.client import KubeClient
from interlink.model.pods import Seen
from interlink.testing.controlplane import ControlPlane
from interlink.testing.waiting import until_async

COLUMNS = {"what": "what", "pods": "pods"}
_WITHIN_S = 1200.0
_QUIET_WITHIN_S = 120.0


class Run:
    """One implementation with so many pods; `rows` is what was measured."""

    def __init__(self, contestant: Contestant, client: KubeClient, plugin: Plugin, count: int, idle_s: float) -> None:
        self._contestant = contestant
        self._client = client
        self._plugin = plugin
        self._count = count
        self._idle_s = idle_s
        self._namespace = f"{contestant.node}-{count}"
        self._observer = Observer(client, self._namespace)
        self.rows: dict[str, Any] = {}

    async def measure(self) -> dict[str, Any]:
        await apiserver.create_namespace(self._client, self._namespace)
        watching = asyncio.create_task(self._observer.reflector.run())
        try:
            await self._create()
            await self._idle("idle")
            for name in ("virtual kubelet", "server", "plugin"):
                await self._survive(name)
            await self._end()
            await self._delete()
        finally:
            watching.cancel()
        doubled = (await self._plugin.counts()).doubled
        self.rows |= {"jobs submitted twice": doubled, **_flat(self._contestant.used())}
        return self.rows

    async def _create(self) -> None:
        await apiserver.create_pods(self._client, self._namespace, self._contestant.node, self._count)
        await self._plugin.reset()
        calls = await apiserver.calls(self._client)
        began = time.monotonic()
        self._contestant.start("virtual kubelet")
        await self._until(lambda: len(self._observer.job_id), "JobID on all")
        self.rows["bound -> JobID on all, s"] = round(max(self._observer.job_id.values()) - began, 2)
        await self._until(lambda: len(self._observer.running), "all Running")
        self.rows["bound -> Running on all, s"] = round(max(self._observer.running.values()) - began, 2)
        self.rows["JobIDs per second"] = _rate(list(self._observer.job_id.values()))
        self.rows["create: plugin calls"] = _text((await self._plugin.counts()).calls)
        self.rows["create: API calls"] = _text(apiserver.difference(calls, await apiserver.calls(self._client)))

    async def _idle(self, what: str) -> None:
        """Idle is who has told all events, which are written behind everything else."""
        await asyncio.sleep(5)
        await until_async(self._is_quiet, deadline_s=_QUIET_WITHIN_S, interval_s=0.5)
        await self._plugin.reset()
        calls, cpu_s = await apiserver.calls(self._client), self._contestant.cpu_s()
        await asyncio.sleep(self._idle_s)
        self.rows[f"{what} {self._idle_s:.0f} s: plugin calls"] = sum((await self._plugin.counts()).calls.values())
        self.rows[f"{what} {self._idle_s:.0f} s: CPU of server and virtual kubelet, s"] = round(
            self._contestant.cpu_s() - cpu_s, 2
        )
        self.rows[f"{what} {self._idle_s:.0f} s: API calls"] = _text(
            apiserver.difference(calls, await apiserver.calls(self._client))
        )

    async def _is_quiet(self) -> bool:
        before = await apiserver.calls(self._client)
        await asyncio.sleep(2)
        return not apiserver.difference(before, await apiserver.calls(self._client)).get("POST events")

    async def _survive(self, name: str) -> None:
        """Works again when a new pod runs; creates beside that pod's are work done twice."""
        await self._plugin.reset()
        began = self._contestant.restart(name)
        known = set(self._observer.running)
        probe = name.replace(" ", "-")
        await apiserver.create_pods(self._client, self._namespace, self._contestant.node, 1, prefix=f"probe-{probe}-")
        await until_async(lambda: _done(set(self._observer.running) - known), deadline_s=_WITHIN_S, interval_s=0.01)
        self.rows[f"{name} killed -> a new pod runs, s"] = round(time.monotonic() - began, 2)
        creates = (await self._plugin.counts()).calls.get("create", 0)
        self.rows[f"{name} killed: creates beside the new pod's"] = max(0, creates - 1)
        await self._idle(f"after {name}:")

    async def _end(self) -> None:
        began = time.monotonic()
        await self._plugin.end_all_jobs()
        await self._until(lambda: len(self._observer.ended), "all phases published", is_needed=False)
        lags = sorted(moment - began for moment in self._observer.ended.values())
        left = len(self._observer.reflector.pods) - len(lags)
        self.rows["ended -> published, p50, s"] = round(lags[len(lags) // 2], 2) if lags else None
        self.rows["ended -> published, p99, s"] = round(lags[len(lags) * 99 // 100], 2) if lags else None
        self.rows["ended, never published"] = left

    async def _delete(self) -> None:
        began = time.monotonic()

        async def delete(seen: Seen) -> None:
            path = paths.pod(self._namespace, seen.pod.metadata.name)
            await self._client.delete(path, uid=seen.pod.uid, grace_s=5)

        await apiserver.in_parallel(iter(list(self._observer.reflector.pods.values())), delete)
        await until_async(lambda: _done(not self._observer.reflector.pods), deadline_s=_WITHIN_S, interval_s=0.01)
        self.rows["all deleted, s"] = round(time.monotonic() - began, 2)

    async def _until(self, count: Callable[[], int], what: str, *, is_needed: bool = True) -> None:
        click.echo(f"  {self._namespace}: waiting for {what}", err=True)
        wanted = len(self._observer.reflector.pods) or self._count
        is_done = await until_async(lambda: _done(count() >= wanted), deadline_s=_WITHIN_S, interval_s=0.01)
        if is_needed and not is_done:
            raise click.ClickException(f"{self._namespace}: not within {_WITHIN_S:.0f} s: {what}")


async def _done(value: object) -> bool:
    return bool(value)


def _rate(moments: list[float]) -> float:
    span = max(moments) - min(moments)
    return round(len(moments) / span) if span else float(len(moments))


def _text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {number}" for kind, number in sorted(counts.items()) if number)


def _flat(used: dict[str, dict[str, float]]) -> dict[str, Any]:
    return {
        **{f"{name}: CPU, s": numbers["cpu_s"] for name, numbers in used.items()},
        **{f"{name}: peak memory, MB": numbers["peak_mb"] for name, numbers in used.items()},
    }


@contextlib.asynccontextmanager
async def _client(cluster: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient(credentials.load(cluster.kubeconfig)) as client:
        yield client


async def _bare(cluster: ControlPlane, count: int) -> float:
    """What the API server takes from a client with nothing behind it."""
    async with _client(cluster) as client:
        namespace = f"bare-{count}"
        await apiserver.create_namespace(client, namespace)
        await apiserver.create_pods(client, namespace, "", count)
        return await apiserver.bare_writes_per_s(client, namespace)


async def measure(
    directory: Path, commands: list[Commands], counts: list[int], *, idle_s: float
) -> dict[tuple[int, str], dict[str, Any]]:
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for count in counts:
        for one in commands:
            with (
                tempfile.TemporaryDirectory(prefix="interlink-bench-", dir=directory) as folder,
                ControlPlane() as cluster,
                contestants.started(one, Path(folder) / "programs", cluster) as contestant,
            ):
                bare = await _bare(cluster, count)
                async with _client(cluster) as client, contestant.plugin() as plugin:
                    await until_async(plugin.is_up, deadline_s=30)
                    rows = await Run(contestant, client, plugin, count, idle_s).measure()
                rows["bare client, same writes per second"] = round(bare)
                rows["JobIDs per second / bare"] = round(rows["JobIDs per second"] / bare, 2)
                found[count, one.name] = rows
    return found


@click.command(help=__doc__)
@click.option("--server", "servers", multiple=True, help="Another server's command; may be repeated.")
@click.option("--virtual-kubelet", "kubelets", multiple=True, help="The virtual kubelet that goes with it.")
@click.option("--name", "names", multiple=True, help="What to call it.")
@click.option("--without-ours", is_flag=True, help="Measure only the others.")
@click.option("--idle", "idle_s", type=float, default=2.0 if is_quick() else 30.0, help="Seconds of each idle phase.")
@click.option("--picture", type=click.Path(path_type=Path), help="Write the picture (SVG) here.")
@pods_option(full=[50, 1_000, 10_000], quick=[20])
@directory_option
@output_option
def main(
    servers: tuple[str, ...],
    kubelets: tuple[str, ...],
    names: tuple[str, ...],
    without_ours: bool,
    idle_s: float,
    picture: Path | None,
    pods: tuple[int, ...],
    directory: Path,
    output: str,
) -> None:
    if not len(servers) == len(kubelets) == len(names):
        raise click.UsageError(
            "--server, --virtual-kubelet and --name belong together: give each as often as the others"
        )
    others = [Commands(*row) for row in zip(names, servers, kubelets, strict=True)]
    commands = others if without_ours else [OURS, *others]
    found = asyncio.run(measure(directory, commands, list(pods), idle_s=idle_s))
    labels = [one.name for one in commands]
    whats = {(count, what): None for (count, _), rows in found.items() for what in rows}
    table = [
        {"pods": count, "what": what, **{label: found[count, label].get(what) for label in labels}}
        for count, what in whats
    ]
    tables.show(table, COLUMNS | dict(zip(labels, labels, strict=True)), output=output)
    if picture is not None:
        picture.write_text(chart.svg(table, labels))
        click.echo(f"picture: {picture}", err=True)


if __name__ == "__main__":
    main()
