"""The objects that pods refer to, from the Kubernetes API.

Many pods that come together refer to the same objects. What was asked after a pod had been seen is new enough for it,
because it shows everything that was written before the pod; so one answer serves all pods that were seen before it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError, NotFound
from interlink.kubelet.errors import MissingInput
from interlink.kubelet.inputs.services import Service
from interlink.model.pods import Pod, ServiceAccountTokenProjection

T = TypeVar("T")

DEFAULT_TOKEN_LIFE_S = 3607
_KEEP_S = 10.0


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str


class _TokenAnswer(msgspec.Struct, frozen=True):
    status: _TokenStatus


class _Services(msgspec.Struct, frozen=True):
    items: list[Service] | None = None


class _Answer(msgspec.Struct):
    asked_at: float
    value: asyncio.Future[Any]


class KubeSource:
    """Uses an answer for ten seconds at most. Open it inside a running loop."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._answers: dict[str, _Answer] = {}

    def since(self, seen_at: float) -> "ObjectsSince":
        """The objects as they are, or were at some time after `seen_at` of the loop's clock."""
        return ObjectsSince(self, seen_at)

    async def get(self, path: str, since: float, fetch: Callable[[], Awaitable[T]]) -> T | None:
        """One question for all who ask at the same time; an error and an absence are not kept."""
        now = asyncio.get_running_loop().time()
        known = self._answers.get(path)
        if known is None or known.asked_at < max(since, now - _KEEP_S):
            self._forget_old(now)
            known = _Answer(now, asyncio.ensure_future(fetch()))
            self._answers[path] = known
        value: T | None = None
        try:
            value = await asyncio.shield(known.value)
        finally:
            if value is None and self._answers.get(path) is known:
                del self._answers[path]
        return value

    def _forget_old(self, now: float) -> None:
        for path in [path for path, answer in self._answers.items() if answer.asked_at < now - _KEEP_S]:
            del self._answers[path]

    async def fetch(self, path: str) -> bytes | None:
        return await _fetched(self._client.get(path))

    async def fetch_services(self, path: str) -> Sequence[Service]:
        data = await _fetched(self._client.get(path))
        return msgspec.json.decode(data, type=_Services).items or [] if data else []

    async def token(self, pod: Pod, request: ServiceAccountTokenProjection) -> str:
        """A token bound to the pod, with the audience and lifetime that were asked."""
        account = pod.spec.service_account_name or "default"
        path = paths.service_account_token(pod.metadata.namespace, account)
        answer = await _fetched(self._client.create(path, msgspec.json.encode(_token_request(pod, request))))
        if answer is None:
            raise MissingInput(f"service account {account!r} not found in namespace {pod.metadata.namespace!r}")
        return msgspec.json.decode(answer, type=_TokenAnswer).status.token


class ObjectsSince:
    """A `Source` for one pod."""

    def __init__(self, source: KubeSource, seen_at: float) -> None:
        self._source = source
        self._seen_at = seen_at

    async def config_map(self, namespace: str, name: str) -> bytes | None:
        return await self._object(paths.config_map(namespace, name))

    async def secret(self, namespace: str, name: str) -> bytes | None:
        return await self._object(paths.secret(namespace, name))

    async def services(self, namespace: str) -> Sequence[Service]:
        path = paths.services(namespace)
        return await self._source.get(path, self._seen_at, lambda: self._source.fetch_services(path)) or []

    async def token(self, pod: Pod, request: ServiceAccountTokenProjection) -> str:
        return await self._source.token(pod, request)

    async def _object(self, path: str) -> bytes | None:
        return await self._source.get(path, self._seen_at, lambda: self._source.fetch(path))


def _token_request(pod: Pod, request: ServiceAccountTokenProjection) -> dict[str, Any]:
    bound_to = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.uid}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": [request.audience] if request.audience else [],
            "expirationSeconds": request.expiration_seconds or DEFAULT_TOKEN_LIFE_S,
            "boundObjectRef": bound_to,
        },
    }


async def _fetched(call: Awaitable[bytes]) -> bytes | None:
    """None for what does not exist. Raises MissingInput when it cannot be had: the pod waits and asks again."""
    try:
        return await call
    except NotFound:
        return None
    except KubeError as error:
        raise MissingInput(str(error)) from error
