"""The manifests of `examples/`, and what the demo adds to them: its node, its namespace and the ledger. Pure but for
`load`, so that the files stay what a reader would copy.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

Document = dict[str, Any]

# The first instruction of every payload: one line, written at once. Then it becomes the command that it was. In a
# command Kubernetes turns `$$$$` into `$$`.
LEDGER_SCRIPT = 'echo "$DEMO_NAMESPACE/$DEMO_POD $DEMO_UID $DEMO_CONTAINER $$$$" >> "$DEMO_LEDGER"; exec "$@"'
FIELDS = {"DEMO_NAMESPACE": "metadata.namespace", "DEMO_POD": "metadata.name", "DEMO_UID": "metadata.uid"}


class Placement(msgspec.Struct, frozen=True):
    """Where the demo's pods go, and the ledger that their payloads write."""

    namespace: str
    node_name: str
    ledger: Path


class Workload(msgspec.Struct, frozen=True):
    """A Pod or a Job of the manifests: how many pods, and the containers of each, init containers first."""

    name: str
    is_job: bool
    pods: int
    containers: list[str]

    @property
    def payloads(self) -> int:
        return self.pods * len(self.containers)

    def owns(self, pod_name: str) -> bool:
        return pod_name.startswith(f"{self.name}-") if self.is_job else pod_name == self.name


def load(folder: Path) -> list[Document]:
    """Every document of the folder, in the order of the file names."""
    texts = [path.read_text() for path in sorted(folder.glob("*.yaml"))]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def prepared(documents: Iterable[Document], placement: Placement, *, completions: int | None) -> list[Document]:
    """The documents as the demo submits them; the given ones stay as they are."""
    return [_prepared(copy.deepcopy(document), placement, completions) for document in documents]


def workloads(documents: Iterable[Document]) -> list[Workload]:
    return [_workload(document) for document in documents if document["kind"] in ("Job", "Pod")]


def secret_values(documents: Iterable[Document]) -> list[str]:
    """The values that may appear nowhere; short ones could be there by chance and prove nothing."""
    secrets = [document for document in documents if document["kind"] == "Secret"]
    return [value for secret in secrets for value in secret["stringData"].values() if len(value) > 12]


def dump(documents: Sequence[Document]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def _prepared(document: Document, placement: Placement, completions: int | None) -> Document:
    document["metadata"]["namespace"] = placement.namespace
    if document["kind"] == "Job" and completions:
        document["spec"] |= {"completions": completions, "parallelism": completions}
    if document["kind"] in ("Job", "Pod"):
        _place(_pod_spec(document), placement)
    return document


def _place(spec: Document, placement: Placement) -> None:
    folder = placement.ledger.parent
    spec["nodeSelector"]["kubernetes.io/hostname"] = placement.node_name
    spec.setdefault("volumes", []).append({"name": "demo-ledger", "hostPath": {"path": str(folder)}})
    for container in _containers(spec):
        _record(container, placement)


def _record(container: Document, placement: Placement) -> None:
    """Make the container write its line before it does anything else."""
    folder = str(placement.ledger.parent)
    fields = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in FIELDS.items()]
    values = {"DEMO_CONTAINER": container["name"], "DEMO_LEDGER": str(placement.ledger)}
    plain = [{"name": name, "value": value} for name, value in values.items()]
    container["env"] = [*fields, *plain, *container.get("env", [])]
    container.setdefault("volumeMounts", []).append({"name": "demo-ledger", "mountPath": folder})
    container["command"] = ["sh", "-c", LEDGER_SCRIPT, "ledger", *container["command"]]


def _workload(document: Document) -> Workload:
    is_job = document["kind"] == "Job"
    return Workload(
        name=document["metadata"]["name"],
        is_job=is_job,
        pods=document["spec"]["completions"] if is_job else 1,
        containers=[container["name"] for container in _containers(_pod_spec(document))],
    )


def _pod_spec(document: Document) -> Document:
    spec: Document = document["spec"]["template"]["spec"] if document["kind"] == "Job" else document["spec"]
    return spec


def _containers(spec: Document) -> Iterator[Document]:
    yield from spec.get("initContainers", [])
    yield from spec["containers"]
