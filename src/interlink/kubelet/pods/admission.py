"""What this node cannot honour, said before anything is submitted; pure.

What a site cannot do (an unknown kind of volume, an image that is not there) its plugin says by itself.
"""

import enum

import msgspec

from interlink.model.pods import Pod, PodSpec

_OS, _POLICIES, _NAMESPACES = "PodOSNotSupported", "ContainerRestartPolicyNotSupported", "HostNamespacesNotSupported"
REASONS = (_OS, _POLICIES, _NAMESPACES)
"""Of every objection."""


class Verdict(enum.Enum):
    FAIL = "the pod fails"
    IGNORE = "the pod stays pending: its controller would replace a failed one for ever"


class Objection(msgspec.Struct, frozen=True):
    """`reason` is a word for events and statuses."""

    reason: str
    message: str
    verdict: Verdict


def objection(pod: Pod) -> Objection | None:
    is_daemon = any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or [])
    verdict = Verdict.IGNORE if is_daemon else Verdict.FAIL
    os = pod.spec.os
    if os is not None and os.name not in ("", "linux"):
        return Objection(_OS, f"this node runs linux, the pod wants {os.name}", verdict)
    if names := _with_policies_of_their_own(pod.spec):
        return Objection(
            _POLICIES,
            f"containers start again by the pod's restartPolicy here, not by one of their own: {', '.join(names)}",
            verdict,
        )
    wanted = [name for name, is_set in _wishes(pod.spec) if is_set]
    if is_daemon and wanted:
        return Objection(
            _NAMESPACES,
            f"the pod of a DaemonSet wants {', '.join(wanted)}, which would be those of another machine",
            verdict,
        )
    return None


def _wishes(spec: PodSpec) -> list[tuple[str, bool | None]]:
    return [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)]


def _with_policies_of_their_own(spec: PodSpec) -> list[str]:
    """A sidecar has its policy, which is what makes it one, and no rules."""
    init, main = spec.init_containers or [], spec.containers or []
    return [
        *(c.name for c in init if c.restart_policy not in (None, "Always") or c.restart_policy_rules),
        *(c.name for c in main if c.restart_policy is not None or c.restart_policy_rules),
    ]
