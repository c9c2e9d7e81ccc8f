"""Who calls: read from a client certificate that TLS has verified, or from a bearer token; pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class User(msgspec.Struct, frozen=True):
    """A user as Kubernetes knows it; `extra` goes back to Kubernetes with each question about the user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


AUTHENTICATED = "system:authenticated"

# The subject as the ssl module gives it: a sequence of parts, each a sequence of names and values.
Subject = Sequence[Sequence[tuple[str, str]]]


def user_of_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """The common name is the user, the organisations are its groups. None without a verified certificate."""
    subject: Subject = (certificate or {}).get("subject", ())
    fields = [field for part in subject for field in part]
    name = next((value for key, value in fields if key == "commonName"), "")
    if not name:
        return None
    groups = [value for key, value in fields if key == "organizationName"]
    return User(name=name, groups=(*groups, AUTHENTICATED))


def bearer_token(authorization: str) -> str:
    """The token of an `Authorization` header; empty when it holds none."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


class _ReviewedUser(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _ReviewStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _ReviewedUser = _ReviewedUser()


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus()


def token_review(token: str) -> bytes:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return msgspec.json.encode(review)


def user_of_review(answer: bytes) -> User | None:
    """None for a token that Kubernetes does not know. Raises msgspec.MsgspecError for what is no TokenReview."""
    status = msgspec.json.decode(answer, type=_Review).status
    if not status.authenticated or not status.user.username:
        return None
    extra = sorted((status.user.extra or {}).items())
    return User(
        name=status.user.username,
        uid=status.user.uid,
        groups=tuple(status.user.groups or ()),
        extra=tuple((key, tuple(values)) for key, values in extra),
    )
