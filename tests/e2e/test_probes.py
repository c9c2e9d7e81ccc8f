"""Probes and hooks of a pod, performed by the runner of its job, seen with kubectl."""

from pathlib import Path
from typing import Any

import pytest

from interlink.testing import ports
from tests.support.pods import Document, Pods

pytestmark = pytest.mark.usefixtures("programs")

SHARED = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNTED = {"volumeMounts": [{"name": "v", "mountPath": "/interlink-test"}]}
SERVER = "exec python3 -m http.server --bind 127.0.0.1 $PORT"


def probe(action: Document, **numbers: int) -> Document:
    return {**action, "periodSeconds": 1, "failureThreshold": 2, **numbers}


def command(*words: str) -> Document:
    return {"exec": {"command": list(words)}}


def status_of(pods: Pods, name: str) -> Document:
    statuses: list[Document] = pods.get(name)["status"].get("containerStatuses") or [{}]
    return statuses[0]


def unhealthy(pods: Pods, name: str) -> str:
    """What the events say of the pod's health."""
    selector = f"involvedObject.name={name},reason=Unhealthy"
    return pods.kubectl("get", "events", f"--field-selector={selector}", "-o=jsonpath={.items[*].message}")


def start(pods: Pods, script: str, *, policy: str = "Never", grace_s: int = 5, **container: Any) -> None:
    entry = pods.container("c0", script, **MOUNTED, **container)
    spec = {"containers": [entry], "restartPolicy": policy, "terminationGracePeriodSeconds": grace_s}
    pods.start("p", **spec, **SHARED)


def test_readiness_by_exec_sees_the_containers_volumes(pods: Pods) -> None:
    """The pod is Running and not ready until the command succeeds inside the container; an event has its words."""
    ready = probe(command("sh", "-c", "test -e /interlink-test/up && test $WORD = yes || { echo not up; exit 1; }"))
    env = [{"name": "WORD", "value": "yes"}]
    start(pods, "sleep 3; touch /interlink-test/up; sleep 600", readinessProbe=ready, env=env)
    pods.wait("p", "Running")
    assert status_of(pods, "p")["ready"] is False

    pods.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")
    pods.wait_until(lambda: unhealthy(pods, "p") == "Readiness probe failed: not up", "its words are an event")


def test_http_and_tcp_by_the_name_of_a_port(pods: Pods) -> None:
    """A port of the container by its name; the server takes a moment to come up."""
    port = ports.free()
    named = [{"name": "web", "containerPort": port}]
    env = [{"name": "PORT", "value": str(port)}]
    startup = probe({"tcpSocket": {"port": "web"}}, failureThreshold=30)
    ready = probe({"httpGet": {"port": "web", "path": "/"}})
    start(pods, SERVER, ports=named, env=env, startupProbe=startup, readinessProbe=ready)

    pods.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")


def test_a_failed_liveness_probe_restarts_the_container(pods: Pods) -> None:
    """In place, as the restart policy says; the first run is the last state."""
    alive = probe(command("test", "!", "-e", "/interlink-test/sick"))
    script = "rm -f /interlink-test/sick; sleep 2; touch /interlink-test/sick; sleep 600"
    start(pods, script, policy="Always", grace_s=1, livenessProbe=alive)

    pods.wait_until(lambda: status_of(pods, "p").get("restartCount", 0) >= 1, "p was restarted")
    assert status_of(pods, "p")["lastState"]["terminated"]["exitCode"] in (137, 143)


def test_a_startup_probe_that_never_passes_ends_the_pod(pods: Pods) -> None:
    """It never was ready; its program was told to end."""
    start(pods, "exec sleep 600", startupProbe=probe(command("false")), readinessProbe=probe(command("true")))

    status = pods.wait("p", "Failed")["status"]

    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_pre_stop_runs_in_the_container_before_term(pods: Pods) -> None:
    """Within the grace period, and it sees the container's volumes."""
    hook = {"preStop": command("sh", "-c", "echo hook > /interlink-test/order; sleep 1")}
    trap = f"trap 'cat /interlink-test/order >> {pods.ledger}; exit 0' TERM"
    script = f"{trap}; touch /interlink-test/up; while :; do sleep 0.1; done"
    ready = probe(command("test", "-e", "/interlink-test/up"))
    start(pods, script, grace_s=20, lifecycle=hook, readinessProbe=ready)
    pods.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")

    pods.kubectl("delete", "pod", "p", "--timeout=19s")

    assert pods.ledger.read_text().splitlines()[-1] == "hook"


def test_a_grpc_probe_is_refused(pods: Pods) -> None:
    """Clearly: the pod fails with the reason, and nothing has run."""
    start(pods, "true", livenessProbe=probe({"grpc": {"port": 1}}))

    assert "gRPC is not supported" in pods.wait("p", "Failed")["status"]["message"]
    assert not pods.ledger.exists()


def test_a_volume_in_memory(pods: Pods) -> None:
    """It is one, all containers of the pod share it, and it is gone with the job."""
    volume = {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}
    init = pods.container("i", "touch /interlink-test/from-init", **MOUNTED)
    main = pods.container("c0", "ls /interlink-test; stat -f -c %T /interlink-test", **MOUNTED)
    pods.start("p", initContainers=[init], containers=[main], **volume)
    uid = pods.wait("p", "Succeeded")["metadata"]["uid"]

    assert pods.kubectl("logs", "p").split() == ["from-init", "tmpfs"]
    assert not Path("/dev/shm", f"interlink-{uid}").exists()
