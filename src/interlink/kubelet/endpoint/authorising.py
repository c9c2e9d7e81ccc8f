"""What a caller asks for, in the terms of Kubernetes' rights: a verb on a subresource of the node; pure.

A finer subresource comes first; `proxy`, which once covered everything, is still enough.
"""

import msgspec

from interlink.kubelet.endpoint.authenticating import User

_VERBS = {
    "GET": "get", "HEAD": "get", "OPTIONS": "get", "POST": "create", "PUT": "update", "PATCH": "patch",
    "DELETE": "delete",
}  # fmt: skip
_ALONE = {"stats": "stats", "metrics": "metrics", "logs": "log", "checkpoint": "checkpoint"}
_BEFORE_PROXY = {
    "pods": "pods", "runningpods": "pods", "healthz": "healthz", "readyz": "healthz", "configz": "configz",
}  # fmt: skip


class Demand(msgspec.Struct, frozen=True):
    """Any one of the subresources suffices; they are asked for in this order."""

    verb: str
    subresources: tuple[str, ...]


def demand(method: str, path: str) -> Demand:
    """As a kubelet reads a request."""
    first = path.lstrip("/").partition("/")[0]
    verb = _VERBS.get(method, method.lower())
    if first in _ALONE:
        return Demand(verb=verb, subresources=(_ALONE[first],))
    finer = (_BEFORE_PROXY[first],) if first in _BEFORE_PROXY else ()
    return Demand(verb=verb, subresources=(*finer, "proxy"))


class Question(msgspec.Struct, frozen=True):
    """May this user do this verb on this subresource of the node?"""

    user: User
    verb: str
    subresource: str


def access_review(question: Question, node_name: str) -> bytes:
    user = question.user
    spec = {
        "user": user.name,
        "uid": user.uid,
        "groups": user.groups,
        "extra": dict(user.extra),
        "resourceAttributes": {
            "verb": question.verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": question.subresource,
            "name": node_name,
        },
    }
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return msgspec.json.encode(kind | {"spec": spec})


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def is_allowed(answer: bytes) -> bool:
    """Raises msgspec.MsgspecError for what is no SubjectAccessReview."""
    status = msgspec.json.decode(answer, type=_Review).status
    return status.allowed and not status.denied
