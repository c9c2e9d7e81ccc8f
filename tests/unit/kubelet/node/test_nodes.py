"""What the node says of itself."""

from typing import Any

import msgspec
import pytest

from interlink.kubelet import settings
from interlink.kubelet.node import nodes
from interlink.kubelet.node.site import Site
from interlink.kubelet.settings import KubeletSettings
from interlink.wire.messages import Taint
from tests.unit.builders import NOW, Document, at

FILE = """
InterlinkURL: http://h
InterlinkPort: 3000
Resources: {CPU: 8, Memory: 16Gi, Pods: 20, Accelerators: [{ResourceType: nvidia.com/gpu, Available: 4}]}
NodeLabels: [site=a, kubernetes.io/role=site]
NodeTaints: [{Key: k, Value: v, Effect: NoExecute}]
"""


def made(**environment: str) -> KubeletSettings:
    return settings.load(FILE, {"POD_IP": "10.0.0.1"} | environment, source="vk.yaml", node_name="vk")


def status(site: Site | None = None, present: Document | None = None, seconds: float = 0) -> Document:
    return nodes.node_status(made(), site or Site(), present or {}, at(seconds))


def condition(document: Document, kind: str) -> Any:
    return next(c for c in document["conditions"] if c["type"] == kind)


def test_a_node_offers_what_the_file_says() -> None:
    """Capacity and allocatable are the same."""
    found = status()

    assert found["capacity"] == {
        "cpu": "8",
        "memory": "16Gi",
        "pods": "20",
        "ephemeral-storage": "1000G",
        "nvidia.com/gpu": "4",
    }
    assert found["allocatable"] == found["capacity"]


def test_what_the_site_says_of_itself_wins() -> None:
    """Resource by resource."""
    found = status(Site(resources={"cpu": "64", "amd.com/gpu": "1"}))["capacity"]

    assert (found["cpu"], found["memory"], found["amd.com/gpu"]) == ("64", "16Gi", "1")


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ("", ("True", "InterlinkPingSuccessful", "the site answers")),
        ("no route", ("False", "InterlinkPingFailed", "no route")),
    ],
)
def test_trouble_with_the_site_is_a_condition_of_its_own(trouble: str, expected: tuple[str, str, str]) -> None:
    """InterlinkConnectivity says what is wrong."""
    found = condition(status(Site(trouble=trouble)), "InterlinkConnectivity")

    assert (found["status"], found["reason"], found["message"]) == expected


@pytest.mark.parametrize("trouble", ["", "no route"])
def test_a_node_stays_ready_whatever_the_site_does(trouble: str) -> None:
    """So nobody evicts its pods, and no pressure is ever reported."""
    found = {c["type"]: c["status"] for c in status(Site(trouble=trouble))["conditions"]}

    assert found["Ready"] == "True"
    assert {found[kind] for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")} == {"False"}


def test_a_transition_time_moves_only_when_a_condition_flips() -> None:
    """The heartbeat goes on all the same."""
    later = status(Site(trouble="x"), status(seconds=0), seconds=60)

    ready, connectivity = condition(later, "Ready"), condition(later, "InterlinkConnectivity")
    assert (ready["lastTransitionTime"], ready["lastHeartbeatTime"]) == ("2026-07-14T10:00:00Z", "2026-07-14T10:01:00Z")
    assert connectivity["lastTransitionTime"] == "2026-07-14T10:01:00Z"


def test_a_status_is_a_function_of_its_arguments() -> None:
    """Computed from what Kubernetes has, it is what Kubernetes has."""
    once = status()

    assert nodes.node_status(made(), Site(), once, NOW) == once


@pytest.mark.parametrize("present", [{}, {"conditions": None}, {"conditions": []}])
def test_a_node_without_conditions_gets_all_of_them(present: Document) -> None:
    """A new node has none."""
    assert len(status(present=present)["conditions"]) == 5


def test_a_node_tells_where_its_endpoint_is() -> None:
    """The API server calls it there for logs."""
    found = nodes.node_status(made(KUBELET_PORT="6000"), Site(), {}, NOW)

    assert found["addresses"][0] == {"type": "InternalIP", "address": "10.0.0.1"}
    assert found["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 6000}}


def test_a_node_is_registered_with_its_labels_and_taints() -> None:
    """Those of existing installations, and those of the file, which win."""
    found = nodes.node_object(made(), Site())

    labels = found["metadata"]["labels"]
    assert (labels["type"], labels["site"], labels["kubernetes.io/role"]) == ("virtual-kubelet", "a", "site")
    assert found["spec"]["taints"] == [
        {"key": "virtual-node.interlink/no-schedule", "value": "true", "effect": "NoSchedule"},
        {"key": "k", "value": "v", "effect": "NoExecute"},
    ]


def test_what_kubernetes_knows_stays_until_the_site_has_spoken() -> None:
    """A restart does not shrink the node."""
    present = {"capacity": {"cpu": "64", "example.org/qpu": "2"}}

    silent = status(Site(trouble="away"), present)["capacity"]
    spoken = status(Site(has_spoken=True, resources={"memory": "1Gi"}), present)["capacity"]

    assert (silent["cpu"], silent["example.org/qpu"], silent["memory"]) == ("64", "2", "16Gi")
    assert (spoken["cpu"], spoken["example.org/qpu"], spoken["memory"]) == ("8", "0", "1Gi")


OWN = {"key": "virtual-node.interlink/no-schedule", "value": "true", "effect": "NoSchedule"}
FILED = {"key": "k", "value": "v", "effect": "NoExecute"}
AWAY = {"key": "virtual-node.interlink/site-away", "value": "true", "effect": "NoSchedule"}
FOREIGN = {"key": "admin", "effect": "NoSchedule", "timeAdded": "2026-07-14T10:00:00Z"}


def registered(*taints: Document, site: Site | None = None) -> Document:
    node = nodes.node_object(made(), site or Site())
    node["metadata"]["resourceVersion"] = "7"
    node["spec"]["taints"] += taints
    return node


def taints_after(node: Document, site: Site, *, is_draining: bool = False) -> Any:
    patch = nodes.node_patch(made(), site, node, is_draining=is_draining)
    return None if patch is None else msgspec.json.decode(patch)["spec"]["taints"]


def test_a_node_that_has_its_taints_is_not_patched() -> None:
    """Whoever else has tainted it."""
    assert taints_after(registered(FOREIGN), Site()) is None


def test_a_site_that_is_away_gets_no_new_pods() -> None:
    """And those of others stay as they are."""
    assert taints_after(registered(FOREIGN), Site(trouble="no route")) == [FOREIGN, OWN, FILED, AWAY]


def test_a_site_that_is_back_gets_pods_again() -> None:
    """After a restart as well: the node itself says which taints are ours."""
    assert taints_after(registered(FOREIGN, site=Site(trouble="no route")), Site()) == [FOREIGN, OWN, FILED]


def test_the_sites_own_taints_come_and_go() -> None:
    """As it names them."""
    site = Site(taints=[Taint(key="maintenance", value="now", effect="NoSchedule")])
    named = {"key": "maintenance", "value": "now", "effect": "NoSchedule"}

    assert taints_after(registered(), site) == [OWN, FILED, named]
    assert taints_after(registered(site=site), Site()) == [OWN, FILED]


def test_a_draining_node_gets_no_new_pods() -> None:
    """By a taint, so that a cordon of the administrator stays his."""
    keys = [taint["key"] for taint in taints_after(registered(), Site(), is_draining=True)]

    assert keys[-1] == "virtual-node.interlink/draining"


def test_a_patch_of_taints_holds_for_one_version_of_the_node() -> None:
    """The list is written whole: what another adds meanwhile must not be lost."""
    patch = nodes.node_patch(made(), Site(trouble="x"), registered(), is_draining=False)

    assert patch is not None
    assert msgspec.json.decode(patch)["metadata"]["resourceVersion"] == "7"
