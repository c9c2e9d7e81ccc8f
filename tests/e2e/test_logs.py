"""`kubectl logs` with its options, on a real API server."""

import time
from pathlib import Path

import pytest

from interlink.testing.errors import KubectlError
from interlink.testing.programs import Programs
from tests.support.pods import Pods

pytestmark = pytest.mark.usefixtures("programs")

THOUSAND = """
i=1
while [ $i -le 1000 ]; do
  case $i in
    500) head -c 20000 /dev/zero | tr '\\0' x; echo ;;
    996) echo "line 996 日本語" ;;
    *) echo "line $i" ;;
  esac
  i=$((i+1))
done
"""


def refusal(pods: Pods, *arguments: str) -> str:
    with pytest.raises(KubectlError) as caught:
        pods.kubectl("logs", *arguments)
    return str(caught.value)


def test_log_options_t15(pods: Pods) -> None:
    """Lines, bytes, times, and what is not there; after the end as well as during the run."""
    pods.start("p", f"{THOUSAND} sleep 300", "echo other")
    pods.wait("p", "Running")
    pods.wait_until(lambda: "line 1000" in pods.kubectl("logs", "p", "-c", "c0", "--tail=1"), "all lines are there")

    lines = pods.kubectl("logs", "p", "-c", "c0").splitlines()
    assert (len(lines), len(lines[499])) == (1000, 20000)
    assert pods.kubectl("logs", "p", "-c", "c0", "--tail=5").splitlines() == lines[-5:]
    assert lines[995] == "line 996 日本語"
    stamped = pods.kubectl("logs", "p", "-c", "c0", "--tail=3", "--timestamps").splitlines()
    assert [line.split(" ", 1)[1] for line in stamped] == lines[-3:]
    assert len(pods.kubectl("logs", "p", "-c", "c0", "--limit-bytes=100").encode()) == 100
    assert pods.kubectl("logs", "p", "-c", "c1") == "other\n"
    assert 'previous terminated container "c0" in pod "p" not found' in refusal(pods, "p", "-c", "c0", "--previous")
    since = stamped[0].split(" ", 1)[0]
    assert lines[-1] in pods.kubectl("logs", "p", "-c", "c0", f"--since-time={since}")
    assert pods.kubectl("logs", "p", "-c", "c0", "--since-time=2099-01-01T00:00:00Z") == ""


def test_before_the_start_and_after_the_end_t15(pods: Pods) -> None:
    """The usual words of a kubelet while it waits; the log until the pod is deleted."""
    reference = {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k"}}}
    document = pods.pod("p")
    document["spec"]["containers"] = [pods.container("c", "echo now", env=[reference])]
    pods.apply(document)
    pods.wait_until(lambda: bool(pods.get("p")["status"].get("containerStatuses")), "the pod says why it waits")

    assert 'container "c" in pod "p" is waiting to start: CreateContainerConfigError' in refusal(pods, "p")
    pods.kubectl("create", "secret", "generic", "late", "--from-literal=k=v")
    pods.wait("p", "Succeeded")
    assert pods.kubectl("logs", "p") == "now\n"


def test_the_log_before_a_restart(pods: Pods) -> None:
    """`--previous` is the run before, by number."""
    marker = pods.ledger.with_name("once")
    script = f"if [ -e {marker} ]; then echo second; sleep 300; fi; echo first; touch {marker}; exit 1"
    pods.start("p", script, restartPolicy="OnFailure")

    def has_restarted() -> bool:
        status = pods.get("p")["status"].get("containerStatuses", [{}])[0]
        return status.get("restartCount") == 1 and "running" in status["state"]

    pods.wait_until(has_restarted, "the container has been restarted")
    assert pods.kubectl("logs", "p", "--previous") == "first\n"
    pods.wait_until(lambda: pods.kubectl("logs", "p") == "second\n", "the second run writes")


def test_50_followers_t14(pods: Pods, programs: Programs) -> None:
    """They see every line soon, end by themselves, and hold up neither each other nor the state of other pods."""
    gate = Path(f"{pods.ledger}.gate")
    pods.start("p", f"echo ready; until [ -e {gate} ]; do sleep 0.1; done; for i in 1 2 3; do echo $i; sleep 1; done")
    pods.wait("p", "Running")
    followers = [pods.follow_log("p") for _ in range(50)]
    assert {follower.readline() for follower in followers} == {"ready\n"}

    started = time.monotonic()
    pods.start("q", "true")
    pods.wait("q", "Succeeded", deadline_s=15)
    gate.touch()

    assert {follower.read() for follower in followers} == {"1\n2\n3\n"}
    assert time.monotonic() - started < 30
