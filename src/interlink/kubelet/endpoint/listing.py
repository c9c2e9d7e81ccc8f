"""The node's pods as lists: as Kubernetes has them, and those that run, in short; pure."""

from collections.abc import Iterable
from typing import Any

from interlink.model.pods import Pod, Seen


def all_pods(found: Iterable[Seen]) -> bytes:
    """A PodList of the objects as they came."""
    return b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[' + b",".join(s.raw for s in found) + b"]}"


def running_pods(found: Iterable[Pod]) -> dict[str, Any]:
    """A PodList of pods with a running container, and of each only what identifies it."""
    items = [_short(pod) for pod in found if _running(pod)]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


def _short(pod: Pod) -> dict[str, Any]:
    names = _running(pod)
    images = {spec.name: spec.image for spec in [*(pod.spec.containers or []), *(pod.spec.init_containers or [])]}
    return {
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.uid},
        "spec": {"containers": [{"name": name, "image": images.get(name, ""), "resources": {}} for name in names]},
        "status": {},
    }


def _running(pod: Pod) -> list[str]:
    entries = [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]
    return [entry.name for entry in entries if entry.running]
