"""`/metrics/resource` in the form that metrics-server reads: only what is known, each sample with its time; pure.

metrics-server reads label values by their place, drops a pod with a container that uses no CPU or memory, and wants a
time stamp on every sample. So a container is shown only with all of its numbers, and none of them is made up.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

from interlink.kubelet.endpoint.usage import Row, Usage, total

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_CPU = ("cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the {} in core-seconds")
_MEMORY = ("memory_working_set_bytes", "gauge", "Current working set of the {} in bytes")
Sample = tuple[str, float, datetime]


def text(node: Usage | None, rows: Sequence[Row], *, has_failed: bool) -> str:
    """The whole page. `has_failed`: usage could not be asked for."""
    containers = [(_container_labels(row), row.usage, row) for row in rows if row.usage is not None]
    pods = [(labels, usage) for labels, usage in _pods(rows) if usage is not None]
    parts = [
        *_usage_families("node", [("", node)] if node is not None else []),
        *_usage_families("container", [(labels, usage) for labels, usage, _ in containers]),
        *_family("container_start_time_seconds", "gauge", "Start time of the container", _starts(containers)),
        *_usage_families("pod", pods),
        "# HELP resource_scrape_error 1 if there was an error while getting container metrics, 0 otherwise",
        "# TYPE resource_scrape_error gauge",
        f"resource_scrape_error {int(has_failed)}",
    ]
    return "\n".join(parts) + "\n"


def _pods(rows: Sequence[Row]) -> Iterator[tuple[str, Usage | None]]:
    """A pod's usage is known when that of all its running containers is."""
    for _, group in groupby(rows, key=lambda row: row.pod.uid):
        members = list(group)
        meta = members[0].pod.metadata
        yield _labels(namespace=meta.namespace, pod=meta.name), total([row.usage for row in members])


def _starts(containers: Iterable[tuple[str, Usage, Row]]) -> Iterator[Sample]:
    for labels, usage, row in containers:
        started = row.status.running.started_at if row.status.running else None
        if started:
            yield labels, datetime.fromisoformat(started).timestamp(), usage.at


def _usage_families(what: str, found: Sequence[tuple[str, Usage]]) -> Iterator[str]:
    for (name, kind, meaning), value in ((_CPU, "cpu_seconds"), (_MEMORY, "memory_bytes")):
        samples = [(labels, float(getattr(usage, value)), usage.at) for labels, usage in found]
        yield from _family(f"{what}_{name}", kind, meaning.format(what), samples)


def _family(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    lines = [f"{name}{labels} {value:.15g} {int(at.timestamp() * 1000)}" for labels, value, at in samples]
    return iter([f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *lines] if lines else [])


def _container_labels(row: Row) -> str:
    meta = row.pod.metadata
    return _labels(container=row.status.name, namespace=meta.namespace, pod=meta.name)


def _labels(**values: str) -> str:
    """Names of Kubernetes objects need no escapes."""
    return "{" + ",".join(f'{key}="{value}"' for key, value in values.items()) + "}"
