"""What a pod asks of its node, as one job: CPUs, memory, GPUs; pure.

Init containers run one after another before the others, which run together: the job needs the larger of the largest
init container and the sum of the others, to which sidecars belong.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from interlink.model import quantities
from interlink.model.errors import InvalidQuantity
from interlink.model.pods import Container, Pod
from interlink.sdk.errors import Rejected


class Wanted(msgspec.Struct, frozen=True):
    """None where the pod says nothing. gpus: by resource name."""

    cpus: int | None
    memory_bytes: int | None
    gpus: dict[str, int]


def wanted(pod: Pod, gpu_resources: Sequence[str]) -> Wanted:
    """Raises Rejected for a quantity that cannot be read."""
    gpus = {name: math.ceil(amount) for name in gpu_resources if (amount := _of_job(pod, name))}
    cpus, memory = _of_job(pod, "cpu"), _of_job(pod, "memory")
    return Wanted(
        cpus=max(1, math.ceil(cpus)) if cpus else None, memory_bytes=math.ceil(memory) if memory else None, gpus=gpus
    )


def _of_job(pod: Pod, resource: str) -> float:
    init = pod.spec.init_containers or []
    together = [*(pod.spec.containers or []), *(c for c in init if c.is_sidecar)]
    alone = [c for c in init if not c.is_sidecar]
    return max(_sum(together, resource), _largest(alone, resource))


def _sum(containers: Iterable[Container], resource: str) -> float:
    return sum(_amount(container, resource) for container in containers)


def _largest(containers: Iterable[Container], resource: str) -> float:
    return max((_amount(container, resource) for container in containers), default=0)


def _amount(container: Container, resource: str) -> float:
    """The limit, else the request: a job gets what it may use."""
    given = container.resources
    text = (given.limits or {}).get(resource) or (given.requests or {}).get(resource)
    if text is None:
        return 0
    try:
        return float(quantities.amount(text))
    except InvalidQuantity as error:
        raise Rejected(f"container {container.name!r}: resources: {resource}: {error}") from error


def megabytes(size_bytes: int) -> int:
    """As Slurm counts memory, never less than was asked."""
    return max(1, math.ceil(size_bytes / 2**20))
