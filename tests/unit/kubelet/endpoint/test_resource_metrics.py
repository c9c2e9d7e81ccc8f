"""What metrics-server and the summary are told: only what is known."""

import re
from datetime import timedelta
from typing import Any

import msgspec

from interlink.kubelet.endpoint import listing, resource_metrics, summary, usage
from interlink.kubelet.endpoint.usage import Key, NodeUsage, Usage, Usages
from interlink.model.ids import PodUID
from interlink.model.pods import Pod
from tests.unit import builders
from tests.unit.builders import NOW, ended, pod, running, waiting

MS = 1784023200000


def used(cpu: float, memory: int, seconds: float = 0) -> Usage:
    return Usage(cpu_seconds=cpu, memory_bytes=memory, at=NOW + timedelta(seconds=seconds))


def key(container: str, uid: str = "uid-1") -> Key:
    return Key(PodUID(uid), container)


def running_pod(*entries: dict[str, Any]) -> Pod:
    status = {"phase": "Running", "startTime": "2026-07-14T10:00:00Z", "containerStatuses": list(entries)}
    return pod(status=status)


def page(found: Pod, usages: Usages) -> str:
    return resource_metrics.text(NodeUsage().of(usages), usage.rows([found], usages), has_failed=False)


def samples(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return dict(line.split(" ", 1) for line in lines)


def test_known_containers_are_shown_with_their_time() -> None:
    """Labels in the order in which metrics-server reads them; milliseconds since the epoch."""
    text = page(running_pod(running("a"), running("b")), {key("a"): used(1.5, 1000), key("b"): used(2.25, 2000, 1)})

    place = 'namespace="ns",pod="p"'
    assert samples(text) == {
        "node_cpu_usage_seconds_total": f"3.75 {MS + 1000}",
        "node_memory_working_set_bytes": f"3000 {MS + 1000}",
        f'container_cpu_usage_seconds_total{{container="a",{place}}}': f"1.5 {MS}",
        f'container_cpu_usage_seconds_total{{container="b",{place}}}': f"2.25 {MS + 1000}",
        f'container_memory_working_set_bytes{{container="a",{place}}}': f"1000 {MS}",
        f'container_memory_working_set_bytes{{container="b",{place}}}': f"2000 {MS + 1000}",
        f'container_start_time_seconds{{container="a",{place}}}': f"1784023201 {MS}",
        f'container_start_time_seconds{{container="b",{place}}}': f"1784023201 {MS + 1000}",
        f"pod_cpu_usage_seconds_total{{{place}}}": f"3.75 {MS}",
        f"pod_memory_working_set_bytes{{{place}}}": f"3000 {MS}",
        "resource_scrape_error": "0",
    }
    assert re.search(r"^# TYPE container_cpu_usage_seconds_total counter$", text, re.MULTILINE)


def test_a_container_of_which_nothing_is_known_is_left_out() -> None:
    """And so is the sum of its pod; a container that does not run has no usage either."""
    found = running_pod(running("a"), running("b"), ended("c"))
    names = samples(page(found, {key("a"): used(1, 1), key("c"): used(1, 1)}))

    assert not [name for name in names if 'container="b"' in name or 'container="c"' in name or name.startswith("pod_")]
    assert [name for name in names if 'container="a"' in name]


def test_without_usage_nothing_is_claimed() -> None:
    """A node that knows nothing shows no node either, and says when the question failed."""
    found = running_pod(running("a"))

    assert samples(page(found, {})) == {"resource_scrape_error": "0"}
    assert "resource_scrape_error 1" in resource_metrics.text(None, usage.rows([found], {}), has_failed=True)


def test_the_nodes_counter_never_falls() -> None:
    """A container that has gone leaves its time; one that comes brings its own; a restarted one only what is new."""
    node = NodeUsage()
    found = [
        node.of({key("a"): used(5, 10), key("b"): used(1, 10)}),
        node.of({key("b"): used(3, 20)}),
        node.of({}),
        node.of({key("b"): used(4, 20), key("c"): used(2, 5)}),
    ]

    assert [(u.cpu_seconds, u.memory_bytes) if u else None for u in found] == [(6, 20), (8, 20), None, (11, 25)]


def test_the_summary_holds_what_is_known() -> None:
    """In nanoseconds and bytes; nothing where nothing is known."""
    rows = usage.rows([running_pod(running("a"), running("b"))], {key("a"): used(1.5, 1000)})
    document = summary.summary("vk", "2026-07-14T09:00:00Z", None, rows)

    assert document["node"] == {"nodeName": "vk", "startTime": "2026-07-14T09:00:00Z"}
    assert document["pods"][0]["podRef"] == {"name": "p", "namespace": "ns", "uid": "uid-1"}
    a, b = document["pods"][0]["containers"]
    assert (a["cpu"]["usageCoreNanoSeconds"], a["memory"]["workingSetBytes"]) == (1_500_000_000, 1000)
    assert set(b) == {"name", "startTime"}
    assert "cpu" not in document["pods"][0]


def test_lists_of_pods() -> None:
    """All as they came; those that run in short."""
    seen = [builders.seen("1"), builders.seen("2", metadata={"name": "q"})]

    document = msgspec.json.decode(listing.all_pods(seen))
    assert (document["kind"], [item["metadata"]["name"] for item in document["items"]]) == ("PodList", ["p", "q"])
    assert msgspec.json.decode(listing.all_pods([]))["items"] == []
    short = listing.running_pods([running_pod(running("c"), waiting("d")), running_pod(ended("c"))])
    assert [item["spec"]["containers"] for item in short["items"]] == [[{"name": "c", "image": "i", "resources": {}}]]
