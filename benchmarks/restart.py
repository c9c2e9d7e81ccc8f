"""Restart after kill -9: the time from the start of the process to complete and correct answers, and no create sent.

Target for 10,000 records: under 2 s, 0 creates.
"""

import asyncio
import time
from collections.abc import Mapping
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
    "answers_s": "start to first answer, s",
    "correct_s": "start to all correct, s",
    "creates": "creates sent",
    "status_calls": "status calls",
    "is_met": "target met",
}


async def measure(directory: Path, count: int, runs: int, interval_s: float) -> list[dict[str, Any]]:
    async with stage.running(directory, interval_s=interval_s) as scene:
        before = _states(await scene.fill(count))
        return [await _restart(scene, before, run, interval_s) for run in range(1, runs + 1)]


async def _restart(scene: Stage, before: Mapping[str, object], run: int, interval_s: float) -> dict[str, Any]:
    scene.server.kill()
    await scene.plugin.reset()
    started = time.monotonic()
    scene.server.start(is_awaited=False)
    await scene.until(lambda _: True, "the server answers", interval_s=0.002)
    answers_s = time.monotonic() - started
    await scene.until(lambda seen: _states(seen) == before, "all pods are as before the kill")
    correct_s = time.monotonic() - started
    await asyncio.sleep(2 * interval_s)  # a create that should not be sent has time to be
    calls = (await scene.plugin.counts()).calls
    creates = calls.get("create", 0)
    return {
        "pods": len(before),
        "run": run,
        "answers_s": round(answers_s, 2),
        "correct_s": round(correct_s, 2),
        "creates": creates,
        "status_calls": calls.get("status", 0),
        "is_met": correct_s < 2 and creates == 0,
    }


def _states(seen: Changes) -> dict[str, object]:
    """What is told of each pod, without the revision, which belongs to one life of the server."""
    return {
        change.status.uid: (change.status.job_id, [bytes(c) for c in change.status.containers or []], change.has_ended)
        for change in seen.changes
    }


@click.command(help=__doc__)
@pods_option(full=[10_000], quick=[500])
@click.option("--runs", type=int, default=3, show_default=True, help="How often it is killed.")
@directory_option
@interval_option
@output_option
def main(pods: tuple[int, ...], runs: int, directory: Path, interval_s: float, output: str) -> None:
    rows = [row for count in pods for row in asyncio.run(measure(directory, count, runs, interval_s))]
    tables.show(rows, COLUMNS, output=output)


if __name__ == "__main__":
    main()
