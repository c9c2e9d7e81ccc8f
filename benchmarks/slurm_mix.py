"""A site in daily use (T23): of the pods a fifth runs, a tenth waits in the queue, the rest has ended.

Server and Slurm plugin on a real Slurm, polled as an existing virtual kubelet does it, with all pods in one question:
how many commands Slurm is asked, how long an answer takes, what both programs cost and whether they grow; at the end,
with no pod alive, what is still asked.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Raw

from benchmarks.slurm_jobs import at_once
from benchmarks.support import processes
from benchmarks.support.options import is_quick, output_option, pods_option
from interlink.cli import tables
from interlink.kubelet.dialects.own import Remote
from interlink.model.ids import owner
from interlink.model.pods import Pod
from interlink.sdk.addresses import Address
from interlink.sdk.batch.verifying import CANCELS_ARE_WATCHED_S
from interlink.sdk.transport import Link
from interlink.testing.programs import Program, Programs
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until_async
from interlink.wire import codec
from interlink.wire.messages import JobStatus, PodCreateRequest

OWNER = owner("bench", "vk")
AT_ONCE = 16
COLUMNS = {
    "pods": "pods",
    "states": "running, waiting, ended",
    "minutes": "minutes",
    "commands_per_minute": "Slurm commands/minute",
    "answer_p50_ms": "answer p50, ms",
    "answer_p95_ms": "p95, ms",
    "cpu_s_per_minute": "CPU of server and plugin, s/minute",
    "plugin_mb": "memory of the plugin, first and last, MB",
    "server_mb": "of the server, MB",
    "idle_commands_per_minute": "commands/minute with no pod alive",
}


class Scene:
    def __init__(self, programs: Programs, server: Link, plugin: Link) -> None:
        self._server, self._plugin = server, plugin
        self._remote = Remote(server, OWNER, may_act=lambda: None)
        self.programs: list[Program] = [programs.plugin, programs.server]

    async def adopt_nothing(self) -> None:
        """As a virtual kubelet that has no pods yet."""
        seen = await self._remote.changes("", 0, pods=(), wait_s=0)
        await self._remote.announce([], epoch=seen.epoch, revision=seen.revision)

    async def create(self, number: int, script: str, *, flags: str = "") -> Pod:
        document = _document(number, script, flags)
        pod = msgspec.json.decode(document, type=Pod)
        await self._remote.create(PodCreateRequest(pod=Raw(document)), pod)
        return pod

    async def delete(self, pod: Pod) -> None:
        await self._remote.delete(pod)

    async def counts(self, pods: Sequence[Pod]) -> tuple[int, int, int]:
        """Running, waiting, ended."""
        words = [bytes(raw) for status in await self._asked(pods) for raw in status.containers or []]
        running = sum(b'"running":{' in word for word in words)
        ended = sum(b'"terminated":{' in word for word in words)
        return running, len(words) - running - ended, ended

    async def answer_s(self, pods: Sequence[Pod]) -> float:
        began = time.monotonic()
        found = await self._asked(pods)
        if len(found) != len(pods):
            raise RuntimeError(f"{len(found)} of {len(pods)} pods have a status")
        return time.monotonic() - began

    async def _asked(self, pods: Sequence[Pod]) -> list[JobStatus]:
        body = await self._server.call("GET", "/status", codec.encode(list(pods)), timeout_s=60)
        return codec.decode_list(body, JobStatus)

    async def commands(self) -> float:
        text = (await self._plugin.call("GET", "/metrics", None, timeout_s=30)).decode()
        lines = [line for line in text.splitlines() if line.startswith("interlink_slurm_commands_total")]
        return sum(float(line.split()[-1]) for line in lines if "sinfo" not in line)

    def cpu_s(self) -> float:
        return sum(processes.cpu_s(program.pid) for program in self.programs)

    def memory_mb(self) -> list[float]:
        return [processes.memory(program.pid).resident_mb for program in self.programs]


def _document(number: int, script: str, flags: str) -> bytes:
    uid = f"{number:08x}-be4c-4000-8000-{number:012x}"
    container = {"name": "c", "image": "none", "command": ["sh", "-c", script]}
    annotations = {"slurm-job.vk.io/flags": flags} if flags else {}
    metadata = {"name": f"p{number}", "namespace": "ns", "uid": uid, "annotations": annotations}
    spec = {"nodeName": OWNER.node, "restartPolicy": "Never", "containers": [container]}
    return msgspec.json.encode({"metadata": metadata, "spec": spec})


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="interlink-bench-") as folder, SlurmSite(nodes=4) as site:
        programs = Programs(
            Path(folder), site=site, status_interval_s=2.0, plugin_keys={"UseAccounting": False, "MaxPods": 100_000}
        )
        links = [
            Link(Address(scheme="http", host="127.0.0.1", port=port), peer="server")
            for port in (programs.server_port, programs.plugin_port)
        ]
        with programs:
            try:
                yield Scene(programs, *links)
            finally:
                for link in links:
                    await link.close()


async def measure(count: int, minutes: float) -> dict[str, Any]:
    async with running() as scene:
        await scene.adopt_nothing()
        numbers = iter(range(count))
        wanted = (count // 5, count // 10, count - count // 5 - count // 10)
        pods: list[Pod] = []

        async def create() -> None:
            number = next(numbers)
            script = "sleep 36000" if number < wanted[0] else "true"
            is_held = wanted[0] <= number < wanted[0] + wanted[1]
            pods.append(await scene.create(number, script, flags="--hold" if is_held else ""))

        await at_once(count, create, workers=AT_ONCE)
        click.echo(f"  {count} pods: waiting for {wanted} running, waiting, ended", err=True)

        async def is_mixed() -> bool:
            """A job that Slurm itself cancels in the burst of starts counts as ended."""
            _, waiting, ended = await scene.counts(pods)
            return waiting == wanted[1] and ended >= wanted[2]

        if not await until_async(is_mixed, deadline_s=900, interval_s=2):
            raise click.ClickException(f"not within 900 s: {wanted}; there are {await scene.counts(pods)}")
        states = ", ".join(map(str, await scene.counts(pods)))
        found = await _watched(scene, pods, minutes)
        found["idle_commands_per_minute"] = await _idle(scene, pods)
        return {"pods": count, "states": states, "minutes": minutes} | found


async def _watched(scene: Scene, pods: Sequence[Pod], minutes: float) -> dict[str, Any]:
    commands, cpu_s, first_mb, began = await scene.commands(), scene.cpu_s(), scene.memory_mb(), time.monotonic()
    answers = []
    while (passed_s := time.monotonic() - began) < minutes * 60:
        answers.append(await scene.answer_s(pods))
        await asyncio.sleep(1)
    grown = [f"{first:.0f}, {last:.0f}" for first, last in zip(first_mb, scene.memory_mb(), strict=True)]
    return {
        "commands_per_minute": round((await scene.commands() - commands) / passed_s * 60, 1),
        "answer_p50_ms": round(1000 * statistics.median(answers)),
        "answer_p95_ms": round(1000 * sorted(answers)[len(answers) * 95 // 100]),
        "cpu_s_per_minute": round((scene.cpu_s() - cpu_s) / passed_s * 60, 1),
        "plugin_mb": grown[0],
        "server_mb": grown[1],
    }


async def _idle(scene: Scene, pods: Sequence[Pod]) -> float:
    """After all have been deleted and have ended, and the plugin has seen for two minutes that their ends last."""
    for pod in pods:
        await scene.delete(pod)

    async def is_over() -> bool:
        return not any((await scene.counts(pods))[:2])

    if not await until_async(is_over, deadline_s=300, interval_s=1):
        raise click.ClickException("the jobs did not end within 300 s of their deletion")
    await asyncio.sleep(CANCELS_ARE_WATCHED_S + 15)
    commands, began = await scene.commands(), time.monotonic()
    await asyncio.sleep(20)
    return round((await scene.commands() - commands) / (time.monotonic() - began) * 60, 1)


@click.command(help=__doc__)
@click.option("--minutes", type=float, default=0.2 if is_quick() else 3.0, show_default=True, help="How long to poll.")
@pods_option(full=[1_000], quick=[20])
@output_option
def main(minutes: float, pods: tuple[int, ...], output: str) -> None:
    tables.show([asyncio.run(measure(count, minutes)) for count in pods], COLUMNS, output=output)


if __name__ == "__main__":
    main()
