"""What containers use, as far as it is known, and the sums that follow from it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from interlink.model.ids import PodUID
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus
from interlink.wire.messages import ContainerUsage


class Usage(msgspec.Struct, frozen=True):
    """CPU time since the container's first start, memory at `at`."""

    cpu_seconds: float
    memory_bytes: int
    at: datetime


class Key(NamedTuple):
    pod_uid: PodUID
    container: str


Usages = Mapping[Key, Usage]


def by_container(found: Iterable[ContainerUsage]) -> Usages:
    """What was told, by pod and container."""
    return {
        Key(PodUID(item.pod_uid), item.container): Usage(
            cpu_seconds=item.cpu_seconds, memory_bytes=item.memory_bytes, at=item.at
        )
        for item in found
    }


class Row(NamedTuple):
    """A running container; `usage` None when it is not known."""

    pod: Pod
    status: ContainerStatus
    usage: Usage | None


def rows(pods: Iterable[Pod], usages: Usages) -> list[Row]:
    """The running containers of all pods, in the order of pods and containers."""
    return [
        Row(pod, status, usages.get(Key(PodUID(pod.uid), status.name)))
        for pod in pods
        for status in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]
        if status.running
    ]


def total(found: Sequence[Usage | None]) -> Usage | None:
    """The sum, at the oldest of the moments; None unless every part is known."""
    known = [usage for usage in found if usage is not None]
    if not known or len(known) != len(found):
        return None
    return Usage(
        cpu_seconds=sum(usage.cpu_seconds for usage in known),
        memory_bytes=sum(usage.memory_bytes for usage in known),
        at=min(usage.at for usage in known),
    )


class NodeUsage:
    """CPU time of the node's containers: a counter that never falls when one of them goes."""

    def __init__(self) -> None:
        self._seen: dict[Key, float] = {}
        self._cpu_seconds = 0.0

    def of(self, usages: Usages) -> Usage | None:
        """The node's usage: the CPU time that has been seen here, the memory of now. None when nothing is known."""
        if not usages:
            return None
        for key, usage in usages.items():
            self._cpu_seconds += max(0.0, usage.cpu_seconds - self._seen.get(key, 0.0))
        self._seen = {key: usage.cpu_seconds for key, usage in usages.items()}
        return Usage(
            cpu_seconds=self._cpu_seconds,
            memory_bytes=sum(usage.memory_bytes for usage in usages.values()),
            at=max(usage.at for usage in usages.values()),
        )
