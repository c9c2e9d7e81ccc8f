"""What the server does while nothing happens: questions to the plugin per interval, and CPU.

A virtual kubelet waits for news meanwhile. Target: one question whatever the number of pods.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from benchmarks.support import processes, stage
from benchmarks.support.options import directory_option, interval_option, is_quick, output_option, pods_option
from benchmarks.support.stage import Stage
from interlink.cli import tables

COLUMNS = {
    "pods": "pods",
    "seconds": "seconds",
    "status_calls": "status calls",
    "calls_per_round": "calls per interval",
    "pods_per_call": "pods in a call",
    "all_calls": "all calls",
    "cpu_s_in_30_s": "CPU s in 30 s",
    "is_met": "target met",
}


async def measure(directory: Path, count: int, seconds: float, interval_s: float) -> dict[str, Any]:
    async with stage.running(directory, interval_s=interval_s) as scene:
        await scene.fill(count)
        async with _listening(scene):
            await asyncio.sleep(2 * interval_s)
            return await _idle(scene, count, seconds, interval_s)


async def _idle(scene: Stage, count: int, seconds: float, interval_s: float) -> dict[str, Any]:
    await scene.plugin.reset()
    cpu_before, started = processes.cpu_s(scene.server.pid), time.monotonic()
    await asyncio.sleep(seconds)
    counts, took_s = await scene.plugin.counts(), time.monotonic() - started
    cpu_s = processes.cpu_s(scene.server.pid) - cpu_before
    asked = counts.calls.get("status", 0)
    per_round = asked / (took_s / interval_s)
    return {
        "pods": count,
        "seconds": round(took_s, 1),
        "status_calls": asked,
        "calls_per_round": round(per_round, 2),
        "pods_per_call": counts.asked,
        "all_calls": sum(counts.calls.values()),
        "cpu_s_in_30_s": round(cpu_s * 30 / took_s, 2),
        "is_met": per_round < 1.1 and counts.asked == count,
    }


@contextlib.asynccontextmanager
async def _listening(scene: Stage) -> AsyncIterator[None]:
    async def listen() -> None:
        seen = await scene.remote.changes("", 0, pods=(), wait_s=0)
        while True:
            seen = await scene.remote.changes(seen.epoch, seen.revision, pods=(), wait_s=30)

    listener = asyncio.create_task(listen(), name="virtual-kubelet")
    try:
        yield
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


@click.command(help=__doc__)
@pods_option(full=[1, 100, 10_000], quick=[1, 100])
@click.option("--seconds", type=float, default=6.0 if is_quick() else 30.0, show_default=True)
@directory_option
@interval_option
@output_option
def main(pods: tuple[int, ...], seconds: float, directory: Path, interval_s: float, output: str) -> None:
    rows = [asyncio.run(measure(directory, count, seconds, interval_s)) for count in pods]
    tables.show(rows, COLUMNS, output=output)


if __name__ == "__main__":
    main()
