"""The plugin that is looked at, and jobs for it to run."""

import asyncio
import base64
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from interlink.model import statuses
from interlink.model.ids import JobID
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus
from interlink.sdk.client import PluginClient
from interlink.sdk.errors import NotFound, SDKError
from interlink.sdk.transport import Link
from interlink.wire import codec
from interlink.wire.messages import (
    JobStatus,
    LogOptions,
    LogRequest,
    Origin,
    RetrievedContainer,
    RetrievedPodData,
)

Document = dict[str, Any]

CLUSTER = "conformance"
_POLL_S = 0.3


class Options(msgspec.Struct, frozen=True):
    """`image` and `annotations` for every job; `start_s`: how long a job may take to start, and to end when it is over;
    `restart`: a shell command that kills the plugin and starts it again; empty when there is none."""

    image: str = "busybox"
    annotations: dict[str, str] = {}
    start_s: float = 60.0
    restart: str = ""


class Job(msgspec.Struct, frozen=True):
    """A pod, and what is sent to create it."""

    document: Document
    request: RetrievedPodData

    @property
    def uid(self) -> str:
        return str(self.document["metadata"]["uid"])

    @property
    def pod(self) -> Pod:
        return msgspec.convert(self.document, Pod)


class Told(msgspec.Struct, frozen=True):
    """A plugin's answer about one job."""

    status: JobStatus
    main: dict[str, ContainerStatus]
    init: dict[str, ContainerStatus]

    @property
    def exit_codes(self) -> dict[str, int | None]:
        """By container; None for one that has not ended."""
        return {name: s.terminated.exit_code if s.terminated else None for name, s in self.main.items()}

    @property
    def has_ended(self) -> bool:
        return bool(self.main) and all(s.terminated for s in self.main.values())

    @property
    def is_running(self) -> bool:
        return any(s.running for s in self.main.values())


class Heard(msgspec.Struct, frozen=True):
    """What a plugin answered about one job, if anything, and the answer's tag."""

    told: Told | None
    tag: str


class Subject:
    """Every job that it makes is deleted at the end of its check."""

    def __init__(self, link: Link, options: Options) -> None:
        self.link = link
        self.plugin = PluginClient(link)
        self.options = options
        self._jobs: list[Job] = []

    @contextlib.asynccontextmanager
    async def one_check(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for job in self._jobs:
                with contextlib.suppress(SDKError):
                    await self.delete(job, grace_s=0)
            self._jobs.clear()

    def job(self, *scripts: str, init: tuple[str, ...] = (), data: Document | None = None, **spec: Any) -> Job:
        """A pod with a container for each shell script: c0, c1, …; init containers i0, i1, …

        `data`: config_maps and secrets by name, each a mapping of keys to bytes, mounted at /config/NAME and
        /secret/NAME.
        """
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"conformance-{len(self._jobs)}",
                "namespace": "conformance",
                "uid": str(uuid.uuid4()),
                "annotations": self.options.annotations,
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "nodeName": "conformance",
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 5,
                "containers": [self._container(f"c{n}", script, data) for n, script in enumerate(scripts)],
                "initContainers": [self._container(f"i{n}", script, data) for n, script in enumerate(init)],
                "volumes": _volumes(data or {}),
                **spec,
            },
            "status": {"phase": "Pending"},
        }
        made = Job(document=document, request=_request(document, data or {}))
        self._jobs.append(made)
        return made

    def _container(self, name: str, script: str, data: Document | None) -> Document:
        mounts = [
            {"name": f"{kind}-{key}", "mountPath": f"/{kind}/{key}"}
            for kind in ("config", "secret")
            for key in (data or {}).get(kind, {})
        ]
        return {
            "name": name,
            "image": self.options.image,
            "command": ["sh", "-c", script],
            "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
            "volumeMounts": mounts,
        }

    async def create(self, job: Job) -> JobID:
        return await self.plugin.create(job.request)

    async def started(self, *scripts: str, **more: Any) -> Job:
        """A job that has been created."""
        job = self.job(*scripts, **more)
        await self.create(job)
        return job

    async def delete(self, job: Job, *, grace_s: int = 5) -> None:
        document = {**job.document, "metadata": {**job.document["metadata"], "deletionGracePeriodSeconds": grace_s}}
        await self.plugin.delete(codec.encode(document))

    async def ask(self, *jobs: Job) -> dict[str, Told]:
        """By UID; only those that the plugin mentions. A bulk question for several."""
        answers = (await self.plugin.status([job.pod for job in jobs])).answers
        return {answer.uid: _told(answer) for answer in answers}

    async def told(self, job: Job) -> Told | None:
        return (await self.ask(job)).get(job.uid)

    async def hear(self, job: Job, *, tag: str = "") -> Heard:
        """With a tag the plugin may take a second for news."""
        statuses = await self.plugin.status([job.pod], tag=tag, wait_s=1)
        told = next((_told(answer) for answer in statuses.answers if answer.uid == job.uid), None)
        return Heard(told=told, tag=statuses.tag)

    async def until(self, job: Job, check: Callable[[Told], object], *, within_s: float | None = None) -> Told | None:
        """The first answer that passes the check; else the last one, or None when nothing was ever said."""
        deadline = time.monotonic() + (within_s or self.options.start_s)
        last: Told | None = None
        while time.monotonic() < deadline:
            found = await self.told(job)
            last = found or last
            if found is not None and check(found):
                return found
            await asyncio.sleep(_POLL_S)
        return last

    async def log(self, job: Job, container: str = "c0", **options: Any) -> bytes:
        """`options` are those of LogOptions."""
        request = LogRequest(
            namespace="conformance",
            pod_uid=job.uid,
            pod_name=job.document["metadata"]["name"],
            container=container,
            options=LogOptions(**options),
        )
        async with self.plugin.logs(request) as chunks:
            return b"".join([chunk async for chunk in chunks])

    async def is_gone(self, job: Job) -> bool:
        """Whether nothing of it runs, as far as the plugin says."""
        try:
            found = await self.told(job)
        except NotFound:
            return True
        return found is None or found.has_ended or not any(s.says_something for s in found.main.values())


def _told(answer: JobStatus) -> Told:
    main, init = ([statuses.read(raw) for raw in raws or []] for raws in (answer.containers, answer.init_containers))
    return Told(status=answer, main={s.name: s for s in main}, init={s.name: s for s in init})


def _volumes(data: Document) -> list[Document]:
    config_maps = [{"name": f"config-{key}", "configMap": {"name": key}} for key in data.get("config", {})]
    secrets = [{"name": f"secret-{key}", "secret": {"secretName": key}} for key in data.get("secret", {})]
    return [*config_maps, *secrets]


def _request(document: Document, data: Document) -> RetrievedPodData:
    config_maps = [_config_map(name, values) for name, values in data.get("config", {}).items()]
    secrets = [_secret(name, values) for name, values in data.get("secret", {}).items()]
    names = [c["name"] for c in (*document["spec"]["initContainers"], *document["spec"]["containers"])]
    return RetrievedPodData(
        pod=Raw(codec.encode(document)),
        container=[
            RetrievedContainer(name=name, config_maps=config_maps or None, secrets=secrets or None) for name in names
        ],
        interlink=Origin(cluster=CLUSTER, node="conformance"),
    )


def _config_map(name: str, values: Mapping[str, bytes]) -> Raw:
    """Text where it is text."""
    texts, binary = {}, {}
    for key, value in values.items():
        try:
            texts[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(value).decode()
    return Raw(codec.encode({"metadata": {"name": name}, "data": texts, "binaryData": binary}))


def _secret(name: str, values: Mapping[str, bytes]) -> Raw:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    return Raw(codec.encode({"metadata": {"name": name}, "data": data}))
