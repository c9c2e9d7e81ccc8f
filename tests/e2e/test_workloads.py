"""What controllers make on the node: Jobs, Deployments, StatefulSets, DaemonSets, scheduled by the real scheduler."""

import json
import os
import signal
from datetime import datetime
from typing import Any

import pytest

from interlink.testing.programs import Programs
from tests.support.jobs import living_jobs
from tests.support.pods import Document, Pods

SERVE = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.2; done"
NO_SCHEDULE = {"key": "virtual-node.interlink/no-schedule", "operator": "Exists"}
LABELS = {"app": "x"}

pytestmark = pytest.mark.usefixtures("controllers", "programs")


def template(pods: Pods, script: str, *tolerations: Document, **extra: Any) -> Document:
    """A pod that the scheduler brings to the test's node."""
    spec = pods.spec(script, **({"restartPolicy": "Always", "terminationGracePeriodSeconds": 5} | extra))
    spec["nodeSelector"] = {"kubernetes.io/hostname": spec.pop("nodeName")}
    spec["tolerations"] = [NO_SCHEDULE, *tolerations]
    return {"metadata": {"labels": LABELS}, "spec": spec}


def controller(kind: str, template_: Document, **spec: Any) -> Document:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    selector = {} if kind == "Job" else {"selector": {"matchLabels": LABELS}}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": {**selector, **spec, "template": template_},
    }


def test_a_job_runs_to_completion_and_retries(programs: Programs, pods: Pods) -> None:
    """Three completions, of which one fails once (T06)."""
    once = f"mkdir {programs.folder}/failed && exit 42; exit 0"
    pods.apply(controller("Job", template(pods, once, restartPolicy="Never"), completions=3, backoffLimit=2))

    pods.kubectl("wait", "--for=condition=complete", "job/x", "--timeout=90s")

    codes = sorted(p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for p in pods.all())
    assert codes == [0, 0, 0, 42]
    pods.assert_started_once(4)


def test_a_deployment_is_rolled_out_scaled_and_removed(programs: Programs, pods: Pods) -> None:
    """Readiness is real, so the roll-out ends; a deleted pod is replaced."""
    pods.apply(controller("Deployment", template(pods, SERVE), replicas=2))
    pods.kubectl("rollout", "status", "deployment/x", "--timeout=90s")
    victim = pods.all()[0]["metadata"]["name"]

    pods.kubectl("delete", "pod", victim, "--timeout=60s")
    pods.kubectl("rollout", "status", "deployment/x", "--timeout=90s")
    pods.kubectl("set", "env", "deployment/x", "ROUND=2")
    pods.kubectl("rollout", "status", "deployment/x", "--timeout=90s")
    pods.kubectl("delete", "deployment", "x", "--timeout=30s")

    pods.wait_until(lambda: pods.all() == [], "no pod is left")
    pods.wait_until(lambda: living_jobs(programs.jobs) == [], "no job is left")


def test_a_stateful_set_starts_in_order(pods: Pods) -> None:
    """The second pod is made when the first is ready, and comes back under its name."""
    pods.apply(controller("StatefulSet", template(pods, SERVE), replicas=2, serviceName="x"))
    pods.kubectl("rollout", "status", "statefulset/x", "--timeout=90s")
    first = pods.get("x-0")["metadata"]["uid"]

    pods.kubectl("delete", "pod", "x-0", "--timeout=60s")
    pods.kubectl("rollout", "status", "statefulset/x", "--timeout=90s")

    assert pods.get("x-0")["metadata"]["uid"] != first
    pods.kubectl("delete", "statefulset", "x", "--timeout=30s")


def test_a_daemon_set_runs_where_it_may(pods: Pods) -> None:
    """One that wants the network of its node stays pending with the reason, without end and without a loop."""
    pods.apply(controller("DaemonSet", template(pods, SERVE, hostNetwork=True)))

    def reason() -> str | None:
        states = [p["status"].get("containerStatuses", [{}])[0].get("state", {}) for p in pods.all()]
        return states[0].get("waiting", {}).get("reason") if states else None

    pods.wait_until(lambda: reason() == "HostNamespacesNotSupported", "the reason is told")
    [first] = [p["metadata"]["uid"] for p in pods.all()]
    pods.kubectl("patch", "daemonset", "x", "-p", '{"spec":{"template":{"spec":{"hostNetwork":false}}}}')
    pods.kubectl("rollout", "status", "daemonset/x", "--timeout=90s")

    [second] = pods.all()
    assert second["metadata"]["uid"] != first
    assert second["status"]["phase"] == "Running"
    pods.kubectl("delete", "daemonset", "x", "--timeout=30s")


def test_a_deployment_that_is_rejected_makes_no_storm(pods: Pods) -> None:
    """Each pod fails with the site's own words, and the next one waits, longer each time (T13)."""
    broken = template(pods, SERVE)
    broken["spec"]["containers"][0].pop("command")
    pods.apply(controller("Deployment", broken, replicas=1))

    def has_backed_off() -> bool:
        states = [p["status"].get("containerStatuses", [{}])[0].get("state", {}) for p in pods.all()]
        return any(s.get("waiting", {}).get("reason") == "RejectedBackOff" for s in states)

    pods.wait_until(has_backed_off, "the next pod waits")
    failed = [p for p in pods.all() if p["status"]["phase"] == "Failed"]
    assert "has no command" in failed[0]["status"]["message"]
    pods.wait_until(lambda: len(pods.all()) >= 4, "some more have been tried", deadline_s=90)
    made = sorted(datetime.fromisoformat(p["metadata"]["creationTimestamp"]) for p in pods.all())
    assert (made[3] - made[0]).total_seconds() >= 2, "the pauses are at least 1 and 2 s long"
    pods.kubectl("delete", "deployment", "x", "--timeout=30s")


def test_nothing_new_is_scheduled_while_the_site_is_away(programs: Programs, pods: Pods) -> None:
    """A taint keeps new pods away; those that run stay Running and the node stays Ready; then the taint goes."""
    pods.apply(controller("Deployment", template(pods, SERVE), replicas=1))
    pods.kubectl("rollout", "status", "deployment/x", "--timeout=90s")
    programs.server.kill()
    away = "virtual-node.interlink/site-away"
    pods.wait_until(lambda: away in taints(pods, programs), "the node is tainted")

    pods.kubectl("scale", "deployment", "x", "--replicas=2")
    pods.wait_until(lambda: len(pods.all()) == 2, "a second pod is wanted")

    assert node(pods, programs)["Ready"] == "True"
    assert node(pods, programs)["InterlinkConnectivity"] == "False"
    assert sorted(p["status"]["phase"] for p in pods.all()) == ["Pending", "Running"]
    programs.server.start()
    pods.wait_until(lambda: away not in taints(pods, programs), "the taint goes")
    pods.kubectl("rollout", "status", "deployment/x", "--timeout=90s")
    pods.kubectl("delete", "deployment", "x", "--timeout=30s")


def taints(pods: Pods, programs: Programs) -> list[str]:
    document = json.loads(pods.kubectl("get", "node", programs.node_name, "-o", "json"))
    return [taint["key"] for taint in document["spec"].get("taints", [])]


def node(pods: Pods, programs: Programs) -> dict[str, str]:
    """The node's conditions."""
    document = json.loads(pods.kubectl("get", "node", programs.node_name, "-o", "json"))
    return {condition["type"]: condition["status"] for condition in document["status"]["conditions"]}


def test_a_drained_node_ends_when_its_pods_have(programs: Programs, pods: Pods) -> None:
    """DrainSeconds: after SIGTERM nothing new is scheduled, and the virtual kubelet stays for its last pod."""
    assert programs.kubelet is not None
    config = programs.folder / "virtual-kubelet.yaml"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"DrainSeconds": 60}))
    programs.kubelet.restart()
    gate = programs.folder / "gate"
    pods.start("last", f"until [ -e {gate} ]; do sleep 0.1; done")
    pods.wait("last", "Running")

    assert programs.kubelet.pid is not None
    os.kill(programs.kubelet.pid, signal.SIGTERM)
    draining = "virtual-node.interlink/draining"
    pods.wait_until(lambda: draining in taints(pods, programs), "the node is tainted")
    gate.touch()

    assert programs.kubelet.await_exit() == 0
    assert pods.get("last")["status"]["phase"] == "Succeeded"
    programs.kubelet.start()
    pods.wait_until(lambda: draining not in taints(pods, programs), "the taint goes")


def test_a_node_that_is_deleted_comes_back(programs: Programs, pods: Pods) -> None:
    """Its pods go on."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")
    pods.kubectl("delete", "node", programs.node_name, "--wait=false")

    pods.wait_until(lambda: programs.node_name in pods.kubectl("get", "nodes", "-o", "name"), "the node is back")
    pods.wait_until(lambda: node(pods, programs).get("Ready") == "True", "it is ready")

    assert pods.get("p")["status"]["phase"] == "Running"


def test_a_pods_time_is_over(programs: Programs, pods: Pods) -> None:
    """activeDeadlineSeconds: the job ends, the pod has failed with the reason, and stays."""
    pods.start("p", SERVE, activeDeadlineSeconds=4, terminationGracePeriodSeconds=5)

    status = pods.wait("p", "Failed")["status"]

    assert status["reason"] == "DeadlineExceeded"
    assert living_jobs(programs.jobs) == []


def test_a_copied_job_id_is_of_no_use(pods: Pods) -> None:
    """A manifest that was exported with its annotations runs again, under an id of its own (S4)."""
    document = pods.pod("p", "exit 0")
    document["metadata"]["annotations"] = {"JobID": "another-pods-job"}
    pods.apply(document)

    found = pods.wait("p", "Succeeded")

    assert found["metadata"]["annotations"]["JobID"] != "another-pods-job"
    pods.assert_started_once(1)


def test_a_debug_container_is_refused_and_the_pod_goes_on(pods: Pods) -> None:
    """kubectl debug ends with the reason."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")
    pods.kubectl("debug", "p", "--image=busybox", "--container=d", "--", "true")

    def refused() -> bool:
        entries = pods.get("p")["status"].get("ephemeralContainerStatuses", [])
        return any(entry["state"].get("terminated", {}).get("reason") == "ContainerCannotRun" for entry in entries)

    pods.wait_until(refused, "it is refused")
    assert pods.get("p")["status"]["phase"] == "Running"


def test_a_container_is_told_of_services_and_of_its_own_limits(pods: Pods) -> None:
    """Service links as Kubernetes makes them, resourceFieldRef with a divisor."""
    pods.kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    selector = {"resource": "limits.memory", "divisor": "1Mi"}
    env = [{"name": "MEMORY", "valueFrom": {"resourceFieldRef": selector}}]
    limits = {"limits": {"memory": "64Mi"}}
    container = pods.container(
        "c0", "echo $WEB_SERVICE_PORT $MEMORY $KUBERNETES_SERVICE_PORT", env=env, resources=limits
    )
    document = pods.pod("p")
    document["spec"]["containers"] = [container]
    pods.apply(document)

    pods.wait("p", "Succeeded")

    assert pods.kubectl("logs", "p") == "80 64 443\n"


def test_a_running_pods_token_is_renewed_in_place(programs: Programs, pods: Pods) -> None:
    """The program sees another token in the same file; a token's age is that of its pod."""
    assert programs.kubelet is not None
    wait = 't=$(cat /token/t); echo begun; until [ "$(cat /token/t)" != "$t" ]; do sleep 0.2; done'
    token = {"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}
    container = pods.container("c0", wait, volumeMounts=[{"name": "v", "mountPath": "/token"}])
    document = pods.pod("p", volumes=[{"name": "v", "projected": {"sources": [token]}}])
    document["spec"]["containers"] = [container]
    pods.apply(document)
    pods.wait("p", "Running")
    pods.wait_until(lambda: "begun" in pods.kubectl("logs", "p"), "the program has read its token")

    old = '{"status":{"startTime":"2026-01-01T00:00:00Z"}}'
    pods.kubectl("patch", "pod", "p", "--subresource=status", "-p", old)
    programs.kubelet.restart()

    pods.wait("p", "Succeeded")
