"""The objects of Kubernetes that a pod refers to, and where they come from."""

import base64
import binascii
from collections.abc import Sequence
from typing import Protocol

import msgspec

from interlink.kubelet.errors import MissingInput
from interlink.kubelet.inputs.services import Service
from interlink.model.pods import Pod, ServiceAccountTokenProjection


class Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class KeyedObject(msgspec.Struct, frozen=True, rename="camel"):
    """A ConfigMap or a Secret."""

    metadata: Meta = Meta()
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class Source(Protocol):
    """Raises MissingInput with the reason for what cannot be had now; None for what does not exist."""

    async def config_map(self, namespace: str, name: str) -> bytes | None: ...

    async def secret(self, namespace: str, name: str) -> bytes | None: ...

    async def token(self, pod: Pod, request: ServiceAccountTokenProjection) -> str: ...

    async def services(self, namespace: str) -> Sequence[Service]: ...


class Objects:
    """The objects that one pod refers to, each fetched once."""

    def __init__(self, source: Source, pod: Pod) -> None:
        self._source = source
        self._pod = pod
        self._fetched: dict[tuple[str, str], bytes | None] = {}

    async def config_map(self, name: str) -> bytes | None:
        return await self._once("ConfigMap", name)

    async def secret(self, name: str) -> bytes | None:
        return await self._once("Secret", name)

    async def config_map_values(self, name: str, *, is_optional: bool) -> dict[str, bytes]:
        """What a volume shows of a ConfigMap: text and binary data."""
        item = await self._decoded("ConfigMap", name, is_optional=is_optional)
        texts = {key: text.encode() for key, text in (item.data or {}).items()}
        return texts | _bytes(item.binary_data, name)

    async def config_map_texts(self, name: str, *, is_optional: bool) -> dict[str, str]:
        """What an environment can take of a ConfigMap: text only."""
        return (await self._decoded("ConfigMap", name, is_optional=is_optional)).data or {}

    async def secret_values(self, name: str, *, is_optional: bool) -> dict[str, bytes]:
        return _bytes((await self._decoded("Secret", name, is_optional=is_optional)).data, name)

    async def services(self) -> list[Service]:
        """Those whose variables the pod's containers get: all of its namespace, and that of Kubernetes itself."""
        master = [s for s in await self._source.services("default") if s.metadata.name == "kubernetes"]
        if self._pod.spec.enable_service_links is False:
            return master
        return [*master, *await self._source.services(self._pod.metadata.namespace)]

    async def token(self, request: ServiceAccountTokenProjection) -> str:
        return await self._source.token(self._pod, request)

    async def _decoded(self, kind: str, name: str, *, is_optional: bool) -> KeyedObject:
        data = await self._once(kind, name)
        if data is not None:
            return msgspec.json.decode(data, type=KeyedObject)
        if is_optional:
            return KeyedObject()
        raise MissingInput(f"{kind.lower()} {name!r} not found in namespace {self._pod.metadata.namespace!r}")

    async def _once(self, kind: str, name: str) -> bytes | None:
        key = kind, name
        if key not in self._fetched:
            fetch = self._source.config_map if kind == "ConfigMap" else self._source.secret
            self._fetched[key] = await fetch(self._pod.metadata.namespace, name)
        return self._fetched[key]


def _bytes(encoded: dict[str, str] | None, name: str) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(text, validate=True) for key, text in (encoded or {}).items()}
    except (binascii.Error, ValueError) as error:
        raise MissingInput(f"{name!r} holds data that is not base64") from error
