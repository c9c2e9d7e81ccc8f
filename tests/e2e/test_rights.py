"""The virtual kubelet in a pod, with the rights of `deploy/rbac.yaml` and no others."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from interlink.testing import ControlPlane, UnavailableError
from interlink.testing.errors import KubectlError
from interlink.testing.programs import Programs
from interlink.testing.waiting import until
from tests.support.endpoint import Caller, token_of
from tests.support.jobs import end_jobs
from tests.support.pods import Pods

MANIFEST = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
ACCOUNT = "system:serviceaccount:interlink:virtual-kubelet"
SYSTEM = {"kube-node-lease", "kube-public", "kube-system"}
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
# Where a pod finds its service account; a private mount shows it only to the virtual kubelet.
IN_A_POD = """
mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount /run/lock &&
mount --bind "$1" /run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"
"""


class Right(NamedTuple):
    """`namespace`: the only one in which it is granted; empty for everywhere."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """One of its own, whose API server notes every request."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(POLICY))
    arguments = [f"--audit-policy-file={policy}", f"--audit-log-path={tmp_path}/audit.log"]
    try:
        plane = ControlPlane(apiserver_args=arguments)
    except UnavailableError as error:
        pytest.skip(str(error))
    if plane.missing:
        pytest.skip(f"no {', '.join(plane.missing)} in {plane.programs}")
    with plane:
        yield plane


@pytest.fixture
def cluster(control_plane: ControlPlane) -> ControlPlane:
    return control_plane


@pytest.fixture
def stopped_programs(tmp_path: Path, control_plane: ControlPlane, node_name: str) -> Iterator[Programs]:
    """The virtual kubelet sees what a pod sees: no kubeconfig, a service account's files, two variables."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: install util-linux")
    account = tmp_path / "serviceaccount"
    account.mkdir()
    control_plane.kubectl("apply", "-f", str(MANIFEST))
    token = control_plane.kubectl("-n", "interlink", "create", "token", "virtual-kubelet")
    (account / "token").write_text(token)
    (account / "namespace").write_text("interlink")
    shutil.copy(control_plane.ca, account / "ca.crt")
    keys = {"KubeletCertFile": "", "KubeletKeyFile": ""}
    programs = Programs(tmp_path / "p", cluster=control_plane, node_name=node_name, kubelet_keys=keys)
    assert programs.kubelet is not None
    wrapped = ["unshare", "--map-root-user", "--mount", "sh", "-c", IN_A_POD, "sh", str(account)]
    programs.kubelet.argv = [*wrapped, *programs.kubelet.argv]
    del programs.kubelet.environ["KUBECONFIG"]
    host, port = control_plane.url.removeprefix("https://").split(":")
    programs.kubelet.environ |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    yield programs
    programs.stop()
    end_jobs(programs.jobs)


def test_the_manifest_gives_exactly_what_is_used(
    control_plane: ControlPlane, programs: Programs, pods: Pods, tmp_path: Path, node_name: str
) -> None:
    """Everything that a virtual kubelet does is done once; no request is refused, and no right is left over."""
    do_everything(control_plane, programs, pods, node_name)

    requests = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    ours = [request for request in requests if request["user"]["username"] == ACCOUNT]
    refused = [r["requestURI"] for r in ours if r["responseStatus"]["code"] in (401, 403)]
    assert refused == []
    assert used(ours) == granted()


def do_everything(control_plane: ControlPlane, programs: Programs, pods: Pods, node_name: str) -> None:
    """A pod with all kinds of input, a log, callers of both kinds, a certificate, a repeated event, a taint, a
    deletion, a restart."""
    assert programs.kubelet is not None
    pods.kubectl("create", "configmap", "cm", "--from-literal=k=v")
    pods.apply(
        pod_with_inputs(pods), pods.pod("waits", "true", volumes=[{"name": "v", "secret": {"secretName": "late"}}])
    )
    pods.wait("p", "Running")
    known = approve(control_plane, set())
    caller = Caller(programs.kubelet_port, ca=control_plane.ca)
    pods.wait_until(lambda: log_of(pods) == "v\n", "the log can be read")
    caller.wait("/pods", 200, token=token_of(control_plane, pods.namespace, "reader", "proxy"))
    pods.wait_until(lambda: is_repeated(pods), "an event is repeated")
    programs.kubelet.restart()
    approve(control_plane, known)
    control_plane.kubectl("label", "node", node_name, "virtual-node.interlink/type-")
    control_plane.kubectl("taint", "node", node_name, "virtual-node.interlink/no-schedule-")
    pods.wait_until(lambda: has_taint(control_plane, node_name), "the node has its taint again")
    pods.kubectl("delete", "pod", "p", "waits", "--grace-period=1", "--timeout=30s")
    programs.kubelet.terminate()
    programs.kubelet.start()


def pod_with_inputs(pods: Pods) -> dict[str, Any]:
    volumes = [{"name": "cm", "configMap": {"name": "cm"}}]
    document = pods.pod("p", volumes=volumes, automountServiceAccountToken=True)
    mounts = [{"name": "cm", "mountPath": "/etc/cm"}]
    document["spec"]["containers"] = [pods.container("c", "cat /etc/cm/k; echo; sleep 300", volumeMounts=mounts)]
    return document


def approve(control_plane: ControlPlane, known: set[str]) -> set[str]:
    """Wait for a new certificate request and approve it; all that are known then."""
    assert until(lambda: bool(request_names(control_plane) - known), deadline_s=30, interval_s=0.3)
    for name in request_names(control_plane) - known:
        control_plane.kubectl("certificate", "approve", name)
    return request_names(control_plane)


def request_names(control_plane: ControlPlane) -> set[str]:
    return set(control_plane.kubectl("get", "csr", "-o", "jsonpath={.items[*].metadata.name}").split())


def log_of(pods: Pods) -> str:
    """Or why there is none yet: until the approval the certificate cannot be verified."""
    try:
        return pods.kubectl("logs", "p")
    except KubectlError as error:
        return str(error)


def has_taint(control_plane: ControlPlane, node_name: str) -> bool:
    keys = control_plane.kubectl("get", "node", node_name, "-o", "jsonpath={.spec.taints[*].key}")
    return "virtual-node.interlink/no-schedule" in keys.split()


def is_repeated(pods: Pods) -> bool:
    counts = pods.kubectl("get", "events", "-o", "jsonpath={.items[*].count}").split()
    return any(int(count) > 1 for count in counts)


def used(requests: list[dict[str, Any]]) -> set[Right]:
    """What is done in one namespace of Kubernetes itself, and nowhere else, needs a right there only."""
    places: dict[Right, set[str]] = {}
    for request in requests:
        what = request["objectRef"]
        resource = "/".join(part for part in (what["resource"], what.get("subresource")) if part)
        is_namespaced = resource != "namespaces"
        right = Right(request["verb"], what.get("apiGroup", ""), resource)
        places.setdefault(right, set()).add(what.get("namespace", "") if is_namespaced else "")
    return {
        right._replace(namespace="".join(found)) if len(found) == 1 and found <= SYSTEM else right
        for right, found in places.items()
    }


def granted() -> set[Right]:
    """Of the roles that are bound to the account."""
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    bindings = [document for document in documents if document["kind"].endswith("Binding")]
    subjects = [{"kind": "ServiceAccount", "name": "virtual-kubelet", "namespace": "interlink"}]
    assert all(binding["subjects"] == subjects for binding in bindings)
    bound = {key(binding["roleRef"] | {"namespace": binding["metadata"].get("namespace", "")}) for binding in bindings}
    roles = [document for document in documents if document["kind"] in ("Role", "ClusterRole")]
    assert {key(role | role["metadata"]) for role in roles} == bound
    return {
        Right(verb, group, resource, role["metadata"].get("namespace", ""))
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def key(role: dict[str, Any]) -> tuple[str, str, str]:
    return role["kind"], role["name"], role.get("namespace", "")
