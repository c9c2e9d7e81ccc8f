"""Events as `kubectl describe` shows them."""

import json
from typing import Any

from interlink.testing import Cluster
from interlink.testing.programs import Programs
from tests.support.pods import Pods


def events(pods: Pods, name: str) -> list[dict[str, Any]]:
    selector = f"involvedObject.name={name}"
    found: list[dict[str, Any]] = json.loads(pods.kubectl("get", "events", "--field-selector", selector, "-o", "json"))[
        "items"
    ]
    return sorted(found, key=lambda event: (event["lastTimestamp"] or "", event["metadata"]["name"]))


def wait_for(pods: Pods, name: str, *reasons: str) -> list[dict[str, Any]]:
    def are_there() -> bool:
        return set(reasons) <= {event["reason"] for event in events(pods, name)}

    pods.wait_until(are_there, f"{name} has events {reasons}")
    return events(pods, name)


def test_the_life_of_a_pod(pods: Pods, programs: Programs) -> None:
    """Each step once, also when the virtual kubelet is restarted in between."""
    pods.start("p", "sleep 300")
    wait_for(pods, "p", "Created", "Started")
    assert programs.kubelet is not None
    programs.kubelet.restart()
    pods.kubectl("delete", "pod", "p", "--grace-period=1", "--timeout=20s")

    found = wait_for(pods, "p", "Killing")

    told = [(e["reason"], e["message"], e["count"], e["involvedObject"]["fieldPath"]) for e in found]
    part = "spec.containers{c0}"
    assert told == [
        ("Created", "Created container: c0", 1, part),
        ("Started", "Started container c0", 1, part),
        ("Killing", "Stopping container c0", 1, part),
    ]


def test_a_refused_submission_t13(pods: Pods, programs: Programs) -> None:
    """The site's own words, as a warning."""
    document = pods.pod("p")
    document["spec"]["containers"] = [{"name": "c", "image": "busybox"}]
    pods.apply(document)

    found = wait_for(pods, "p", "Failed")

    assert [(event["type"], event["count"]) for event in found] == [("Warning", 1)]
    assert "has no command" in found[0]["message"]


def test_a_missing_secret_t17(pods: Pods, programs: Programs) -> None:
    """One event whose count rises, with the Secret's name."""
    reference = {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k"}}}
    document = pods.pod("p")
    document["spec"]["containers"] = [pods.container("c", "true", env=[reference])]
    pods.apply(document)

    def is_repeated() -> bool:
        return any(event["count"] > 2 for event in events(pods, "p"))

    pods.wait_until(is_repeated, "the event is told again")
    found = events(pods, "p")
    assert [event["reason"] for event in found] == ["Failed"]
    assert "secret 'late' not found" in found[0]["message"]
    pods.kubectl("create", "secret", "generic", "late", "--from-literal=k=s3cr3t-value")
    pods.wait("p", "Succeeded")
    assert "s3cr3t-value" not in json.dumps(wait_for(pods, "p", "Started"))


def test_a_site_that_goes_and_comes(pods: Pods, programs: Programs, cluster: Cluster, node_name: str) -> None:
    """The node tells it, and a pod that waits for the site."""

    def reasons() -> set[str]:
        selector = f"involvedObject.kind=Node,involvedObject.name={node_name}"
        found = cluster.kubectl(
            "-n", "default", "get", "events", "--field-selector", selector, "-o", "jsonpath={.items[*].reason}"
        )
        return set(found.split())

    pods.wait_until(lambda: "Starting" in reasons(), "the node says that it starts")
    programs.server.stop()
    pods.start("p", "true")
    wait_for(pods, "p", "BackOff")
    pods.wait_until(lambda: "InterlinkConnectivityLost" in reasons(), "the node says that the site is away")
    programs.server.start()

    pods.wait("p", "Succeeded")
    pods.wait_until(lambda: "InterlinkConnectivityRestored" in reasons(), "the node says that the site is back")
