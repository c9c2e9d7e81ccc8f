"""All jobs end at once: how long until a virtual kubelet that waits for news has been told of each.

The time of a job begins when the plugin would tell it and includes the wait for the next question, the terminal state
made durable, and the long poll.
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.support import stage
from benchmarks.support.options import directory_option, interval_option, output_option, pods_option
from benchmarks.support.stage import Stage
from interlink.cli import tables
from interlink.wire.messages import Changes

COLUMNS = {
    "pods": "pods",
    "run": "run",
    "first_s": "first, s",
    "p50_s": "p50, s",
    "p99_s": "p99, s",
    "last_s": "last, s",
    "polls": "polls",
    "interval_s": "interval, s",
}
WITHIN_S = 300


async def measure(directory: Path, count: int, run: int, interval_s: float) -> dict[str, Any]:
    async with stage.running(directory, interval_s=interval_s) as scene:
        seen = await scene.fill(count)
        await asyncio.sleep(interval_s * (1 + run / 4))  # at another place in the interval each time
        await scene.plugin.end_all_jobs()
        times_s, polls = await _told(scene, seen, count)
        return {
            "pods": count,
            "run": run,
            "first_s": round(times_s[0], 2),
            "p50_s": round(times_s[len(times_s) // 2], 2),
            "p99_s": round(times_s[len(times_s) * 99 // 100], 2),
            "last_s": round(times_s[-1], 2),
            "polls": polls,
            "interval_s": interval_s,
        }


async def _told(scene: Stage, seen: Changes, count: int) -> tuple[list[float], int]:
    """When the end of each pod's job was told, sorted, and the number of answers that told them."""
    ended = time.monotonic()
    times_s: dict[str, float] = {}
    polls = 0
    async with asyncio.timeout(WITHIN_S):
        while len(times_s) < count:
            seen = await scene.remote.changes(seen.epoch, seen.revision, pods=(), wait_s=30)
            moment_s, polls = time.monotonic() - ended, polls + 1
            times_s |= {change.status.uid: moment_s for change in seen.changes if change.has_ended}
    return sorted(times_s.values()), polls


@click.command(help=__doc__)
@pods_option(full=[1_000, 10_000], quick=[200])
@click.option("--runs", type=int, default=3, show_default=True)
@directory_option
@interval_option
@output_option
def main(pods: tuple[int, ...], runs: int, directory: Path, interval_s: float, output: str) -> None:
    rows = [asyncio.run(measure(directory, n, run, interval_s)) for n in pods for run in range(1, runs + 1)]
    tables.show(rows, COLUMNS, output=output)


if __name__ == "__main__":
    main()
