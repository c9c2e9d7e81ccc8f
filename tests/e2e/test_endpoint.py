"""The node's HTTPS endpoint: who may call it, and what it answers."""

import re
from pathlib import Path

import pytest

from interlink.testing import ControlPlane
from interlink.testing.certificates import Authority
from interlink.testing.programs import Programs
from tests.support.endpoint import Caller, caller, token_of
from tests.support.pods import Pods

PATHS = [
    "/pods",
    "/runningpods/",
    "/stats/summary",
    "/metrics/resource",
    "/metrics",
    "/healthz",
    "/configz",
    "/nothing",
]


@pytest.fixture
def node(control_plane: ControlPlane, programs: Programs) -> Caller:
    return caller(control_plane, programs.kubelet_port)


def test_anonymous_callers_are_refused(node: Caller) -> None:
    """Whatever they ask for, 401; that a path does not exist is not told either."""
    log = "/containerLogs/ns/p/c"

    assert {node.get(path).status for path in [*PATHS, log, "/exec/ns/p/c"]} == {401}


def test_a_wrong_token_is_refused(node: Caller) -> None:
    """As if there were none."""
    assert node.get("/pods", token="guessed").status == 401
    assert node.get("/pods", token="").status == 401


def test_a_known_user_without_rights_is_refused(node: Caller, control_plane: ControlPlane, namespace: str) -> None:
    """403, with what would be needed."""
    token = token_of(control_plane, namespace, "nobody")

    answer = node.get("/metrics/resource", token=token)

    needed = f"user=system:serviceaccount:{namespace}:nobody, verb=get, resource=nodes, subresource=metrics"
    assert answer == (403, f"Forbidden ({needed})")


def test_a_token_opens_what_its_rights_say(node: Caller, control_plane: ControlPlane, namespace: str) -> None:
    """nodes/metrics is for metrics only, nodes/pods for pods, nodes/proxy for all that has no right of its own."""
    metrics = token_of(control_plane, namespace, "metrics", "metrics")
    pods = token_of(control_plane, namespace, "pods", "pods")
    proxy = token_of(control_plane, namespace, "proxy", "proxy")

    found = {who: [node.get(path, token=t).status for path in PATHS] for who, t in
             {"metrics": metrics, "pods": pods, "proxy": proxy}.items()}  # fmt: skip

    assert found == {
        "metrics": [403, 403, 403, 200, 200, 403, 403, 403],
        "pods": [200, 200, 403, 403, 403, 403, 403, 403],
        "proxy": [200, 200, 403, 403, 403, 200, 200, 404],
    }


def test_a_client_certificate_is_a_user(node: Caller, control_plane: ControlPlane) -> None:
    """Its organisation is the user's group, which here may do everything; the authority is the published one."""
    node.wait("/pods", 200, client=control_plane.admin)

    assert node.get("/pods", client=control_plane.issue_client("eve")).status == 403


def test_a_certificate_of_another_authority_is_none(
    node: Caller, control_plane: ControlPlane, programs: Programs
) -> None:
    """The connection is refused, however great the name in it."""
    node.wait("/pods", 200, client=control_plane.admin)
    forged = Authority(programs.folder).issue_client("admin", group="system:masters")

    with pytest.raises(OSError):
        node.get("/pods", client=forged)


def test_streams_are_not_possible_yet(node: Caller, control_plane: ControlPlane, pods: Pods) -> None:
    """501 with a sentence; kubectl shows it."""
    node.wait("/pods", 200, client=control_plane.admin)
    asked = {name: node.get(f"/{name}/ns/p/c", client=control_plane.admin, method="POST")
             for name in ("exec", "attach", "portForward", "run")}  # fmt: skip

    assert {answer.status for answer in asked.values()} == {501}
    assert asked["exec"].text.startswith("exec is not possible on this node yet")


def test_pods_and_running_pods(node: Caller, control_plane: ControlPlane, pods: Pods) -> None:
    """The complete objects, and of those that run only what identifies them."""
    pods.start("done", "true")
    pods.start("runs", "sleep 60")
    pods.wait("done", "Succeeded")
    pods.wait("runs", "Running")

    everything = node.wait("/pods", 200, client=control_plane.admin).json
    running = node.get("/runningpods/", client=control_plane.admin).json

    assert {p["metadata"]["name"]: p["status"]["phase"] for p in everything["items"]} == {
        "done": "Succeeded", "runs": "Running"
    }  # fmt: skip
    assert [(p["metadata"]["name"], p["spec"]["containers"][0]["name"]) for p in running["items"]] == [("runs", "c0")]


def test_configz_says_how_callers_are_checked(node: Caller, control_plane: ControlPlane) -> None:
    """In the form of a kubelet's configuration."""
    found = node.wait("/configz", 200, client=control_plane.admin).json["kubeletconfig"]

    assert (found["authorization"]["mode"], found["authentication"]["anonymous"]["enabled"]) == ("Webhook", False)


def test_kubectl_logs_verifies_both_sides(pods: Pods, programs: Programs) -> None:
    """The API server checks the endpoint's certificate, and the endpoint the API server's."""
    pods.start("p", "echo hello")
    pods.wait("p", "Succeeded")

    assert pods.kubectl("logs", "p") == "hello\n"
    assert pods.kubectl("logs", "p", "--limit-bytes=3") == "hel"


def test_what_containers_use(node: Caller, control_plane: ControlPlane, pods: Pods) -> None:
    """As metrics-server reads it: labels by their place, CPU and memory that are not zero, a time on each sample."""
    pods.start("busy", "while :; do :; done")
    pods.start("done", "true")
    pods.wait("busy", "Running")
    pods.wait("done", "Succeeded")
    labels = f'{{container="c0",namespace="{pods.namespace}",pod="busy"}}'
    sample = re.compile(rf"^container_cpu_usage_seconds_total{re.escape(labels)} ([\d.]+) (\d{{13}})$", re.MULTILINE)

    def page() -> str:
        return node.get("/metrics/resource", client=control_plane.admin).text

    node.wait("/pods", 200, client=control_plane.admin)
    pods.wait_until(lambda: bool(sample.search(page())), "the use of CPU time")
    found = dict(line.split(" ")[:2] for line in page().splitlines() if not line.startswith("#"))
    assert float(found[f"container_cpu_usage_seconds_total{labels}"]) > 0
    assert float(found[f"container_memory_working_set_bytes{labels}"]) > 100_000
    assert float(found["node_cpu_usage_seconds_total"]) > 0
    assert not [name for name in found if 'pod="done"' in name]
    summary = node.get("/stats/summary", client=control_plane.admin).json
    assert [pod["podRef"]["name"] for pod in summary["pods"]] == ["busy"]
    assert summary["pods"][0]["containers"][0]["cpu"]["usageCoreNanoSeconds"] > 0


def test_with_authentication_switched_off_everybody_is_served(
    tmp_path: Path, control_plane: ControlPlane, node_name: str
) -> None:
    """For a site whose cluster role cannot be changed; a firewall must do it then."""
    keys = {"KubeletAuthentication": "none"}
    with Programs(tmp_path, cluster=control_plane, node_name=node_name, kubelet_keys=keys) as programs:
        node = caller(control_plane, programs.kubelet_port)

        assert node.get("/pods").status == 200
        assert node.get("/configz").json["kubeletconfig"]["authorization"]["mode"] == "AlwaysAllow"
    control_plane.kubectl("delete", "node", node_name, "--wait=false")
