"""The ledger: what the payloads themselves say of their starts, one line each."""

import collections
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tools.demo.manifests import Workload


class Start(msgspec.Struct, frozen=True):
    """A payload has begun."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    process_id: int


class Tally(msgspec.Struct, frozen=True):
    """How the starts compare with what was submitted."""

    expected: int
    started: int
    repeated: list[str]
    missing: list[str]
    surplus: list[str]


def read(file: Path) -> list[Start]:
    """Every line that is complete; payloads may be writing."""
    text = file.read_text() if file.exists() else ""
    return [parse(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def parse(line: str) -> Start:
    full_name, uid, container, process_id = line.split()
    namespace, _, pod = full_name.partition("/")
    return Start(namespace=namespace, pod=pod, pod_uid=uid, container=container, process_id=int(process_id))


def of(starts: Iterable[Start], workload: Workload) -> list[Start]:
    return [start for start in starts if workload.owns(start.pod)]


def tally(starts: Iterable[Start], workloads: Iterable[Workload]) -> Tally:
    """Payloads count by pod UID and container: another pod of the same name is another payload."""
    counts = collections.Counter((start.pod, start.pod_uid, start.container) for start in starts)
    expected = collections.Counter((w.name, name) for w in workloads for name in w.containers for _ in range(w.pods))
    found = collections.Counter((w.name, container) for w in workloads for pod, _, container in counts if w.owns(pod))
    return Tally(
        expected=expected.total(),
        started=len(counts),
        repeated=[f"{pod}/{container} {n} times" for (pod, _, container), n in counts.items() if n > 1],
        missing=[f"{n} of {name}/{container}" for (name, container), n in (expected - found).items()],
        surplus=[f"{n} of {name}/{container}" for (name, container), n in (found - expected).items()],
    )
