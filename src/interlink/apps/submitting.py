"""Pods straight to a server, without Kubernetes: manifests in, create requests out."""

import base64
import json
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import stamina
import yaml

from interlink.kubelet.dialects.own import Remote
from interlink.kubelet.errors import Unsupported
from interlink.kubelet.inputs import resolving
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.services import Service
from interlink.model import pods
from interlink.model.errors import InvalidPod
from interlink.model.ids import JobID, owner
from interlink.model.pods import Pod, Seen, ServiceAccountTokenProjection
from interlink.sdk.errors import OutcomeUnknown, Unreachable
from interlink.wire.messages import PodCreateRequest

OWNER = owner("cli", "submit")
_SURROUNDINGS = Surroundings(host_ip="127.0.0.1", pod_ip="127.0.0.1")

Document = dict[str, Any]


class Submitted(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    job_id: str


class ManifestSource:
    """The ConfigMaps and Secrets of the same manifest; there are no service accounts."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._objects = {
            (document["kind"], _namespace(document), document["metadata"]["name"]): _encoded(document)
            for document in documents
            if document["kind"] in ("ConfigMap", "Secret")
        }

    async def config_map(self, namespace: str, name: str) -> bytes | None:
        return self._objects.get(("ConfigMap", namespace, name))

    async def secret(self, namespace: str, name: str) -> bytes | None:
        return self._objects.get(("Secret", namespace, name))

    async def services(self, namespace: str) -> list[Service]:
        return []

    async def token(self, pod: Pod, request: ServiceAccountTokenProjection) -> str:
        raise Unsupported(f"pod {pod.full_name}: there are no service account tokens without Kubernetes")


async def submit(manifest: Path, remote: Remote) -> AsyncGenerator[Submitted]:
    """Submit every pod of the manifest, in its order, with the ConfigMaps and Secrets that it also holds.

    Each pod is repeated until the answer is definitive, for a minute at most; what has been submitted is told at once.
    A pod keeps the UID that its manifest gives it, so that submitting it again is harmless; without one it is new each
    time. Raises InvalidPod, naming the document; the errors of the kubelet's inputs and of the SDK.
    """
    documents = read(manifest)
    source = ManifestSource(documents)
    for pod in found_pods(documents, manifest):
        request = await resolving.resolve(pod, source, _SURROUNDINGS)
        job_id = await _definitive(request, pod.pod, remote)
        meta = pod.pod.metadata
        yield Submitted(namespace=meta.namespace, name=meta.name, uid=meta.uid, job_id=job_id)


async def _definitive(request: PodCreateRequest, pod: Pod, remote: Remote) -> JobID:
    attempts = stamina.retry_context(on=(Unreachable, OutcomeUnknown), attempts=None, timeout=60.0)
    async for attempt in attempts:
        with attempt:
            return await remote.create(request, pod)
    raise AssertionError("an attempt returns or raises")


def read(manifest: Path) -> list[Document]:
    """The documents of a YAML file, lists taken apart. Raises InvalidPod."""
    try:
        documents = list(yaml.safe_load_all(manifest.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidPod(f"cannot read {manifest}: {' '.join(str(error).split())}") from error
    return [_checked(item, manifest) for document in documents for item in _items(document)]


def _items(document: Any) -> list[Any]:
    if document is None:
        return []
    if isinstance(document, dict) and document.get("kind") == "List":
        return list(document.get("items") or [])
    return [document]


def _checked(document: Any, manifest: Path) -> Document:
    if isinstance(document, dict) and isinstance(document.get("kind"), str):
        metadata = document.get("metadata")
        if isinstance(metadata, dict) and (metadata.get("name") or metadata.get("generateName")):
            return document
    raise InvalidPod(f"{manifest}: a document without kind or metadata.name; expected Pod, Job, ConfigMap or Secret")


def found_pods(documents: Iterable[Document], manifest: Path) -> list[Seen]:
    """The pods, those of a Job included. Raises InvalidPod for another kind, or when there is no pod at all."""
    found = [_seen(pod, manifest) for document in documents for pod in _pods_of(document, manifest)]
    if not found:
        raise InvalidPod(f"{manifest}: there is no Pod and no Job in it")
    return found


def _pods_of(document: Document, manifest: Path) -> Iterator[Document]:
    match document["kind"]:
        case "Pod":
            yield _with_identity(document["metadata"], document.get("spec"))
        case "Job":
            spec = document.get("spec") or {}
            template = spec.get("template") or {}
            for index in range(spec.get("completions") or 1):
                metadata = {**document["metadata"], "name": f"{document['metadata']['name']}-{index}", "uid": None}
                yield _with_identity(metadata, template.get("spec"))
        case "ConfigMap" | "Secret" | "Namespace":
            return
        case kind:
            raise InvalidPod(
                f"{manifest}: {kind} {document['metadata'].get('name')}: expected Pod, Job, ConfigMap or Secret"
            )


def _with_identity(metadata: Document, spec: Document | None) -> Document:
    uid = str(metadata.get("uid") or uuid.uuid4())
    name = metadata.get("name") or f"{metadata['generateName']}{uid[:5]}"
    identity = {**metadata, "name": name, "namespace": metadata.get("namespace") or "default", "uid": uid}
    return {"metadata": identity, "spec": {**(spec or {}), "nodeName": OWNER.node}, "status": {"phase": "Pending"}}


def _seen(document: Document, manifest: Path) -> Seen:
    try:
        return pods.seen(json.dumps(document, default=str).encode())
    except msgspec.MsgspecError as error:
        raise InvalidPod(f"{manifest}: pod {document['metadata']['name']}: {error}") from error


def _namespace(document: Document) -> str:
    return document["metadata"].get("namespace") or "default"


def _encoded(document: Document) -> bytes:
    """`stringData` of a Secret becomes `data`, as the API server does it."""
    if document["kind"] == "Secret" and document.get("stringData"):
        extra = {key: base64.b64encode(str(text).encode()).decode() for key, text in document["stringData"].items()}
        document = {**document, "data": {**(document.get("data") or {}), **extra}}
        document.pop("stringData")
    return json.dumps(document, default=str).encode()
