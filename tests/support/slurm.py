"""The Slurm plugin in the test's own process, beside what Slurm itself says of its jobs."""

import collections
import contextlib
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from interlink.apps import slurm_plugin
from interlink.apps.slurm_plugin import Facts
from interlink.model.ids import DEFAULT_CLUSTER, JobID, PodUID, Tag
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus, read
from interlink.plugins.slurm import settings as slurm_settings
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.errors import SDKError
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until_async
from interlink.wire.messages import JobStatus, LogOptions, LogRequest, Origin, RetrievedPodData

Document = dict[str, Any]
WITHIN_S = 30.0


class Bench:
    """`restart` makes a new plugin on the same folder, as after a kill."""

    def __init__(self, site: SlurmSite, folder: Path, **keys: object) -> None:
        self.site = site
        self.folder = folder
        self.keys = keys
        self._pods: dict[str, Document] = {}
        self.job_scripts: dict[str, str] = {}
        self.plugin = self.restart()

    def restart(self, **keys: object) -> BatchPlugin:
        self.keys |= keys
        defaults = {
            "SidecarPort": 1,
            "DataRootFolder": str(self.folder),
            "ContainerRuntime": "none",
            "UseAccounting": False,
            "SettleTime": 1,
            "LostJobGrace": 1,
        }
        settings = slurm_settings.load(json.dumps(defaults | self.keys), {}, source="test", is_root=os.geteuid() == 0)
        slurm_plugin.make_root(settings)
        environment = self.site.environ
        self.plugin, self.slurm = slurm_plugin.build(
            settings,
            environment,
            Facts(uses_accounting=bool((defaults | self.keys)["UseAccounting"]), lost_after_s=settings.lost_after_s),
        )
        return self.plugin

    # Pods

    def pod(self, *scripts: str, annotations: Document | None = None, **spec: Any) -> str:
        """The UID of a new pod whose containers c0, c1, … run these scripts."""
        uid = str(uuid.uuid4())
        containers = [self.container(f"c{number}", script) for number, script in enumerate(scripts)]
        base = {"nodeName": "vk", "restartPolicy": "Never", "containers": containers}
        metadata = {"name": f"p-{uid[:4]}", "namespace": "ns", "uid": uid, "annotations": annotations or {}}
        self._pods[uid] = {"metadata": metadata, "spec": base | spec}
        return uid

    def container(self, name: str, script: str, **extra: Any) -> Document:
        """A shell script that first leaves its line in the ledger."""
        return {
            "name": name,
            "image": "none",
            "command": ["sh", "-c", f"echo $0 >> {self.ledger}; {script}", name],
        } | extra

    @property
    def ledger(self) -> Path:
        return self.folder.with_suffix(".ledger")

    def starts(self) -> collections.Counter[str]:
        return collections.Counter(self.ledger.read_text().split() if self.ledger.exists() else [])

    async def create(self, uid: str) -> JobID:
        return await self.plugin.create(self.request(uid))

    async def start(self, *scripts: str, **arguments: Any) -> str:
        uid = self.pod(*scripts, **arguments)
        await self.create(uid)
        return uid

    def annotate(self, uid: str, **annotations: str) -> None:
        self._pods[uid]["metadata"]["annotations"] |= annotations

    def request(self, uid: str) -> RetrievedPodData:
        origin = Origin(cluster=DEFAULT_CLUSTER, node="vk", attempt=0)
        script = self.job_scripts.get(uid, msgspec.UNSET)
        return RetrievedPodData(pod=Raw(msgspec.json.encode(self._pods[uid])), interlink=origin, job_script=script)

    def tag(self, uid: str) -> Tag:
        return Tag(DEFAULT_CLUSTER, PodUID(uid), 0)

    def directory(self, uid: str) -> JobDirectory:
        return JobDirectory(self.folder / uid)

    def read_pod(self, uid: str) -> Pod:
        return msgspec.convert(self._pods[uid], Pod)

    async def delete(self, uid: str, *, grace_s: int = 30) -> None:
        pod = self._pods[uid]
        pod["metadata"]["deletionGracePeriodSeconds"] = grace_s
        await self.plugin.delete(self.read_pod(uid))

    # What is seen

    async def status(self, uid: str) -> JobStatus | None:
        found = await self.plugin.status([self.read_pod(uid)])
        return found[0] if found else None

    async def containers(self, uid: str) -> list[ContainerStatus]:
        status = await self.status(uid)
        return [read(raw) for raw in (status.containers or [])] if status else []

    async def word(self, uid: str) -> str:
        """The first container's state: `running`, `waiting REASON`, `CODE REASON`, or nothing."""
        states = await self.containers(uid)
        if not states:
            return ""
        first = states[0]
        if first.terminated:
            return f"{first.terminated.exit_code} {first.terminated.reason}"
        return f"waiting {first.waiting.reason}" if first.waiting else "running" if first.running else "silent"

    async def wait(self, uid: str, word: str, *, deadline_s: float = WITHIN_S) -> None:
        """Wait until the first container's state begins so."""
        seen = ""

        async def is_there() -> bool:
            nonlocal seen
            seen = await self.word(uid)
            return seen.startswith(word)

        assert await until_async(is_there, deadline_s=deadline_s, interval_s=0.1), (
            f"not within {deadline_s} s: {word!r}; it is {seen!r}; Slurm: {self.jobs(uid)}\n"
            f"{self.output(uid)}{self.site.run('sinfo')}{self.site.run('squeue')}{self.site.log('slurmctld')}"
        )

    async def message(self, uid: str) -> str:
        first = (await self.containers(uid))[0]
        found = first.terminated or first.waiting
        return (found.message or "") if found else ""

    async def logs(self, uid: str, container: str = "c0") -> str:
        question = LogRequest(pod_uid=uid, container=container, options=LogOptions())
        return b"".join([chunk async for chunk in self.plugin.logs(question)]).decode()

    async def until_ready(self, uid: str) -> None:
        """Wait until the first container is ready."""

        async def is_ready() -> bool:
            return bool((await self.containers(uid))[0].ready)

        assert await until_async(is_ready, deadline_s=WITHIN_S), self.output(uid)

    async def until_printed(self, uid: str, text: str) -> None:
        """Wait until the first container has printed this and nothing else."""

        async def is_there() -> bool:
            with contextlib.suppress(SDKError):
                return await self.logs(uid) == text
            return False

        assert await until_async(is_there, deadline_s=WITHIN_S), self.output(uid)

    def jobs(self, uid: str) -> list[str]:
        """`ID STATE` of every job of the pod that the controller knows."""
        lines = self.site.run("squeue", "-ho", "%A %T", "--states=all", f"--name={self.tag(uid)}").splitlines()
        return [line.strip() for line in lines]

    def alive(self, uid: str) -> list[str]:
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
        return [line for line in self.jobs(uid) if not line.endswith(ended)]

    def job_id(self, uid: str) -> str:
        """Of the pod's newest job."""
        return self.jobs(uid)[-1].split()[0]

    def release(self, uid: str) -> None:
        """Let the held jobs of a pod start."""
        for line in self.alive(uid):
            self.site.run("scontrol", "release", line.split()[0])

    async def until_starts(self, count: int) -> None:
        """Wait until so many programs have started."""

        async def have_started() -> bool:
            return sum(self.starts().values()) >= count

        assert await until_async(have_started, deadline_s=WITHIN_S), self.starts()

    async def until_verified(self, check: Callable[[], bool]) -> None:
        """Verify again and again, as the plugin does, until the check holds."""

        async def is_there() -> bool:
            with contextlib.suppress(SDKError):
                await self.plugin.verifier.verify()
            return check()

        assert await until_async(is_there, deadline_s=WITHIN_S, interval_s=0.2)

    def shown(self, uid: str) -> str:
        """`scontrol show job` of the pod's newest job."""
        return self.site.run("scontrol", "show", "job", self.jobs(uid)[-1].split()[0])

    def output(self, uid: str) -> str:
        path = self.folder / uid / "job.out"
        return path.read_text(errors="replace") if path.exists() else ""

    async def end(self) -> None:
        """Take every job out of Slurm, those included that a crash has brought back."""
        self.site.resume_controller()
        self.site.cancel_all()


def command(bench: Bench, script: str) -> str:
    """A program that stands in for one of Slurm's."""
    bench.folder.mkdir(exist_ok=True)
    path = bench.folder.with_suffix(f".{len(list(bench.folder.parent.glob('*.cmd')))}.cmd")
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)
