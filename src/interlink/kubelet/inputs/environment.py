"""A container's environment, resolved to plain values in the order of the rules of a kubelet:
service links, `envFrom` in order, then `env` in order; `$(VAR)` refers to what has been defined before it.
"""

import re
from collections.abc import Mapping

from interlink.kubelet.errors import MissingInput, Unsupported
from interlink.kubelet.inputs import fields, resources, services
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.objects import Objects
from interlink.kubelet.inputs.services import Service, ServiceMeta, ServicePort, ServiceSpec
from interlink.model.pods import Container, EnvFromSource, EnvVar, EnvVarSource, KeySelector, Pod

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


async def resolve(container: Container, pod: Pod, objects: Objects, surroundings: Surroundings) -> dict[str, str]:
    """Raises MissingInput for a reference that cannot be resolved yet, Unsupported for one that never can be."""
    values = services.variables(await _services(objects, surroundings))
    for source in container.env_from or []:
        values.update(await _all_of(source, objects))
    for variable in container.env or []:
        if variable.value_from is None:
            values[variable.name] = expand(variable.value or "", values)
            continue
        found = await _one(variable, container, pod, objects, surroundings)
        if found is not None:
            values[variable.name] = found
    return values


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value; `$$` is a dollar sign; an unknown name stays as it is written."""

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return values.get(match[1], match[0])

    return _REFERENCE.sub(replaced, text)


async def _all_of(source: EnvFromSource, objects: Objects) -> dict[str, str]:
    if (config_map := source.config_map_ref) is not None:
        found = await objects.config_map_texts(config_map.name, is_optional=bool(config_map.optional))
    elif (secret := source.secret_ref) is not None:
        found = _texts(await objects.secret_values(secret.name, is_optional=bool(secret.optional)))
    else:
        found = {}
    return {source.prefix + key: text for key, text in found.items() if _is_name(source.prefix + key)}


def _is_name(text: str) -> bool:
    """Since Kubernetes 1.34 any printable ASCII but `=`; other keys of an object are passed over, as a kubelet does."""
    return bool(text) and all("\x20" <= letter <= "\x7e" and letter != "=" for letter in text)


async def _services(objects: Objects, surroundings: Surroundings) -> list[Service]:
    """Where the API server has an address for the pods of this node, the service `kubernetes` is there."""
    found = await objects.services()
    if surroundings.kubernetes is None:
        return found
    address, port = surroundings.kubernetes
    spec = ServiceSpec(cluster_ip=address, ports=[ServicePort(port=port, name="https")])
    return [*found, Service(metadata=ServiceMeta(name="kubernetes"), spec=spec)]


async def _one(
    variable: EnvVar, container: Container, pod: Pod, objects: Objects, surroundings: Surroundings
) -> str | None:
    """None for an optional reference to something that is not there: the variable is not set."""
    source = variable.value_from or EnvVarSource()
    if (selector := source.config_map_key_ref) is not None:
        texts = await objects.config_map_texts(selector.name, is_optional=bool(selector.optional))
        return _picked(texts, selector, "configmap", pod)
    if (selector := source.secret_key_ref) is not None:
        values = await objects.secret_values(selector.name, is_optional=bool(selector.optional))
        wanted = {key: value for key, value in values.items() if key == selector.key}
        return _picked(_texts(wanted), selector, "secret", pod)
    if source.field_ref is not None:
        return fields.value(source.field_ref, pod, surroundings)
    if (wanted_resource := source.resource_field_ref) is not None:
        return resources.value(wanted_resource, container, surroundings.allocatable)
    kind = "fileKeyRef" if source.file_key_ref else "a source"
    raise Unsupported(
        f"environment variable {variable.name!r} takes its value from {kind}, which this node does not support"
    )


def _picked(texts: Mapping[str, str], selector: KeySelector, kind: str, pod: Pod) -> str | None:
    if selector.key in texts:
        return texts[selector.key]
    if selector.optional:
        return None
    raise MissingInput(f"couldn't find key {selector.key!r} in {kind} {pod.metadata.namespace}/{selector.name}")


def _texts(values: Mapping[str, bytes]) -> dict[str, str]:
    """Bytes that are no UTF-8 cannot travel in JSON; such a value is refused rather than changed."""
    try:
        return {key: value.decode() for key, value in values.items()}
    except UnicodeDecodeError as error:
        raise Unsupported(
            "a Secret used in the environment holds bytes that are not UTF-8; mount it as a file"
        ) from error
