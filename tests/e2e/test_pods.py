"""What a user sees of pods that run elsewhere."""

import base64
import hashlib
import subprocess

import pytest

from interlink.testing import Cluster
from interlink.testing.programs import Programs
from tests.support.pods import Pods, exit_codes

pytestmark = pytest.mark.usefixtures("programs")


def test_exit_code_t06(pods: Pods) -> None:
    """A program that exits 42 makes its pod Failed with that code, its reason and its times."""
    pods.start("p", "exit 42")

    status = pods.wait("p", "Failed")["status"]

    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (42, "Error")
    assert terminated["startedAt"] <= terminated["finishedAt"]
    pods.assert_started_once(1)


def test_containers_run_at_the_same_time_t07(pods: Pods) -> None:
    """Containers share an emptyDir and run together: one waits for the file that the other writes, then fails."""
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    document = pods.pod("p", volumes=[{"name": "data", "emptyDir": {}}])
    document["spec"]["containers"] = [
        pods.container("main", "echo x > /data/done; exit 3", **mount),
        pods.container("wait", "until [ -f /data/done ]; do sleep 0.1; done", **mount),
    ]
    pods.apply(document)

    status = pods.wait("p", "Failed")["status"]

    assert exit_codes(status["containerStatuses"]) == {"main": 3, "wait": 0}


def test_init_containers_in_order_t08(pods: Pods) -> None:
    """The first failing init container ends the pod; the main container never starts."""
    document = pods.pod("p", "echo never")
    document["spec"]["initContainers"] = [pods.container("i0", "exit 0"), pods.container("i1", "exit 7")]
    pods.apply(document)

    status = pods.wait("p", "Failed")["status"]

    assert exit_codes(status["initContainerStatuses"]) == {"i0": 0, "i1": 7}
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert {line.split()[1] for line in pods.starts()} == {"i0", "i1"}


def test_init_containers_that_succeed(pods: Pods) -> None:
    """After its init containers the main container runs, and the pod shows Running."""
    document = pods.pod("p", "sleep 2")
    document["spec"]["initContainers"] = [pods.container("i0", "exit 0")]
    pods.apply(document)

    pods.wait("p", "Running")
    pods.wait("p", "Succeeded")


def test_config_map_and_secret(pods: Pods) -> None:
    """Values reach the environment, and files are byte for byte those of the ConfigMap and the Secret."""
    data = bytes(range(256))
    pods.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"greeting": "no newline"}}
        | {"binaryData": {"all.bin": base64.b64encode(data).decode()}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "pass'w$(x)"}},
    )
    document = pods.pod(
        "p",
        volumes=[
            {"name": "cm", "configMap": {"name": "cm"}},
            {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
        ],
    )
    document["spec"]["containers"] = [
        pods.container(
            "c",
            'cd /etc/cm; sha256sum < all.bin; wc -c < greeting; stat -Lc %a /etc/s/password; printf "%s|" "$PW"',
            env=[{"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}],
            volumeMounts=[{"name": "cm", "mountPath": "/etc/cm"}, {"name": "s", "mountPath": "/etc/s"}],
        )
    ]
    pods.apply(document)
    pods.wait("p", "Succeeded")

    log = pods.kubectl("logs", "p")

    assert log.splitlines() == [f"{hashlib.sha256(data).hexdigest()}  -", "10", "400", "pass'w$(x)|"]


def test_service_account_token(pods: Pods) -> None:
    """A pod finds its token, namespace and the cluster's certificate where every pod finds them."""
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    pods.start(
        "p", f"cat {folder}/namespace; test -s {folder}/token -a -s {folder}/ca.crt", automountServiceAccountToken=True
    )

    pods.wait("p", "Succeeded")

    assert pods.kubectl("logs", "p") == pods.namespace


def test_missing_reference_t17(pods: Pods) -> None:
    """A pod whose Secret is missing waits and says so, without a job; it starts when the Secret comes."""
    reference = {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k"}}}
    document = pods.pod("p")
    document["spec"]["containers"] = [pods.container("c", "echo $PW", env=[reference])]
    pods.apply(document)

    def waits() -> bool:
        statuses = pods.get("p")["status"].get("containerStatuses", [{}])
        waiting = statuses[0].get("state", {}).get("waiting", {})
        return waiting.get("reason") == "CreateContainerConfigError" and "late" in waiting["message"]

    pods.wait_until(waits, "the pod says what it waits for")
    assert pods.starts() == {}
    pods.kubectl("create", "secret", "generic", "late", "--from-literal=k=now")
    pods.wait("p", "Succeeded")
    assert pods.kubectl("logs", "p") == "now\n"


@pytest.mark.usefixtures("controllers")
def test_job_with_20_completions(pods: Pods) -> None:
    """A Kubernetes Job completes, and each of its payloads has started exactly once."""
    pods.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "many"},
            "spec": {"completions": 20, "parallelism": 20, "template": {"spec": pods.spec("sleep 1")}},
        }
    )

    pods.kubectl("wait", "--for=condition=complete", "job/many", "--timeout=90s", timeout_s=100)

    pods.assert_started_once(20)
    assert all(pods.job_ids().values())


def test_rejected_pod(pods: Pods) -> None:
    """A pod that the site cannot run fails at once, with the site's own words."""
    document = pods.pod("p")
    document["spec"]["containers"] = [{"name": "c", "image": "busybox"}]
    pods.apply(document)

    status = pods.wait("p", "Failed")["status"]

    assert status["reason"] == "JobRejected"
    assert "has no command" in status["message"]
    assert "waiting" in status["containerStatuses"][0]["state"]


def test_log_follows_line_by_line_t14(pods: Pods) -> None:
    """`kubectl logs -f` shows each line while the program runs, and ends with it; also the last lines, and none."""
    gate = pods.ledger.with_name("gate")
    pods.start("p", f"echo first; until [ -e {gate} ]; do sleep 0.1; done; echo second; echo third")
    pods.wait("p", "Running")
    follower = pods.follow_log("p")
    assert follower.readline() == "first\n"

    gate.touch()

    assert follower.read() == "second\nthird\n"
    pods.wait("p", "Succeeded")
    assert pods.kubectl("logs", "p", "--tail=1") == "third\n"
    assert pods.kubectl("logs", "p", "--tail=0") == ""
    assert pods.kubectl("logs", "p", "--timestamps").splitlines()[0].endswith("Z first")


def test_no_secret_value_is_left_anywhere(pods: Pods, programs: Programs) -> None:
    """Neither logs, cache, job directory nor the process table hold a Secret's value once the job has ended."""
    value = "correct-horse-battery-staple"
    pods.kubectl("create", "secret", "generic", "s", f"--from-literal=k={value}")
    document = pods.pod("p", volumes=[{"name": "s", "secret": {"secretName": "s"}}])
    reference = {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    document["spec"]["containers"] = [
        pods.container(
            "c",
            'test "$PW" = "$(cat /s/k)"; sleep 2',
            env=[reference],
            volumeMounts=[{"name": "s", "mountPath": "/s"}],
        )
    ]
    pods.apply(document)
    pods.wait("p", "Running")
    processes = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    pods.wait("p", "Succeeded")

    assert value not in processes
    for path in programs.folder.rglob("*"):
        if path.is_file():
            assert value.encode() not in path.read_bytes(), path


def test_graceful_delete_t21(pods: Pods) -> None:
    """Deleting a pod ends its program with TERM; the object goes only after the program has ended."""
    farewell = pods.ledger.with_name("farewell")
    pods.start("p", f"trap 'echo bye >> {farewell}; exit 0' TERM; while :; do sleep 0.1; done")
    pods.wait("p", "Running")

    pods.kubectl("delete", "pod", "p", "--timeout=25s")

    assert farewell.read_text() == "bye\n"


def test_delete_ignoring_term_is_killed_after_grace(pods: Pods, cluster: Cluster) -> None:
    """A program that ignores TERM is killed when the grace period of the deletion is over."""
    pods.start("p", "trap '' TERM; while :; do sleep 0.1; done")
    pods.wait("p", "Running")

    pods.kubectl("delete", "pod", "p", "--grace-period=2", "--timeout=20s")

    assert cluster.kubectl("-n", pods.namespace, "get", "pods", "-o", "name") == ""
