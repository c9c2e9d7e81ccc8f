"""Who calls the endpoint, and what rights the call needs: pure, and as a kubelet has it."""

import msgspec
import pytest

from interlink.kubelet.endpoint import authenticating, authorising
from interlink.kubelet.endpoint.authenticating import User
from interlink.kubelet.endpoint.authorising import Demand, Question

SUBJECT = ((("organizationName", "system:masters"),), (("organizationName", "b"),), (("commonName", "admin"),))


def test_a_certificate_names_a_user_and_its_groups() -> None:
    """Common name and organisations; everybody who is known is in one group more."""
    found = authenticating.user_of_certificate({"subject": SUBJECT})

    assert found == User(name="admin", groups=("system:masters", "b", "system:authenticated"))


@pytest.mark.parametrize("certificate", [None, {}, {"subject": ()}, {"subject": ((("organizationName", "x"),),)}])
def test_a_certificate_without_a_name_is_nobody(certificate: dict[str, object] | None) -> None:
    """Neither is one that was not shown."""
    assert authenticating.user_of_certificate(certificate) is None


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", ""), ("abc", ""), ("", ""), ("Bearer", "")],
)
def test_a_bearer_token_is_read_from_its_header(header: str, token: str) -> None:
    """The scheme in any case; other schemes hold no token."""
    assert authenticating.bearer_token(header) == token


def test_a_review_names_the_user_of_a_token() -> None:
    """With everything that Kubernetes wants back when it is asked what the user may do."""
    user = {"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v", "w"]}}
    answer = msgspec.json.encode({"status": {"authenticated": True, "user": user}})

    found = authenticating.user_of_review(answer)

    assert found == User(name="u", uid="1", groups=("g",), extra=(("k", ("v", "w")),))
    assert hash(found)


@pytest.mark.parametrize(
    "status", [{}, {"authenticated": False, "user": {"username": "u"}}, {"authenticated": True, "user": {}}]
)
def test_a_token_that_is_not_confirmed_is_nobodys(status: object) -> None:
    """Also when a name comes with it."""
    assert authenticating.user_of_review(msgspec.json.encode({"status": status})) is None


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/stats/summary", "get", ("stats",)),
        ("POST", "/stats/summary", "create", ("stats",)),
        ("GET", "/metrics", "get", ("metrics",)),
        ("GET", "/metrics/resource", "get", ("metrics",)),
        ("GET", "/logs/", "get", ("log",)),
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("GET", "/healthz/ping", "get", ("healthz", "proxy")),
        ("GET", "/configz", "get", ("configz", "proxy")),
        ("GET", "/containerLogs/ns/p/c", "get", ("proxy",)),
        ("POST", "/exec/ns/p/c", "create", ("proxy",)),
        ("PUT", "/anything", "update", ("proxy",)),
        ("BREW", "/", "brew", ("proxy",)),
        ("GET", "/podsy", "get", ("proxy",)),
    ],
)
def test_each_path_needs_a_right(method: str, path: str, verb: str, subresources: tuple[str, ...]) -> None:
    """The finer one, or `proxy`."""
    assert authorising.demand(method, path) == Demand(verb=verb, subresources=subresources)


def test_a_question_names_user_verb_and_node() -> None:
    """All that is known of the user goes back."""
    user = User(name="u", groups=("g",), uid="1", extra=(("k", ("v",)),))
    spec = msgspec.json.decode(authorising.access_review(Question(user=user, verb="get", subresource="pods"), "n"))[
        "spec"
    ]

    attributes = {"verb": "get", "version": "v1", "resource": "nodes", "subresource": "pods", "name": "n"}
    assert spec == {"user": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}, "resourceAttributes": attributes}


@pytest.mark.parametrize(
    ("status", "allowed"),
    [({"allowed": True}, True), ({"allowed": False}, False), ({}, False), ({"allowed": True, "denied": True}, False)],
)
def test_only_a_clear_yes_is_a_yes(status: object, allowed: bool) -> None:
    """A denial wins."""
    assert authorising.is_allowed(msgspec.json.encode({"status": status})) is allowed
