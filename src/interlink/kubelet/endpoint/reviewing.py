"""Asking Kubernetes who a token belongs to and what a user may do; answers are kept as long as a kubelet keeps them."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import Unavailable
from interlink.kubelet.endpoint import authenticating, authorising
from interlink.kubelet.endpoint.authenticating import User
from interlink.kubelet.endpoint.authorising import Demand, Question
from interlink.kubelet.endpoint.remembering import Memory

T = TypeVar("T")

_TOKEN_S = 120.0
_ALLOWED_S = 300.0
_DENIED_S = 30.0


class Reviewer:
    """Raises KubeError when Kubernetes cannot be asked; then nothing is known and nobody is let in."""

    def __init__(self, client: KubeClient, node_name: str) -> None:
        self._client = client
        self._node_name = node_name
        self._users: Memory[bytes, User | None] = Memory()
        self._rights: Memory[Question, bool] = Memory()

    async def user_of(self, token: str) -> User | None:
        """None for a token that Kubernetes does not know. Only a hash of the token is kept."""
        key = hashlib.sha256(token.encode()).digest()
        if (known := self._users.recall(key)) is not None:
            return known[0]
        answer = await self._client.create(paths.TOKEN_REVIEWS, authenticating.token_review(token))
        user = _read(authenticating.user_of_review, answer)
        self._users.keep(key, user, for_s=_TOKEN_S)
        return user

    async def may(self, user: User, demand: Demand) -> bool:
        for subresource in demand.subresources:
            if await self._is_allowed(Question(user=user, verb=demand.verb, subresource=subresource)):
                return True
        return False

    async def _is_allowed(self, question: Question) -> bool:
        if (known := self._rights.recall(question)) is not None:
            return known[0]
        body = authorising.access_review(question, self._node_name)
        allowed = _read(authorising.is_allowed, await self._client.create(paths.ACCESS_REVIEWS, body))
        self._rights.keep(question, allowed, for_s=_ALLOWED_S if allowed else _DENIED_S)
        return allowed


def _read(reader: Callable[[bytes], T], answer: bytes) -> T:
    try:
        return reader(answer)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"the answer to a review cannot be read: {error}") from error
