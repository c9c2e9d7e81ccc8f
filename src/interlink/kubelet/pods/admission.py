"""What this node cannot honour, said before anything is submitted; pure.

What a site cannot do (an unknown kind of volume, an image that is not there) its plugin says by itself.
"""

import enum
from typing import Any

import msgspec

from interlink.model.pods import Pod


class Verdict(enum.Enum):
    FAIL = "the pod fails"
    IGNORE = "the pod stays pending: its controller would replace a failed one for ever"


class Objection(msgspec.Struct, frozen=True):
    """`reason` is a word for events and statuses."""

    reason: str
    message: str
    verdict: Verdict


class _Owner(msgspec.Struct, frozen=True):
    kind: str = ""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    owner_references: list[_Owner] | None = None


class _OS(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    host_network: bool = msgspec.field(name="hostNetwork", default=False)
    host_pid: bool = msgspec.field(name="hostPID", default=False)
    host_ipc: bool = msgspec.field(name="hostIPC", default=False)
    os: _OS | None = None
    containers: list[Any] | None = None


class _Manifest(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


def objection(pod: Pod, raw: bytes) -> Objection | None:
    """`raw` is the whole object, as Kubernetes has it."""
    manifest = msgspec.json.decode(raw, type=_Manifest)
    is_daemon = any(owner.kind == "DaemonSet" for owner in manifest.metadata.owner_references or [])
    verdict = Verdict.IGNORE if is_daemon else Verdict.FAIL
    spec = manifest.spec
    if spec.os is not None and spec.os.name not in ("", "linux"):
        return Objection("PodOSNotSupported", f"this node runs linux, the pod wants {spec.os.name}", verdict)
    wanted = [name for name, is_set in _namespaces(spec) if is_set]
    if is_daemon and wanted:
        return Objection(
            "HostNamespacesNotSupported",
            f"the pod of a DaemonSet wants {', '.join(wanted)}, which would be those of another machine",
            verdict,
        )
    return None


def _namespaces(spec: _Spec) -> list[tuple[str, bool]]:
    return [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)]
