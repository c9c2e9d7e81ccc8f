"""What the node object says; pure.

The node stays Ready and its Lease renewed while the site cannot be reached: pods keep their states and nobody evicts
them. The trouble shows as condition `InterlinkConnectivity` and as a taint that lets nothing new be scheduled.
"""

import platform
from datetime import datetime
from typing import Any

import msgspec

import interlink
from interlink.aio import clock
from interlink.kubelet.node.site import Site
from interlink.kubelet.settings import KubeletSettings
from interlink.wire.messages import Taint

_CONNECTIVITY = "InterlinkConnectivity"


AWAY = Taint(key="virtual-node.interlink/site-away", value="true", effect="NoSchedule")
DRAINING = Taint(key="virtual-node.interlink/draining", value="true", effect="NoSchedule")
_OWN_TAINT = Taint(key="virtual-node.interlink/no-schedule", value="true", effect="NoSchedule")
_OWN_TAINTS_ANNOTATION = "interlink.eu/own-taints"


def node_object(settings: KubeletSettings, site: Site) -> dict[str, Any]:
    """The node as it is registered; labels and taint as existing installations know them."""
    taints = _taints(settings, site, is_draining=False)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": settings.node_name,
            "labels": _labels(settings),
            "annotations": {_OWN_TAINTS_ANNOTATION: _marks(taints)},
        },
        "spec": {
            "providerID": f"external:///{settings.node_name}",
            "taints": [msgspec.to_builtins(taint) for taint in taints],
        },
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


def _taints(settings: KubeletSettings, site: Site, *, is_draining: bool) -> list[Taint]:
    wanted = [_OWN_TAINT, *settings.taints, *site.taints]
    wanted += [AWAY] if site.trouble else []
    wanted += [DRAINING] if is_draining else []
    return list({(taint.key, taint.effect): taint for taint in wanted}.values())


def _marks(taints: list[Taint]) -> str:
    """What tells our taints from those of others after a restart."""
    return ",".join(sorted(f"{taint.key}:{taint.effect}" for taint in taints))


def node_patch(settings: KubeletSettings, site: Site, node: dict[str, Any], *, is_draining: bool) -> bytes | None:
    """A merge patch that gives the node our labels and taints and leaves those of others; None when it has them.

    The list of taints can only be written whole, so the patch holds for this version of the node and no other.
    """
    metadata, spec = node["metadata"], node.get("spec") or {}
    wanted = _taints(settings, site, is_draining=is_draining)
    present = [msgspec.convert(taint, Taint) for taint in spec.get("taints") or []]
    marks = ((metadata.get("annotations") or {}).get(_OWN_TAINTS_ANNOTATION) or "").split(",")
    ours = {*marks, *_marks(wanted).split(",")}
    foreign = [raw for raw, t in zip(spec.get("taints") or [], present, strict=True) if _marks([t]) not in ours]
    missing_labels = {
        name: value for name, value in _labels(settings).items() if (metadata.get("labels") or {}).get(name) != value
    }
    kept = [taint for taint in present if _marks([taint]) in ours]
    if not missing_labels and sorted(kept, key=_key) == sorted(wanted, key=_key):
        return None
    return msgspec.json.encode(
        {
            "metadata": {
                "resourceVersion": metadata.get("resourceVersion"),
                "labels": missing_labels,
                "annotations": {_OWN_TAINTS_ANNOTATION: _marks(wanted)},
            },
            "spec": {"taints": [*foreign, *(msgspec.to_builtins(taint) for taint in wanted)]},
        }
    )


def _key(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.effect, taint.value


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def node_status(settings: KubeletSettings, site: Site, present: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The status that the node should have; transition times move only when a condition flips."""
    capacity = _capacity(settings, site, present.get("capacity") or {})
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


def _capacity(settings: KubeletSettings, site: Site, present: dict[str, str]) -> dict[str, str]:
    """What the site offers wins. Before it has spoken to this process, what Kubernetes knows from earlier stays; what
    is no longer offered is zero, because a patch cannot leave it out."""
    wanted = {**settings.resources, **({} if site.has_spoken else present), **site.resources}
    return {**{name: "0" for name in present if "/" in name}, **wanted}


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


def without_heartbeats(status: dict[str, Any]) -> dict[str, Any]:
    """What of a status is worth reporting before its time."""
    conditions = [{k: v for k, v in c.items() if k != "lastHeartbeatTime"} for c in status.get("conditions", [])]
    return {**status, "conditions": conditions}
