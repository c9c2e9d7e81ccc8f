"""The API server: pods made and watched, its calls counted, and what it takes at most."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from interlink.aio import clock
from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError
from interlink.kube.reflecting import Reflector
from interlink.kubelet.pods import publishing
from interlink.model import phases
from interlink.model.ids import JobID
from interlink.model.phases import JobView, Place
from interlink.model.pods import Pod, Seen
from interlink.testing.waiting import until_async

_AT_ONCE = 32
_PLACE = Place(host_ip="127.0.0.1", pod_ip="127.0.0.1")


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


class Observer:
    """When each pod of a namespace was first seen with a job id, running, ended, gone; on the monotonic clock."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.reflector = Reflector(client, f"{paths.namespace(namespace)}/pods", {}, self._note)
        self.job_id: dict[str, float] = {}
        self.running: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.gone: dict[str, float] = {}

    def _note(self, seen: Seen, is_gone: bool) -> None:
        now, pod = time.monotonic(), seen.pod
        marks = [
            (self.gone, is_gone),
            (self.job_id, pod.job_id is not None),
            (self.running, pod.status.phase == "Running"),
            (self.ended, pod.is_terminal),
        ]
        for table, is_true in marks:
            if is_true:
                table.setdefault(pod.uid, now)


async def in_parallel(work: Iterator[Any], act: Any) -> None:
    """`act` on each item, so many at a time."""

    async def worker() -> None:
        for item in work:
            await act(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(worker())


async def create_namespace(client: KubeClient, name: str) -> None:
    """On return pods can be made in it: it has its service account."""
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create("/api/v1/namespaces", msgspec.json.encode(document))

    async def has_account() -> bool:
        with contextlib.suppress(KubeError):
            await client.get(f"{paths.namespace(name)}/serviceaccounts/default")
            return True
        return False

    await until_async(has_account, deadline_s=30)


async def create_pods(client: KubeClient, namespace: str, node: str, count: int, *, prefix: str = "p") -> None:
    """Bound to the node, if it has a name; each with the volume of a service account, as most pods have one."""

    async def create(number: int) -> None:
        await client.create(f"{paths.namespace(namespace)}/pods", _pod(f"{prefix}{number}", node))

    await in_parallel(iter(range(count)), create)


def _pod(name: str, node: str) -> bytes:
    container = {"name": "main", "image": "image", "command": ["true"]}
    spec = {
        "nodeName": node,
        "schedulerName": "nobody",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
    }
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {k: v for k, v in spec.items() if v}}
    )


async def bare_writes_per_s(client: KubeClient, namespace: str) -> float:
    """How many pods a second a bare client can give a token and a job id with its status: the writes of a virtual
    kubelet, with nothing behind them. The pods must be there."""
    answer = msgspec.json.decode(await client.get(f"{paths.namespace(namespace)}/pods"), type=_List)
    found = [msgspec.json.decode(raw, type=Pod) for raw in answer.items]

    async def write(pod: Pod) -> None:
        path = paths.service_account_token(namespace, "default")
        await client.create(path, msgspec.json.encode(_token_request(pod)))
        status = phases.pod_status(pod, JobView(), _PLACE, clock.now())
        body = publishing.patch(pod, status, JobID(f"job-{pod.uid}"))
        await client.patch(paths.pod(namespace, pod.metadata.name) + "/status", body)

    started = time.monotonic()
    await in_parallel(iter(found), write)
    return len(found) / (time.monotonic() - started)


def _token_request(pod: Pod) -> dict[str, Any]:
    bound_to = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.uid}
    spec = {"expirationSeconds": 3607, "boundObjectRef": bound_to}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


async def calls(client: KubeClient) -> dict[str, float]:
    """How many requests the API server has had, by verb and resource, those of its own controllers included."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families((await client.get("/metrics")).decode()):
        if family.name == "apiserver_request":
            for sample in family.samples:
                if sample.name == "apiserver_request_total":
                    verb = f"{sample.labels['verb']} {_resource(sample.labels)}"
                    found[verb] = found.get(verb, 0) + sample.value
    return found


def _resource(labels: Mapping[str, str]) -> str:
    return "/".join(part for part in (labels["resource"], labels["subresource"]) if part)


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, int]:
    return {verb: int(n - before.get(verb, 0)) for verb, n in sorted(after.items()) if n != before.get(verb, 0)}
