"""The cache deleted under kill -9: the time until a virtual kubelet's announcement has rebuilt it, and what it costs.

Target for 10,000 pods: under 10 s from the start of the process, at most 20 calls of the plugin, 0 creates.
"""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.support import pods as fleet
from benchmarks.support import stage
from benchmarks.support.options import directory_option, interval_option, output_option, pods_option
from benchmarks.support.stage import Stage, count_running
from interlink.cli import tables

COLUMNS = {
    "pods": "pods",
    "announced_s": "announcement, s",
    "rebuilt_s": "start to all running, s",
    "on_disk": "records on disk",
    "plugin_calls": "plugin calls",
    "creates": "creates sent",
    "is_met": "target met",
}


async def measure(directory: Path, count: int, interval_s: float) -> dict[str, Any]:
    async with stage.running(directory, interval_s=interval_s) as scene:
        await scene.fill(count)
        scene.server.kill()
        shutil.rmtree(scene.cache)
        await scene.plugin.reset()
        return await _rebuild(scene, count)


async def _rebuild(scene: Stage, count: int) -> dict[str, Any]:
    known = fleet.many(count)
    started = time.monotonic()
    scene.server.start(is_awaited=False)
    await scene.until(lambda _: True, "the server answers")
    announcing = time.monotonic()
    await scene.announce(known)
    announced_s = time.monotonic() - announcing
    await scene.until(lambda seen: count_running(seen) == count, "all pods are running again")
    rebuilt_s = time.monotonic() - started
    calls = (await scene.plugin.counts()).calls
    return {
        "pods": count,
        "announced_s": round(announced_s, 2),
        "rebuilt_s": round(rebuilt_s, 2),
        "on_disk": sum(1 for _ in scene.cache.glob("*.yaml")),
        "plugin_calls": sum(calls.values()),
        "creates": calls.get("create", 0),
        "is_met": rebuilt_s < 10 and sum(calls.values()) <= 20 and "create" not in calls,
    }


@click.command(help=__doc__)
@pods_option(full=[10_000], quick=[500])
@directory_option
@interval_option
@output_option
def main(pods: tuple[int, ...], directory: Path, interval_s: float, output: str) -> None:
    rows = [asyncio.run(measure(directory, count, interval_s)) for count in pods]
    tables.show(rows, COLUMNS, output=output)


if __name__ == "__main__":
    main()
