"""Resident memory of the server that holds so many running pods, after several rounds of questions.

Target: under 80 MB and 30 KB for each pod.
"""

import asyncio
from pathlib import Path
from typing import Any

import click

from benchmarks.support import processes, stage
from benchmarks.support.options import directory_option, output_option, pods_option
from interlink.cli import tables

COLUMNS = {
    "pods": "pods",
    "resident_mb": "resident, MB",
    "peak_mb": "peak, MB",
    "per_pod_kb": "more than with 0 pods, KB a pod",
    "restarted_mb": "after a restart, MB",
    "limit_mb": "limit, MB",
    "is_met": "target met",
}
INTERVAL_S = 0.5
ROUNDS = 6


async def measure(directory: Path, count: int) -> dict[str, Any]:
    async with stage.running(directory, interval_s=INTERVAL_S) as scene:
        await scene.fill(count)
        await asyncio.sleep(ROUNDS * INTERVAL_S)
        used = processes.memory(scene.server.pid)
        scene.server.restart()
        await asyncio.sleep(ROUNDS * INTERVAL_S)
        restarted = processes.memory(scene.server.pid)
        limit_mb = 80 + count * 0.03
        return {
            "pods": count,
            "resident_mb": round(used.resident_mb, 1),
            "peak_mb": round(used.peak_mb, 1),
            "restarted_mb": round(restarted.resident_mb, 1),
            "limit_mb": round(limit_mb, 1),
            "is_met": max(used.resident_mb, restarted.resident_mb) < limit_mb,
        }


def with_share_of_a_pod(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    empty_mb = next((row["resident_mb"] for row in rows if row["pods"] == 0), None)

    def per_pod_kb(row: dict[str, Any]) -> float | None:
        if empty_mb is None or row["pods"] == 0:
            return None
        return round(float(row["resident_mb"] - empty_mb) * 1000 / int(row["pods"]), 1)

    return [row | {"per_pod_kb": per_pod_kb(row)} for row in rows]


@click.command(help=__doc__)
@pods_option(full=[0, 1_000, 10_000], quick=[0, 500])
@directory_option
@output_option
def main(pods: tuple[int, ...], directory: Path, output: str) -> None:
    rows = [asyncio.run(measure(directory, count)) for count in pods]
    tables.show(with_share_of_a_pod(rows), COLUMNS, output=output)


if __name__ == "__main__":
    main()
