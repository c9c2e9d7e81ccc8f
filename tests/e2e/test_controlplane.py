"""The test-bed itself: what the other end-to-end tests rely on."""

import base64
import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from interlink.testing import Cluster, ControlPlane, GivenCluster, KubectlError, kubectl, ports, waiting

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "alone"},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}


@pytest.mark.usefixtures("controllers")
def test_a_namespace_can_be_created_and_deleted(cluster: Cluster) -> None:
    name = f"plain-{secrets.token_hex(3)}"

    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("delete", "namespace", name, "--timeout=30s")

    with pytest.raises(KubectlError, match="not found"):
        cluster.kubectl("get", "namespace", name)


@pytest.mark.usefixtures("controllers")
def test_a_pod_without_a_node_stays_pending_and_the_scheduler_says_why(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("apply", "--namespace", namespace, "-f", "-", input=json.dumps(selecting("nowhere")))
    condition = 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}'

    is_told = waiting.until(lambda: pod_field(cluster, namespace, condition) == "Unschedulable", deadline_s=30)

    assert is_told
    assert pod_field(cluster, namespace, "jsonpath={.status.phase}") == "Pending"


@pytest.mark.usefixtures("controllers")
def test_a_deployment_makes_a_replica_set(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "deployment", "web", "--image=none", "--namespace", namespace)

    cluster.kubectl("wait", "--for=create", "replicaset", "-l", "app=web", "--namespace", namespace, "--timeout=30s")


def test_a_killed_api_server_comes_back_with_its_data(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "configmap", "kept", "--from-literal=a=1", "--namespace", namespace)

    control_plane.kill_apiserver()
    with pytest.raises(KubectlError):
        control_plane.kubectl("get", "namespaces")
    control_plane.start_apiserver()

    found = control_plane.kubectl("get", "configmap", "kept", "--namespace", namespace, "-o", "jsonpath={.data.a}")
    assert found == "1"


@pytest.mark.usefixtures("controllers")
def test_an_approved_kubelet_certificate_is_signed_by_the_authority(
    control_plane: ControlPlane, node_name: str, tmp_path: Path
) -> None:
    kubeconfig = as_node(control_plane, node_name, tmp_path)
    request = json.dumps(signing_request(node_name))
    GivenCluster(kubeconfig).kubectl("create", "-f", "-", input=request)

    control_plane.kubectl("certificate", "approve", node_name)

    certificate = "jsonpath={.status.certificate}"
    control_plane.kubectl("wait", f"csr/{node_name}", f"--for={certificate}", "--timeout=30s")
    signed = base64.b64decode(control_plane.kubectl("get", "csr", node_name, "-o", certificate))
    authority = x509.load_pem_x509_certificate(control_plane.ca.read_bytes())
    x509.load_pem_x509_certificate(signed).verify_directly_issued_by(authority)


def test_a_port_that_somebody_takes_first_is_given_up(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between choosing a port and binding it another program may come first."""
    taken = int(control_plane.url.rpartition(":")[2])
    offers = iter([taken, ports.free()])
    monkeypatch.setattr(ports, "free", lambda: next(offers))

    with ControlPlane(control_plane.programs) as second:
        assert second.kubectl("get", "--raw", "/readyz") == "ok"
        assert second.url != control_plane.url


def test_the_kubeconfig_is_for_its_owner_only(control_plane: ControlPlane) -> None:
    assert control_plane.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert control_plane.folder.stat().st_mode & 0o777 == 0o700


def selecting(node: str) -> dict[str, Any]:
    return POD | {"spec": POD["spec"] | {"nodeSelector": {"kubernetes.io/hostname": node}}}


def pod_field(cluster: Cluster, namespace: str, path: str) -> str:
    return cluster.kubectl("get", "pod", "alone", "--namespace", namespace, "-o", path)


def as_node(plane: ControlPlane, node: str, folder: Path) -> Path:
    """A kubeconfig with the identity that a kubelet has: only nodes may ask for serving certificates."""
    client = plane.issue_client(f"system:node:{node}", group="system:nodes")
    kubectl.write_config(folder / "node", url=plane.url, ca=plane.ca, client=client)
    return folder / "node"


def signing_request(node: str) -> dict[str, Any]:
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, f"system:node:{node}"),
        ]
    )
    names = x509.SubjectAlternativeName([x509.DNSName(node)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject).add_extension(names, critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    encoded = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    usages = ["digital signature", "server auth"]
    spec = {"request": encoded, "signerName": "kubernetes.io/kubelet-serving", "usages": usages}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": node},
        "spec": spec,
    }
