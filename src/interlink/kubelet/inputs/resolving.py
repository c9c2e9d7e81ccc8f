"""A pod's create request: its environment as plain values, its volumes' data beside it."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw

from interlink.kubelet.errors import MissingInput
from interlink.kubelet.inputs import environment, projections
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.objects import Objects, Source
from interlink.model import pods
from interlink.model.pods import Container, Pod, Seen, Volume
from interlink.wire.messages import PodCreateRequest


async def resolve(seen: Seen, source: Source, surroundings: Surroundings) -> PodCreateRequest:
    """Raises MissingInput while something that the pod needs is not there, Unsupported for what never will be."""
    pod = seen.pod
    objects = Objects(source, pod)
    volumes = [v for v in pod.spec.volumes or [] if surroundings.has_projected_volumes or not _is_projected(v)]
    return PodCreateRequest(
        pod=Raw(await _resolved_pod(seen, objects, surroundings)),
        configmaps=await _objects(volumes, objects, kind="ConfigMap"),
        secrets=await _objects(volumes, objects, kind="Secret"),
        projectedvolumesmaps=[
            Raw(await projections.projected(volume, pod, objects, surroundings))
            for volume in volumes
            if _is_projected(volume)
        ],
        jobscript_url=surroundings.job_script_builder_url,
        pull_secrets=await _pull_secrets(pod, objects) or UNSET,
    )


async def _pull_secrets(pod: Pod, objects: Objects) -> list[Raw]:
    """One that is missing is no hindrance, as with a kubelet: the image may be public, or there already."""
    names = dict.fromkeys(reference.name for reference in pod.spec.image_pull_secrets or [])
    found = [await objects.secret(name) for name in names if name]
    return [Raw(data) for data in found if data is not None]


async def _objects(volumes: list[Volume], objects: Objects, *, kind: str) -> list[Raw]:
    found: dict[str, Raw] = {}
    for volume in volumes:
        if kind == "ConfigMap" and volume.config_map is not None:
            name, is_optional = volume.config_map.name, bool(volume.config_map.optional)
            data = await objects.config_map(name)
        elif kind == "Secret" and volume.secret is not None:
            name, is_optional = volume.secret.secret_name, bool(volume.secret.optional)
            data = await objects.secret(name)
        else:
            continue
        if data is not None:
            found[name] = Raw(data)
        elif not is_optional:
            raise MissingInput(f"volume {volume.name!r}: {kind.lower()} {name!r} not found")
    return list(found.values())


async def _resolved_pod(seen: Seen, objects: Objects, surroundings: Surroundings) -> bytes:
    """The pod as it came, but for the parts that only Kubernetes can resolve."""
    document: dict[str, Any] = msgspec.json.decode(seen.raw)
    document["metadata"].pop("managedFields", None)
    spec = document["spec"]
    for key in ("initContainers", "containers"):
        spec[key] = [entry for entry in spec.get(key) or [] if entry.get("name") not in pods.kept_back(seen.pod)]
    offloaded = pods.offloaded(seen.pod)
    for key, containers in (
        ("initContainers", offloaded.spec.init_containers),
        ("containers", offloaded.spec.containers),
    ):
        for entry, container in zip(spec.get(key) or [], containers or [], strict=True):
            await _resolve_container(entry, container, seen.pod, objects, surroundings)
    if not surroundings.has_projected_volumes:
        _leave_out(spec, {volume.name for volume in seen.pod.spec.volumes or [] if _is_projected(volume)})
    for entry in spec.get("volumes") or []:
        _as_projected(entry)
    return msgspec.json.encode(document)


async def _resolve_container(
    entry: dict[str, Any], container: Container, pod: Pod, objects: Objects, surroundings: Surroundings
) -> None:
    values = await environment.resolve(container, pod, objects, surroundings)
    entry.pop("envFrom", None)
    entry["env"] = [{"name": name, "value": value} for name, value in values.items()]
    for mount in entry.get("volumeMounts") or []:
        if expression := mount.pop("subPathExpr", None):
            mount["subPath"] = environment.expand(expression, values)
    for key in ("command", "args"):
        if entry.get(key):
            entry[key] = [environment.expand(text, values) for text in entry[key]]


def _is_projected(volume: Volume) -> bool:
    return volume.projected is not None or volume.downward_api is not None


def _leave_out(spec: dict[str, Any], volumes: set[str]) -> None:
    """Volumes and whatever mounts them."""
    spec["volumes"] = [entry for entry in spec.get("volumes") or [] if entry["name"] not in volumes]
    for container in (*(spec.get("initContainers") or []), *(spec.get("containers") or [])):
        mounts = container.get("volumeMounts") or []
        container["volumeMounts"] = [mount for mount in mounts if mount["name"] not in volumes]


def _as_projected(volume: dict[str, Any]) -> None:
    """A downward API volume travels as a projected one: the contract has no other place for its files."""
    downward = volume.pop("downwardAPI", None)
    if downward is not None:
        mode = downward.pop("defaultMode", None)
        volume["projected"] = {"sources": [{"downwardAPI": downward}], "defaultMode": mode}
