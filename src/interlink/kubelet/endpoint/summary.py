"""`/stats/summary`: the node, its pods and their running containers, with usage where it is known; pure."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from interlink.aio import clock
from interlink.kubelet.endpoint.usage import Row, Usage, total


def summary(node_name: str, started_at: str, node: Usage | None, rows: Sequence[Row]) -> dict[str, Any]:
    pods = [_pod(list(group)) for _, group in groupby(rows, key=lambda row: row.pod.uid)]
    return {"node": {"nodeName": node_name, "startTime": started_at, **_stats(node)}, "pods": pods}


def _pod(rows: Sequence[Row]) -> dict[str, Any]:
    pod = rows[0].pod
    return {
        "podRef": {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.uid},
        "startTime": pod.status.start_time,
        "containers": [_container(row) for row in rows],
        **_stats(total([row.usage for row in rows])),
    }


def _container(row: Row) -> dict[str, Any]:
    started = row.status.running.started_at if row.status.running else None
    return {"name": row.status.name, "startTime": started, **_stats(row.usage)}


def _stats(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    at = clock.rfc3339(usage.at)
    return {
        "cpu": {"time": at, "usageCoreNanoSeconds": round(usage.cpu_seconds * 1e9)},
        "memory": {"time": at, "workingSetBytes": usage.memory_bytes},
    }
