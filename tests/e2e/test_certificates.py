"""The certificate of the node's endpoint, asked of a real cluster: approved, denied, late, renewed."""

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlink.testing import Cluster, ControlPlane
from interlink.testing.programs import Programs
from interlink.testing.waiting import until
from tests.support.endpoint import Caller
from tests.support.jobs import end_jobs
from tests.support.pods import Pods

pytestmark = pytest.mark.usefixtures("controllers")


class Requests:
    """The certificate requests of one node."""

    def __init__(self, cluster: Cluster, node_name: str) -> None:
        self._cluster = cluster
        self._node_name = node_name

    def all(self) -> list[dict[str, Any]]:
        items = json.loads(self._cluster.kubectl("get", "csr", "-o", "json"))["items"]
        return [item for item in items if item["metadata"]["name"].startswith(f"interlink-{self._node_name}-")]

    def names(self) -> set[str]:
        return {item["metadata"]["name"] for item in self.all()}

    def wait_new(self, known: set[str]) -> str:
        assert until(lambda: bool(self.names() - known), deadline_s=40, interval_s=0.3), "no new certificate request"
        return (self.names() - known).pop()

    def decide(self, verb: str, name: str) -> None:
        self._cluster.kubectl("certificate", verb, name)


@pytest.fixture
def requests(control_plane: ControlPlane, node_name: str) -> Iterator[Requests]:
    found = Requests(control_plane, node_name)
    yield found
    for name in found.names():
        control_plane.kubectl("delete", "csr", name, "--ignore-not-found")


@pytest.fixture
def stopped_programs(tmp_path: Path, control_plane: ControlPlane, node_name: str) -> Iterator[Programs]:
    """With a node that has no certificate files."""
    without = {"KubeletCertFile": "", "KubeletKeyFile": ""}
    programs = Programs(tmp_path, cluster=control_plane, node_name=node_name, kubelet_keys=without)
    yield programs
    programs.stop()
    end_jobs(programs.jobs)
    control_plane.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def verified(control_plane: ControlPlane, programs: Programs) -> Caller:
    """Calls the endpoint as one that trusts the cluster's authority only."""
    return Caller(programs.kubelet_port, ca=control_plane.ca)


def is_trusted(verified: Caller) -> bool:
    try:
        return verified.get("/healthz").status == 401
    except ssl.SSLCertVerificationError:
        return False


def test_an_approved_certificate_is_shown(programs: Programs, verified: Caller, requests: Requests, pods: Pods) -> None:
    """Until the approval, however late, the endpoint shows its own; then `kubectl logs` verifies it. A restart asks
    again, and removes the request of before."""
    pods.start("p", "echo hello")
    first = requests.wait_new(set())
    assert not is_trusted(verified)
    assert Caller(programs.kubelet_port, ca=None).get("/healthz").status == 401

    requests.decide("approve", first)

    assert until(lambda: is_trusted(verified), deadline_s=30)
    pods.wait("p", "Succeeded")
    assert pods.kubectl("logs", "p") == "hello\n"
    assert programs.kubelet is not None
    for _ in range(2):
        known = requests.names()
        programs.kubelet.restart()
        requests.decide("approve", requests.wait_new(known))
        assert until(lambda: is_trusted(verified), deadline_s=30)
    assert len(requests.all()) == 1


def test_a_kept_certificate_survives_a_restart(
    tmp_path: Path, control_plane: ControlPlane, node_name: str, requests: Requests
) -> None:
    """With a directory for it the cluster is asked once."""
    keys = {"KubeletCertFile": "", "KubeletKeyFile": "", "KubeletCertDir": str(tmp_path / "certificates")}
    with Programs(tmp_path, cluster=control_plane, node_name=node_name, kubelet_keys=keys) as programs:
        verified = Caller(programs.kubelet_port, ca=control_plane.ca)
        requests.decide("approve", requests.wait_new(set()))
        assert until(lambda: is_trusted(verified), deadline_s=30)
        assert programs.kubelet is not None
        programs.kubelet.restart()

        assert is_trusted(verified)
        assert len(requests.all()) == 1
    control_plane.kubectl("delete", "node", node_name, "--wait=false")


def test_a_denied_request_is_asked_again_later(programs: Programs, verified: Caller, requests: Requests) -> None:
    """The log says why there is no certificate; the next request may be approved."""
    first = requests.wait_new(set())
    requests.decide("deny", first)
    assert programs.kubelet is not None
    programs.wait_log(programs.kubelet, f"the certificate request {first} was denied: KubectlDeny")

    second = requests.wait_new({first})

    assert not is_trusted(verified)
    requests.decide("approve", second)
    assert until(lambda: is_trusted(verified), deadline_s=30)
    assert requests.names() == {second}
