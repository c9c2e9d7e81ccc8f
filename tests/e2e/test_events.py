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


def test_a_daemonsets_pod_that_cannot_run_here(pods: Pods, programs: Programs) -> None:
    """It stays pending; why is told once, also when the pod is touched and the virtual kubelet starts again."""
    elsewhere = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"no": "node"}}  # we make the pod
    template = {"metadata": {"labels": {"app": "d"}}, "spec": elsewhere}
    spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    pods.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec})
    uid = pods.kubectl("get", "daemonset", "d", "-o", "jsonpath={.metadata.uid}")
    document = pods.pod("p", "true", hostNetwork=True)
    document["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": uid}]
    pods.apply(document)
    wait_for(pods, "p", "HostNamespacesNotSupported")
    assert programs.kubelet is not None

    pods.kubectl("label", "pod", "p", "touched=yes")
    programs.kubelet.restart()
    pods.start("later", "true")
    pods.wait("later", "Succeeded")

    [event] = events(pods, "p")
    assert (event["type"], event["count"], "hostNetwork" in event["message"]) == ("Warning", 1, True)
    assert pods.get("p")["status"]["phase"] == "Pending"


def test_an_ephemeral_container_that_is_refused(pods: Pods, programs: Programs) -> None:
    """The event is about that container; there is one, also after a restart."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")
    pods.kubectl("debug", "p", "--image=busybox", "--container=d", "--", "true")

    wait_for(pods, "p", "Failed")
    assert programs.kubelet is not None
    programs.kubelet.restart()
    pods.start("later", "true")
    pods.wait("later", "Succeeded")

    [event] = [event for event in events(pods, "p") if event["reason"] == "Failed"]
    assert (event["involvedObject"]["fieldPath"], event["count"]) == ("spec.ephemeralContainers{d}", 1)
    assert "runs no ephemeral containers" in event["message"]


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
