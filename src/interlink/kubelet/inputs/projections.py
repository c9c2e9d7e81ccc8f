"""Projected and downward API volumes as one set of files, in the form in which the contract carries them:
a ConfigMap with the volume's name."""

import base64
from collections.abc import Mapping

import msgspec

from interlink.kubelet.errors import MissingInput, Unsupported
from interlink.kubelet.inputs import fields, resources
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.objects import KeyedObject, Meta, Objects
from interlink.model.pods import DownwardAPIFile, ObjectProjection, Pod, Volume, VolumeProjection

_ROOT_CA = "kube-root-ca.crt"


async def projected(volume: Volume, pod: Pod, objects: Objects, surroundings: Surroundings) -> bytes:
    """The volume's files. Raises MissingInput and Unsupported."""
    contents: dict[str, bytes] = {}
    for source in _sources(volume):
        contents.update(await _files(source, pod, objects, surroundings))
    return msgspec.json.encode(_config_map(volume.name, contents))


def _sources(volume: Volume) -> list[VolumeProjection]:
    if volume.downward_api is not None:
        return [VolumeProjection(downward_api=volume.downward_api)]
    return (volume.projected.sources or []) if volume.projected else []


def _config_map(name: str, contents: Mapping[str, bytes]) -> KeyedObject:
    texts: dict[str, str] = {}
    binary: dict[str, str] = {}
    for path, data in contents.items():
        try:
            texts[path] = data.decode()
        except UnicodeDecodeError:
            binary[path] = base64.b64encode(data).decode()
    return KeyedObject(metadata=Meta(name=name), data=texts, binary_data=binary or None)


async def _files(source: VolumeProjection, pod: Pod, objects: Objects, surroundings: Surroundings) -> dict[str, bytes]:
    if (token := source.service_account_token) is not None:
        return {token.path: (await objects.token(token)).encode()}
    if source.downward_api is not None:
        return {item.path: _field(item, pod, surroundings) for item in source.downward_api.items or []}
    if (config_map := source.config_map) is not None:
        values = await objects.config_map_values(config_map.name, is_optional=bool(config_map.optional))
        if config_map.name == _ROOT_CA and surroundings.ca_certificate:
            values = {"ca.crt": surroundings.ca_certificate.encode()}
        return _selected(values, config_map)
    if (secret := source.secret) is not None:
        return _selected(await objects.secret_values(secret.name, is_optional=bool(secret.optional)), secret)
    raise Unsupported("a projected volume has a source that this node does not support")


def _selected(values: Mapping[str, bytes], projection: ObjectProjection) -> dict[str, bytes]:
    if projection.items is None:
        return dict(values)
    missing = [item.key for item in projection.items if item.key not in values]
    if missing and not projection.optional:
        raise MissingInput(f"references non-existent key {missing[0]!r} of {projection.name!r}")
    return {item.path: values[item.key] for item in projection.items if item.key in values}


def _field(item: DownwardAPIFile, pod: Pod, surroundings: Surroundings) -> bytes:
    if item.field_ref is not None:
        return fields.value(item.field_ref, pod, surroundings).encode()
    if (selector := item.resource_field_ref) is not None:
        containers = [*(pod.spec.init_containers or []), *(pod.spec.containers or [])]
        named = next((c for c in containers if c.name == selector.container_name), None)
        if named is None:
            raise Unsupported(f"downward API file {item.path!r}: no container {selector.container_name!r} in the pod")
        return resources.value(selector, named, surroundings.allocatable).encode()
    raise Unsupported(f"downward API file {item.path!r} has neither fieldRef nor resourceFieldRef")
