"""Creates per second, with so many under way at once, beside what the disk itself can do in the same run.

A create is two durable writes, the intent and the job id, and a call of the plugin between them. The disk's own rate
is that of writing a file of a record's size, fsync, rename, fsync of the directory, by as many threads.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.support import disk, processes, stage
from benchmarks.support import pods as fleet
from benchmarks.support.options import directory_option, output_option, pods_option
from benchmarks.support.stage import Stage
from interlink.cli import tables

COLUMNS = {
    "at_once": "at once",
    "creates": "creates",
    "creates_per_s": "creates/s",
    "writes_per_s": "disk, durable writes/s",
    "ratio": "durable writes of the server / disk",
    "cpu_ms": "CPU of the server, ms a create",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
}


async def measure(directory: Path, levels: list[int], count: int) -> list[dict[str, Any]]:
    async with stage.running(directory) as scene:
        numbers = iter(range(10_000_000))
        await _create(scene, numbers, at_once=8, count=100)  # connections and code are warm
        return [await _level(scene, numbers, at_once, min(count, 250 * at_once)) for at_once in levels]


async def _level(scene: Stage, numbers: Iterator[int], at_once: int, count: int) -> dict[str, Any]:
    size_bytes = next(scene.cache.glob("*.yaml")).stat().st_size
    folder = scene.cache.parent / f"disk-{at_once}"
    writes_per_s = await asyncio.to_thread(
        disk.durable_writes_per_s, folder, at_once=at_once, count=2 * count, size_bytes=size_bytes
    )
    cpu_before, started = processes.cpu_s(scene.server.pid), time.monotonic()
    times_s = sorted(await _create(scene, numbers, at_once=at_once, count=count))
    creates_per_s = count / (time.monotonic() - started)
    cpu_s = processes.cpu_s(scene.server.pid) - cpu_before
    return {
        "at_once": at_once,
        "creates": count,
        "creates_per_s": round(creates_per_s),
        "writes_per_s": round(writes_per_s),
        "ratio": round(2 * creates_per_s / writes_per_s, 2),
        "cpu_ms": round(1000 * cpu_s / count, 2),
        "p50_ms": round(1000 * times_s[len(times_s) // 2], 1),
        "p99_ms": round(1000 * times_s[len(times_s) * 99 // 100], 1),
    }


async def _create(scene: Stage, numbers: Iterator[int], *, at_once: int, count: int) -> list[float]:
    """The time that each took."""
    wanted = iter([next(numbers) for _ in range(count)])
    times_s: list[float] = []

    async def work() -> None:
        for number in wanted:
            [pod] = fleet.many(1, start=number, have_jobs=False)
            started = time.monotonic()
            await scene.remote.create(fleet.request(number), pod)
            times_s.append(time.monotonic() - started)

    async with asyncio.TaskGroup() as workers:
        for _ in range(at_once):
            workers.create_task(work())
    return times_s


@click.command(help=__doc__)
@click.option("--at-once", type=click.IntRange(min=1), multiple=True, default=[1, 8, 64], help="May be repeated.")
@pods_option(full=[3_000], quick=[200], help_="Creates for each level, at most 250 for each that is under way.")
@directory_option
@output_option
def main(at_once: tuple[int, ...], pods: tuple[int, ...], directory: Path, output: str) -> None:
    rows = [row for count in pods for row in asyncio.run(measure(directory, list(at_once), count))]
    tables.show(rows, COLUMNS, output=output)


if __name__ == "__main__":
    main()
