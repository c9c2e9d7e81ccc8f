"""The node's Lease: what it says and how it is renewed."""

from datetime import datetime
from typing import Any, cast

import msgspec
import pytest

from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import Conflict, KubeError, NotFound
from interlink.kubelet import settings
from interlink.kubelet.node.keeping import NodeKeeper
from interlink.kubelet.node.site import Site

SETTINGS = settings.load("InterlinkURL: http://h\nInterlinkPort: 1\n", {}, source="vk.yaml", node_name="vk")
Document = dict[str, Any]


class Kubernetes:
    """Has the node; its Lease is there or not, and may be made by another in between."""

    def __init__(self, *, has_lease: bool, create_error: KubeError | None = None) -> None:
        self._has_lease = has_lease
        self._create_error = create_error
        self.leases: list[tuple[str, Document]] = []

    async def get(self, path: str) -> bytes:
        return msgspec.json.encode({"metadata": {"name": "vk", "uid": "node-uid"}, "spec": {}, "status": {}})

    async def create(self, path: str, body: bytes) -> bytes:
        if path == paths.NODE_LEASES:
            if self._create_error is not None:
                raise self._create_error
            self.leases.append(("create", msgspec.json.decode(body)))
            self._has_lease = True
        return b"{}"

    async def patch(self, path: str, body: bytes, **_: str) -> bytes:
        if path == paths.node_lease("vk"):
            if not self._has_lease:
                raise NotFound("no lease")
            self.leases.append(("patch", msgspec.json.decode(body)))
        return b"{}"


def keeper(kubernetes: Kubernetes) -> NodeKeeper:
    return NodeKeeper(cast("KubeClient", kubernetes), SETTINGS)


async def test_the_lease_says_that_the_node_lives() -> None:
    """As a kubelet's: its holder is the node, it lasts 40 seconds and goes with the node object."""
    kubernetes = Kubernetes(has_lease=False)
    node = keeper(kubernetes)
    await node.report(Site())
    await node.renew_lease()

    [(verb, lease)] = kubernetes.leases
    assert (verb, lease["kind"], lease["apiVersion"]) == ("create", "Lease", "coordination.k8s.io/v1")
    assert lease["metadata"] == {
        "name": "vk",
        "namespace": "kube-node-lease",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "vk", "uid": "node-uid"}],
    }
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("vk", 40)


async def test_a_renewal_moves_the_time() -> None:
    """Microseconds and UTC, as Kubernetes wants a MicroTime."""
    kubernetes = Kubernetes(has_lease=True)
    node = keeper(kubernetes)
    await node.report(Site())
    await node.renew_lease()
    await node.renew_lease()

    assert [verb for verb, _ in kubernetes.leases] == ["patch", "patch"]
    first, second = (lease["spec"]["renewTime"] for _, lease in kubernetes.leases)
    assert first < second
    assert datetime.strptime(first, "%Y-%m-%dT%H:%M:%S.%f%z").utcoffset() is not None


async def test_a_lease_without_a_node_is_not_made() -> None:
    """It would belong to nothing and never go."""
    kubernetes = Kubernetes(has_lease=False)
    await keeper(kubernetes).renew_lease()

    assert kubernetes.leases == []


async def test_a_lease_that_another_has_made_meanwhile_is_fine() -> None:
    """The next renewal finds it."""
    kubernetes = Kubernetes(has_lease=False, create_error=Conflict("it is there"))
    node = keeper(kubernetes)
    await node.report(Site())

    await node.renew_lease()


async def test_a_renewal_that_fails_is_told() -> None:
    """Its caller repeats it."""

    class Away(Kubernetes):
        async def patch(self, path: str, body: bytes, **_: str) -> bytes:
            raise KubeError("away")

    node = keeper(Away(has_lease=True))
    node._uid = "node-uid"
    with pytest.raises(KubeError, match="away"):
        await node.renew_lease()
