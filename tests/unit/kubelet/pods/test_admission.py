"""What a node that is no machine cannot honour."""

from typing import Any

import pytest

from interlink.kubelet.pods import admission
from interlink.kubelet.pods.admission import Verdict
from tests.unit.builders import Document, pod

RULES = {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}
OWN_POLICY = "ContainerRestartPolicyNotSupported"
DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]}

TABLE: list[tuple[Document, Document, str | None, Verdict | None]] = [
    ({}, {}, None, None),
    ({}, {"hostNetwork": True}, None, None),
    ({}, {"os": {"name": "linux"}}, None, None),
    ({}, {"os": {"name": "windows"}}, "PodOSNotSupported", Verdict.FAIL),
    ({}, {"containers": [{"name": "c", "restartPolicy": "Always"}]}, OWN_POLICY, Verdict.FAIL),
    ({}, {"containers": [{"name": "c", "restartPolicy": "Never", **RULES}]}, OWN_POLICY, Verdict.FAIL),
    ({}, {"initContainers": [{"name": "i", "restartPolicy": "Never"}]}, OWN_POLICY, Verdict.FAIL),
    ({}, {"initContainers": [{"name": "i", "restartPolicy": "Always", **RULES}]}, OWN_POLICY, Verdict.FAIL),
    ({}, {"initContainers": [{"name": "i", "restartPolicy": "Always"}, {"name": "j"}]}, None, None),
    (DAEMON, {"containers": [{"name": "c", "restartPolicy": "Never"}]}, OWN_POLICY, Verdict.IGNORE),
    (DAEMON, {}, None, None),
    (DAEMON, {"hostNetwork": True}, "HostNamespacesNotSupported", Verdict.IGNORE),
    (DAEMON, {"hostPID": True}, "HostNamespacesNotSupported", Verdict.IGNORE),
    (DAEMON, {"hostIPC": True}, "HostNamespacesNotSupported", Verdict.IGNORE),
    (DAEMON, {"os": {"name": "windows"}}, "PodOSNotSupported", Verdict.IGNORE),
]


@pytest.mark.parametrize(("metadata", "spec", "reason", "verdict"), TABLE)
def test_the_objection_to(metadata: Document, spec: Any, reason: str | None, verdict: Verdict | None) -> None:
    """A pod that its controller would make again for ever is not failed."""
    found = admission.objection(pod(metadata=metadata, **spec))

    assert (found.reason if found else None, found.verdict if found else None) == (reason, verdict)
