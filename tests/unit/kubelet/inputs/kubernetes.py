"""The objects of a small Kubernetes, for tests of what pods refer to."""

import base64
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlink.kubelet.errors import MissingInput
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.services import Service
from interlink.model.pods import Pod, ServiceAccountTokenProjection

HERE = Surroundings(host_ip="10.0.0.1", pod_ip="10.0.0.2", allocatable={"ephemeral-storage": "10Gi"})
Item = tuple[str, str, bytes]


def encoded(values: Mapping[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in values.items()}


def config_map(name: str, data: Mapping[str, str], *, binary: Mapping[str, bytes] | None = None) -> Item:
    body = {"metadata": {"name": name}, "data": data, "binaryData": encoded(binary or {})}
    return "configmap", name, msgspec.json.encode(body)


def secret(name: str, data: Mapping[str, bytes]) -> Item:
    return "secret", name, msgspec.json.encode({"metadata": {"name": name}, "data": encoded(data)})


class Kubernetes:
    """A Source; `fetched` holds every question, `is_away` lets each fail."""

    def __init__(self, *items: Item, services: Mapping[str, Sequence[Service]] = MappingProxyType({})) -> None:
        self._services = services
        self._items = {(kind, name): data for kind, name, data in items}
        self.fetched: list[str] = []
        self.is_away = False

    async def config_map(self, namespace: str, name: str) -> bytes | None:
        return self._fetch("configmap", namespace, name)

    async def secret(self, namespace: str, name: str) -> bytes | None:
        return self._fetch("secret", namespace, name)

    async def token(self, pod: Pod, request: ServiceAccountTokenProjection) -> str:
        return f"token of {pod.uid} for {request.audience}"

    async def services(self, namespace: str) -> Sequence[Service]:
        return self._services.get(namespace, [])

    def _fetch(self, kind: str, namespace: str, name: str) -> bytes | None:
        self.fetched.append(f"{kind} {namespace}/{name}")
        if self.is_away:
            raise MissingInput("the API server is away")
        return self._items.get((kind, name))
