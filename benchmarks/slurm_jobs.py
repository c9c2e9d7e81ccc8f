"""Pods through the plugin on a real Slurm, beside bare `sbatch` in the same run.

Submissions a second by so many at a time, each after a look-up by tag and with durable notes, against as many `sbatch`
processes that do nothing else; then Slurm's commands a minute while all wait, the memory of the plugin, and how long it
takes from the end of a job to its status at an interval of two seconds. Beside that, what the runner adds to a job.
"""

import asyncio
import contextlib
import itertools
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from msgspec import Raw

from benchmarks.support import processes
from benchmarks.support.options import output_option, pods_option
from interlink.cli import tables
from interlink.model.ids import PodUID, Tag
from interlink.model.pods import Pod
from interlink.sdk.addresses import Address
from interlink.sdk.batch import preparing, runners
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.runtimes.none import HostProcesses
from interlink.sdk.transport import Link
from interlink.testing.errors import UnavailableError
from interlink.testing.programs import Program, Programs
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until_async
from interlink.wire import codec
from interlink.wire.messages import RetrievedPodData

AT_ONCE = 16
INTERVAL_S = 2.0
WATCHED_S = 20.0
ENDING = 50
COLUMNS = {
    "pods": "pods",
    "submits_per_s": "submissions/s",
    "sbatch_per_s": "bare sbatch/s, as many at a time",
    "ratio": "ratio",
    "sbatch_one_by_one_per_s": "bare sbatch/s, one by one",
    "ratio_one_by_one": "ratio",
    "cpu_ms_per_create": "CPU of the plugin, ms a create",
    "runner_start_ms": "start of a job's program by the runner, ms",
    "shell_start_ms": "by a bare sh, ms",
    "runner_cpu_ms": "CPU of a runner for a job that does nothing, ms",
    "runner_mb": "memory of a runner, MB",
    "shell_mb": "of a bare sh, MB",
    "commands_per_minute": "Slurm commands/minute",
    "end_p50_s": "end to status p50, s",
    "end_p99_s": "p99, s",
    "resident_mb": "memory of the plugin, MB",
    "cpu_ms_per_poll": "CPU of the plugin, ms a poll",
}


class Scene:
    def __init__(self, site: SlurmSite, plugin: Program, link: Link) -> None:
        self.site = site
        self.plugin = plugin
        self._link = link

    async def create(self, script: str, *, flags: str = "") -> str:
        uid = str(uuid.uuid4())
        metadata = {"name": "p", "namespace": "ns", "uid": uid, "annotations": {"slurm-job.vk.io/flags": flags}}
        container = {"name": "c", "image": "none", "command": ["sh", "-c", script]}
        pod = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
        await self._call("/create", {"pod": pod, "interlink": {"cluster": "bench", "node": "vk"}})
        return uid

    async def statuses(self, uids: list[str]) -> list[dict[str, Any]]:
        containers = [{"name": "c"}]
        pods = [
            {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": {"containers": containers}}
            for uid in uids
        ]
        found: list[dict[str, Any]] = json.loads(await self._call("/status", pods))
        return found

    async def commands(self) -> float:
        text = (await self._link.call("GET", "/metrics", None, timeout_s=30)).decode()
        return sum(
            float(line.split()[-1]) for line in text.splitlines() if line.startswith("interlink_slurm_commands_total")
        )

    async def _call(self, path: str, body: object) -> bytes:
        return await self._link.call("POST", path, json.dumps(body).encode(), timeout_s=120)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="interlink-bench-") as folder, SlurmSite(nodes=4) as site:
        programs = Programs(Path(folder), site=site, plugin_keys={"UseAccounting": False})
        link = Link(Address(scheme="http", host="127.0.0.1", port=programs.plugin_port), peer="plugin")
        try:
            programs.plugin.start()
            yield Scene(site, programs.plugin, link)
        finally:
            await link.close()
            programs.plugin.stop()


async def measure(count: int) -> dict[str, Any]:
    async with running() as scene:
        await at_once(AT_ONCE, lambda: scene.create("true", flags="--hold"))  # connections and code are warm
        script = scene.site.folder / "bare.sh"
        script.write_text("#!/bin/sh\ntrue\n")
        sbatch_per_s = await rate(count, lambda: bare_sbatch(scene.site, script))
        one_by_one_per_s = await rate(count // 4, lambda: bare_sbatch(scene.site, script), workers=1)
        scene.site.cancel_all()
        uids: list[str] = []

        async def create() -> None:
            uids.append(await scene.create("true", flags="--hold"))

        cpu_s = processes.cpu_s(scene.plugin.pid)
        submits_per_s = await rate(count, create)
        cpu_s = processes.cpu_s(scene.plugin.pid) - cpu_s
        polls = await watch(scene, uids)
        ends = await end_latencies(scene, min(ENDING, count))
        memory = processes.memory(scene.plugin.pid)
        return {
            "pods": count,
            "submits_per_s": round(submits_per_s, 1),
            "sbatch_per_s": round(sbatch_per_s, 1),
            "ratio": round(submits_per_s / sbatch_per_s, 2),
            "sbatch_one_by_one_per_s": round(one_by_one_per_s, 1),
            "ratio_one_by_one": round(submits_per_s / one_by_one_per_s, 2),
            "cpu_ms_per_create": round(1000 * cpu_s / count, 1),
            **await asyncio.to_thread(runner_overhead),
            **polls,
            "end_p50_s": round(ends[len(ends) // 2], 2),
            "end_p99_s": round(ends[len(ends) * 99 // 100], 2),
            "resident_mb": round(memory.resident_mb),
        }


async def bare_sbatch(site: SlurmSite, script: Path) -> None:
    argv = ["sbatch", "--parsable", "--hold", "--output=/dev/null", str(script)]
    process = await asyncio.create_subprocess_exec(*argv, env=site.environ, stdout=asyncio.subprocess.DEVNULL)
    if await process.wait() != 0:
        raise RuntimeError("sbatch failed")


async def rate(count: int, act: Any, *, workers: int = AT_ONCE) -> float:
    started = time.monotonic()
    await at_once(count, act, workers=workers)
    return count / (time.monotonic() - started)


async def at_once(count: int, act: Any, *, workers: int = AT_ONCE) -> None:
    numbers = itertools.count()

    async def work() -> None:
        while next(numbers) < count:
            await act()

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


async def watch(scene: Scene, uids: list[str]) -> dict[str, float]:
    """What an idle plugin costs while the server asks about all pods every interval."""
    commands, cpu_s, started = await scene.commands(), processes.cpu_s(scene.plugin.pid), time.monotonic()
    polls = 0
    while time.monotonic() - started < WATCHED_S:
        found = await scene.statuses(uids)
        if len(found) != len(uids):
            raise RuntimeError(f"{len(found)} of {len(uids)} pods have a status")
        polls += 1
        await asyncio.sleep(INTERVAL_S)
    minutes = (time.monotonic() - started) / 60
    return {
        "commands_per_minute": round((await scene.commands() - commands) / minutes),
        "cpu_ms_per_poll": round(1000 * (processes.cpu_s(scene.plugin.pid) - cpu_s) / polls),
    }


async def end_latencies(scene: Scene, count: int) -> list[float]:
    """From the end that a job's record has to the answer that tells it, sorted."""
    uids = [await scene.create("sleep $(( $$ % 4 + 3 ))") for _ in range(count)]
    found: dict[str, float] = {}

    async def are_told() -> bool:
        for status in await scene.statuses([uid for uid in uids if uid not in found]):
            ended = status["containers"][0]["state"].get("terminated")
            if ended:
                found[status["UID"]] = time.time() - datetime.fromisoformat(ended["finishedAt"]).timestamp()
        return len(found) == len(uids)

    if not await until_async(are_told, deadline_s=120, interval_s=INTERVAL_S):
        raise TimeoutError(f"{len(found)} of {count} jobs ended")
    return sorted(found.values())


def runner_overhead(rounds: int = 10) -> dict[str, float]:
    """What the runner adds to a job, beside the same program under a bare `sh`; medians."""
    runner_ms, shell_ms, cpu_ms = [], [], []
    with tempfile.TemporaryDirectory(prefix="interlink-bench-") as folder:
        for number in range(rounds):
            argv = prepared(Path(folder) / f"uid-{number}", ["date", "+%s%N"])
            began, used = time.time_ns(), children_cpu_s()
            subprocess.run(argv, check=True)
            cpu_ms.append(1000 * (children_cpu_s() - used))
            line = (Path(folder) / f"uid-{number}" / "logs" / "c" / "0.log").read_text()
            runner_ms.append((int(line.split()[-1]) - began) / 1e6)
            began = time.time_ns()
            done = subprocess.run(["sh", "-c", "date +%s%N; :"], check=True, capture_output=True)
            shell_ms.append((int(done.stdout) - began) / 1e6)
        runner_mb = resident_mb(prepared(Path(folder) / "uid-idle", ["sleep", "5"]))
    return {
        "runner_start_ms": round(statistics.median(runner_ms)),
        "shell_start_ms": round(statistics.median(shell_ms)),
        "runner_cpu_ms": round(statistics.median(cpu_ms)),
        "runner_mb": round(runner_mb, 1),
        "shell_mb": round(resident_mb(["sh", "-c", "sleep 5; :"]), 1),
    }


def prepared(path: Path, command: list[str]) -> list[str]:
    """The command line of a runner for one container, on a directory as the plugin makes it."""
    directory = JobDirectory(path)
    pod = Raw(
        json.dumps(
            {
                "metadata": {"name": "p", "namespace": "ns", "uid": path.name},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none", "command": command}]},
            }
        ).encode()
    )
    request = RetrievedPodData(pod=pod)
    tag = Tag("bench", PodUID(path.name), 0)
    plan = preparing.plan(
        request, codec.decode(bytes(pod), Pod), tag=tag, directory=directory, runtime=HostProcesses(), user=os.geteuid()
    )
    directory.create()
    runners.install(directory.path.parent)
    preparing.write(plan, directory)
    return ["/usr/bin/python3", "-I", "-S", str(directory.runner), "run", str(path)]


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def resident_mb(argv: list[str]) -> float:
    """Of the program itself, a second after its start."""
    process = subprocess.Popen(argv)
    time.sleep(1)
    memory = processes.memory(process.pid)
    process.terminate()
    process.wait()
    return memory.resident_mb


@click.command(help=__doc__)
@pods_option(full=[1_000], quick=[50], help_="How many; may be repeated.")
@output_option
def main(pods: tuple[int, ...], output: str) -> None:
    try:
        rows = [asyncio.run(measure(count)) for count in pods]
    except UnavailableError as error:
        click.echo(f"skipped: {error}", err=True)
        return
    tables.show(rows, COLUMNS, output=output)


if __name__ == "__main__":
    main()
