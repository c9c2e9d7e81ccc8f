"""Logins from imagePullSecrets, and which of them is an image's."""

import base64
import json

import pytest
from msgspec import Raw

from interlink.sdk.batch import registries
from interlink.sdk.batch.runtime import Login
from interlink.sdk.errors import Rejected


def secret(auths: object, *, key: str = ".dockerconfigjson", name: str = "s") -> Raw:
    text = json.dumps({"auths": auths} if key == ".dockerconfigjson" else auths)
    return Raw(
        json.dumps({"metadata": {"name": name}, "data": {key: base64.b64encode(text.encode()).decode()}}).encode()
    )


AUTH = base64.b64encode(b"me:a:b").decode()


@pytest.mark.parametrize("key", [".dockerconfigjson", ".dockercfg"])
def test_logins_of_secrets(key: str) -> None:
    """Both forms, with the login as two words or as one; the first Secret wins."""
    one = secret({"https://index.docker.io/v1/": {"auth": AUTH}, "r:1": {"username": "u", "password": "p"}}, key=key)
    found = registries.logins([one, secret({"r:1": {"username": "other"}})])

    assert found == [Login("index.docker.io/v1", "me", "a:b"), Login("r:1", "u", "p")]


@pytest.mark.parametrize("auths", [{"r": {"auth": "%"}}, 7])
def test_a_secret_that_cannot_be_read(auths: object) -> None:
    """It is named; its content is not told."""
    with pytest.raises(Rejected, match="imagePullSecrets: 's' cannot be read"):
        registries.logins([secret(auths)])


def test_a_secret_of_another_kind_is_none() -> None:
    assert registries.logins([Raw(b'{"metadata": {"name": "s"}, "data": {"k": "eA=="}}'), Raw(b'{"data": null}')]) == []


HUB, HOST, TEAM = (Login(name, "u", "p") for name in ("index.docker.io/v1", "ghcr.io", "ghcr.io/team"))
OF_IMAGES = [
    ("docker://busybox", [HUB]),
    ("docker://library/busybox:1", [HUB]),
    ("docker://docker.io/x", [HUB]),
    ("docker://ghcr.io/a/b@sha256:0", [HOST]),
    ("oras://ghcr.io/team/b", [TEAM, HOST]),
    ("docker://ghcr.io.evil/x", []),
]


@pytest.mark.parametrize(("location", "expected"), OF_IMAGES)
def test_the_logins_of_an_image(location: str, expected: list[Login]) -> None:
    """Those of its registry, the most specific one first; no other registry ever sees them."""
    assert registries.of_image([HUB, HOST, TEAM], location) == expected
