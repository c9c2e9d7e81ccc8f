"""Which ConfigMaps, Secrets and projected data each container mounts; pure, as the existing contract has it."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw

from interlink.model.pods import Container, Pod, Volume
from interlink.wire import codec
from interlink.wire.messages import Origin, PodCreateRequest, RetrievedContainer, RetrievedPodData


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


def retrieved(request: PodCreateRequest, pod: Pod, origin: Origin) -> RetrievedPodData:
    """The plugin's create request: init containers first, then containers, in the order of the spec."""
    data = _Data(request, pod)
    containers = [*(pod.spec.init_containers or []), *(pod.spec.containers or [])]
    return RetrievedPodData(
        pod=request.pod,
        container=[data.of(c) for c in containers],
        interlink=origin,
        pull_secrets=request.pull_secrets,
    )


class _Data:
    def __init__(self, request: PodCreateRequest, pod: Pod) -> None:
        self._volumes = {volume.name: volume for volume in pod.spec.volumes or []}
        self._config_maps = _by_name(request.configmaps or [])
        self._secrets = _by_name(request.secrets or [])
        self._projected = _by_name(request.projectedvolumesmaps or [])

    def of(self, container: Container) -> RetrievedContainer:
        names = dict.fromkeys(mount.name for mount in container.volume_mounts or [])
        mounted = [self._volumes[name] for name in names if name in self._volumes]
        return RetrievedContainer(
            name=container.name,
            config_maps=_picked(self._config_maps, (v.config_map.name for v in mounted if v.config_map)),
            secrets=_picked(self._secrets, (v.secret.secret_name for v in mounted if v.secret)),
            projected_volume_maps=_picked(self._projected, (v.name for v in mounted if _is_projected(v))),
        )


def _is_projected(volume: Volume) -> bool:
    return volume.projected is not None


def _by_name(objects: Iterable[Raw]) -> dict[str, Raw]:
    return {codec.decode(bytes(raw), _Named).metadata.name: raw for raw in objects}


def _picked(objects: Mapping[str, Raw], names: Iterable[str]) -> list[Raw] | None:
    return [objects[name] for name in dict.fromkeys(names) if name in objects] or None
