"""The node object: what it says (pure), and keeping it said.

The node stays Ready and its Lease renewed while the site cannot be reached: pods keep their states and nobody evicts
them. The trouble shows as condition `InterlinkConnectivity`.
"""

import platform
import time
from datetime import datetime
from typing import Any

import msgspec
import structlog

import interlink
from interlink.aio import clock
from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import Conflict, NotFound
from interlink.kubelet.settings import KubeletSettings

log = structlog.get_logger(__name__)

LEASE_DURATION_S = 40
LEASE_RENEWAL_S = 10.0
STATUS_S = 10.0
_REPORT_S = 300.0
_CONNECTIVITY = "InterlinkConnectivity"


class Site(msgspec.Struct, frozen=True):
    """What is known of the site: `trouble` empty when it answers, `resources` what it offers."""

    trouble: str = ""
    resources: dict[str, str] = {}


def node_object(settings: KubeletSettings) -> dict[str, Any]:
    """The node as it is registered; labels and taint as existing installations know them."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.node_name, "labels": _labels(settings)},
        "spec": {"providerID": f"external:///{settings.node_name}", "taints": _taints(settings)},
    }


def _labels(settings: KubeletSettings) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": settings.node_name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": _architecture(),
        "kubernetes.io/role": "agent",
        "type": "virtual-kubelet",
        "virtual-node.interlink/type": "virtual-kubelet",
        "node.kubernetes.io/exclude-from-external-load-balancers": "true",
        "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
        **settings.labels,
    }


def _taints(settings: KubeletSettings) -> list[dict[str, str]]:
    own = {"key": "virtual-node.interlink/no-schedule", "value": "true", "effect": "NoSchedule"}
    return [own, *({"key": t.key, "value": t.value, "effect": t.effect} for t in settings.taints)]


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def node_status(settings: KubeletSettings, site: Site, present: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The status that the node should have; transition times move only when a condition flips."""
    capacity = {**settings.resources, **site.resources}
    return {
        "addresses": [
            {"type": "InternalIP", "address": settings.node_ip},
            {"type": "Hostname", "address": settings.node_name},
        ],
        "capacity": capacity,
        "allocatable": capacity,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.listen_port}},
        "nodeInfo": _node_info(),
        "conditions": _conditions(site, present.get("conditions") or [], now),
    }


def _node_info() -> dict[str, str]:
    return {
        "kubeletVersion": f"v{interlink.__version__}",
        "containerRuntimeVersion": f"interlink://{interlink.__version__}",
        "operatingSystem": "linux",
        "osImage": "interLink virtual node",
        "architecture": _architecture(),
        "kernelVersion": platform.release(),
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kubeProxyVersion": "",
    }


def _conditions(site: Site, present: list[dict[str, Any]], now: datetime) -> list[dict[str, Any]]:
    before = {condition["type"]: condition for condition in present}
    healthy = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", ""),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", ""),
        ("PIDPressure", "False", "KubeletHasSufficientPID", ""),
    ]
    connectivity = (
        (_CONNECTIVITY, "False", "InterlinkPingFailed", site.trouble)
        if site.trouble
        else (_CONNECTIVITY, "True", "InterlinkPingSuccessful", "the site answers")
    )
    ready = ("Ready", "True", "KubeletReady", "the virtual kubelet is running")
    return [_condition(*row, before=before, now=now) for row in (*healthy, connectivity, ready)]


def _condition(
    kind: str, status: str, reason: str, message: str, *, before: dict[str, dict[str, Any]], now: datetime
) -> dict[str, Any]:
    old = before.get(kind, {})
    moved = clock.rfc3339(now) if old.get("status") != status else old["lastTransitionTime"]
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": clock.rfc3339(now),
        "lastTransitionTime": moved,
    }


class NodeKeeper:
    """Registers the node, again when it was deleted; reports its status when it changed and every five minutes."""

    def __init__(self, client: KubeClient, settings: KubeletSettings) -> None:
        self._client = client
        self._settings = settings
        self._reported: dict[str, Any] = {}
        self._reported_at = 0.0
        self._uid = ""

    async def report(self, site: Site) -> None:
        """One round. Raises KubeError; repeat it."""
        node = await self._node()
        self._uid = node["metadata"]["uid"]
        status = node_status(self._settings, site, node.get("status") or {}, clock.now())
        is_due = time.monotonic() - self._reported_at > _REPORT_S
        if not is_due and _without_heartbeats(status) == _without_heartbeats(self._reported):
            return
        path = paths.node_status(self._settings.node_name)
        await self._client.patch(path, msgspec.json.encode({"status": status}))
        self._reported, self._reported_at = status, time.monotonic()

    async def _node(self) -> dict[str, Any]:
        try:
            answer = await self._client.get(paths.node(self._settings.node_name))
        except NotFound:
            self._reported = {}
            body = msgspec.json.encode(node_object(self._settings))
            answer = await self._client.create(paths.NODES, body)
            log.info("node.registered", node=self._settings.node_name)
        document: dict[str, Any] = msgspec.json.decode(answer)
        return document

    async def renew_lease(self) -> None:
        """One heartbeat. Raises KubeError; repeat it."""
        if not self._uid:
            return
        body = msgspec.json.encode(self._lease())
        try:
            await self._client.patch(paths.node_lease(self._settings.node_name), body)
        except NotFound:
            try:
                await self._client.create(paths.NODE_LEASES, body)
            except Conflict:
                log.info("lease.created-by-another", node=self._settings.node_name)

    def _lease(self) -> dict[str, Any]:
        name = self._settings.node_name
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._uid}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": LEASE_DURATION_S,
                "renewTime": clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }


def _without_heartbeats(status: dict[str, Any]) -> dict[str, Any]:
    conditions = [{k: v for k, v in c.items() if k != "lastHeartbeatTime"} for c in status.get("conditions", [])]
    return {**status, "conditions": conditions}
