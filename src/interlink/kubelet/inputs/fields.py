"""The downward API: values of the pod itself, by field path."""

import re
from collections.abc import Mapping

import msgspec

from interlink.kubelet.errors import Unsupported
from interlink.model.pods import FieldSelector, Pod

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class Surroundings(msgspec.Struct, frozen=True):
    """What a pod can ask of its node, beside what Kubernetes holds.

    `has_projected_volumes`: whether the site takes them. `job_script_builder_url`: who makes job scripts for it.
    `kubernetes`: address and port at which pods reach the API server where its service's address does not do;
    `ca_certificate` replaces the one in `kube-root-ca.crt` then.
    """

    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, str] = {}
    kubernetes: tuple[str, int] | None = None
    ca_certificate: str = ""
    has_projected_volumes: bool = True
    job_script_builder_url: str = ""


def value(selector: FieldSelector, pod: Pod, surroundings: Surroundings) -> str:
    """Raises Unsupported for a path that names nothing we know."""
    path = selector.field_path
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        table = pod.metadata.labels if subscript[1] == "labels" else pod.metadata.annotations
        return (table or {}).get(subscript[2], "")
    simple = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.hostIP": surroundings.host_ip,
        "status.hostIPs": surroundings.host_ip,
        "status.podIP": pod.wanted_ip or surroundings.pod_ip,
        "status.podIPs": pod.wanted_ip or surroundings.pod_ip,
        "metadata.labels": _table(pod.metadata.labels),
        "metadata.annotations": _table(pod.metadata.annotations),
    }
    if path not in simple:
        raise Unsupported(f"fieldRef {path!r} is not supported")
    return simple[path]


def _table(entries: dict[str, str] | None) -> str:
    """As a kubelet writes labels into a file: sorted, quoted, one a line."""
    return "\n".join(f"{key}={_quoted(entries[key])}" for key in sorted(entries)) if entries else ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
