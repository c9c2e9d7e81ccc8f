"""Two virtual kubelets under one node name: one acts, the other waits (C16)."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from interlink.testing import Cluster
from interlink.testing.programs import Program, Programs
from tests.support.pods import Pods

COUNT = 10


@pytest.fixture
def second(programs: Programs, cluster: Cluster) -> Iterator[Program]:
    """Another instance for the node of `programs.kubelet`, waiting."""
    found = programs.second_kubelet(cluster)
    found.start(is_awaited=False)
    programs.wait_log(found, '"lease.waiting"')
    yield found
    found.stop()


def test_a_second_instance_takes_over_from_a_killed_one(programs: Programs, pods: Pods, second: Program) -> None:
    """Pods that were bound meanwhile run once."""
    assert programs.kubelet is not None
    pods.start_many(COUNT, "sleep 2")
    programs.kubelet.kill()

    second.await_ready()

    pods.wait_all("Succeeded", COUNT)
    pods.assert_started_once(COUNT)


def test_a_second_instance_takes_over_at_once_when_the_first_ends(
    programs: Programs, pods: Pods, second: Program
) -> None:
    """SIGTERM gives the Lease back."""
    assert programs.kubelet is not None
    assert programs.kubelet.terminate() == 0

    second.await_ready()

    pods.start("p", "exit 0")
    pods.wait("p", "Succeeded")


def test_a_paused_instance_that_wakes_up_writes_nothing(
    programs: Programs, pods: Pods, second: Program, cluster: Cluster
) -> None:
    """It is stopped in the middle of its work, another takes over, it wakes up: it ends and has changed nothing."""
    assert programs.kubelet is not None
    assert programs.kubelet.pid is not None
    pods.start_many(COUNT, "sleep 1")
    programs.wait_log(programs.kubelet, '"pod.created"')
    os.kill(programs.kubelet.pid, signal.SIGSTOP)
    second.await_ready()
    pods.wait_all("Succeeded", COUNT)
    pods.start("later", "sleep 600")
    pods.wait("later", "Running")
    before = versions(pods)

    os.kill(programs.kubelet.pid, signal.SIGCONT)

    assert programs.kubelet.await_exit() == 1
    assert "another instance is active" in programs.kubelet.tail()
    assert versions(pods) == before
    pods.assert_started_once(COUNT + 1)
    lease = cluster.kubectl("-n", "kube-node-lease", "get", "lease", f"interlink-{programs.node_name}", "-o", "json")
    assert f"/{second.pid}/" in json.loads(lease)["spec"]["holderIdentity"]


def versions(pods: Pods) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in pods.all()}
