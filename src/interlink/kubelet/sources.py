"""The objects that pods refer to, from the Kubernetes API."""

from collections.abc import Awaitable
from typing import Any

import msgspec

from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError, NotFound
from interlink.kubelet.errors import MissingInput
from interlink.model.pods import Pod, ServiceAccountTokenProjection

_DEFAULT_TOKEN_LIFE_S = 3607


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str


class _TokenAnswer(msgspec.Struct, frozen=True):
    status: _TokenStatus


class KubeSource:
    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def config_map(self, namespace: str, name: str) -> bytes | None:
        return await _fetched(self._client.get(paths.config_map(namespace, name)))

    async def secret(self, namespace: str, name: str) -> bytes | None:
        return await _fetched(self._client.get(paths.secret(namespace, name)))

    async def token(self, pod: Pod, request: ServiceAccountTokenProjection) -> str:
        """A token bound to the pod, with the audience and lifetime that were asked."""
        account = pod.spec.service_account_name or "default"
        path = paths.service_account_token(pod.metadata.namespace, account)
        answer = await _fetched(self._client.create(path, msgspec.json.encode(_token_request(pod, request))))
        if answer is None:
            raise MissingInput(f"service account {account!r} not found in namespace {pod.metadata.namespace!r}")
        return msgspec.json.decode(answer, type=_TokenAnswer).status.token


def _token_request(pod: Pod, request: ServiceAccountTokenProjection) -> dict[str, Any]:
    bound_to = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.uid}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": [request.audience] if request.audience else [],
            "expirationSeconds": request.expiration_seconds or _DEFAULT_TOKEN_LIFE_S,
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
