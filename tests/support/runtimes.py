"""A runtime behind the local scheduler, in the test's own process: pods are created, looked at, read and deleted."""

import contextlib
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus, read
from interlink.plugins.local.scheduler import HostScheduler
from interlink.sdk.batch import runners
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.errors import NotFound
from interlink.testing.waiting import until_async
from interlink.wire.messages import LogOptions, LogRequest, Origin, RetrievedContainer, RetrievedPodData
from tests.support.jobs import end_jobs

Document = dict[str, Any]
WITHIN_S = 30.0


class RuntimeBench:
    """image: of every container that names none. python: what the runner is started with."""

    def __init__(self, folder: Path, runtime: Runtime, *, image: str, python: str = sys.executable) -> None:
        self.folder = folder
        self.image = image
        self._scheduler = HostScheduler(folder, max_pods=100, python=python)
        self.plugin = BatchPlugin(folder, scheduler=self._scheduler, runtime=runtime)
        # Back-off is the runner's own matter; here nobody waits for ten seconds.
        runners.install(folder)
        runner = runners.place(folder) / "runner.py"
        runner.write_bytes(runner.read_bytes().replace(b"_RESET_S = 10, ", b"_RESET_S = 0.2, "))
        self._pods: dict[str, Document] = {}

    async def start(
        self, *scripts: str, data: RetrievedContainer | None = None, pull_secrets: list[Raw] | None = None, **spec: Any
    ) -> str:
        """The UID of a pod whose containers c0, c1, … run these scripts, each unless `containers` says otherwise."""
        uid = str(uuid.uuid4())
        containers = [self.container(f"c{number}", script) for number, script in enumerate(scripts)]
        base = {"nodeName": "vk", "restartPolicy": "Never", "containers": containers}
        metadata = {"name": "p", "namespace": "ns", "uid": uid, "annotations": spec.pop("annotations", {})}
        self._pods[uid] = {"metadata": metadata, "spec": base | spec}
        request = RetrievedPodData(
            pod=Raw(msgspec.json.encode(self._pods[uid])),
            container=[data] if data else [],
            interlink=Origin(cluster="c", node="vk"),
            pull_secrets=pull_secrets if pull_secrets else msgspec.UNSET,
        )
        await self.plugin.create(request)
        return uid

    def container(self, name: str, script: str, **extra: Any) -> Document:
        return {"name": name, "image": self.image, "command": ["/bin/sh", "-c", script], **extra}

    async def run(self, *scripts: str, **arguments: Any) -> str:
        """What the first container printed, once the pod has ended."""
        uid = await self.start(*scripts, **arguments)
        await self.ended(uid)
        return await self.logs(uid)

    async def statuses(self, uid: str) -> dict[str, ContainerStatus]:
        pod = msgspec.convert(self._pods[uid], Pod)
        answers = await self.plugin.status([pod])
        raws = [raw for answer in answers for raw in (*(answer.init_containers or []), *(answer.containers or []))]
        return {status.name: status for status in map(read, raws)}

    async def ended(self, uid: str, *, deadline_s: float = WITHIN_S) -> dict[str, int]:
        """The exit codes, once every container has ended."""
        codes: dict[str, int] = {}

        async def have_ended() -> bool:
            found = await self.statuses(uid)
            codes.update({name: status.terminated.exit_code for name, status in found.items() if status.terminated})
            return bool(found) and len(codes) == len(found)

        assert await until_async(have_ended, deadline_s=deadline_s), await self.statuses(uid)
        return codes

    async def until(self, uid: str, text: str, container: str = "c0") -> None:
        """Wait until the container has printed it."""

        async def is_there() -> bool:
            with contextlib.suppress(NotFound):
                return text in await self.logs(uid, container)
            return False

        assert await until_async(is_there, deadline_s=WITHIN_S), await self.statuses(uid)

    async def logs(self, uid: str, container: str = "c0") -> str:
        question = LogRequest(pod_uid=uid, container=container, options=LogOptions())
        return b"".join([chunk async for chunk in self.plugin.logs(question)]).decode()

    async def delete(self, uid: str, *, grace_s: int = 20) -> None:
        pod = self._pods[uid]
        pod["metadata"]["deletionGracePeriodSeconds"] = grace_s
        await self.plugin.delete(msgspec.convert(pod, Pod))

    def directory(self, uid: str) -> Path:
        return self.folder / uid

    def close(self) -> None:
        end_jobs(self.folder)
        for child in self._scheduler._children:
            child.wait(20)


def program_of(uid: str, text: str) -> list[int]:
    """The processes whose command line holds this text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line:
                found.append(int(entry.name))
    return found


def python_of_the_system() -> str:
    """One that an ordinary user may run."""
    return shutil.which("python3", path="/usr/bin") or sys.executable
