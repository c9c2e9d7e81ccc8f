"""Projected and downward API volumes: which files, with which bytes."""

import base64
from typing import Any

import msgspec
import pytest

from interlink.kubelet.errors import KubeletError, MissingInput, Unsupported
from interlink.kubelet.inputs import projections
from interlink.kubelet.inputs.objects import Objects
from interlink.model.pods import Volume
from tests.unit.builders import Document, pod
from tests.unit.kubelet.inputs.kubernetes import HERE, Kubernetes, config_map, secret

SITE = Kubernetes(
    config_map("cm", {"a": "text", "b": ""}, binary={"bin": b"\xff\x00"}),
    secret("s", {"k": b"secret", "raw": b"\x80"}),
)


async def volume(**source: Any) -> Document:
    spec = msgspec.convert({"name": "v", **source}, Volume)
    asker = pod(metadata={"labels": {"x": "y"}})
    document: Document = msgspec.json.decode(await projections.projected(spec, asker, Objects(SITE, asker), HERE))
    return document


async def files(*sources: Document) -> dict[str, bytes]:
    document = await volume(projected={"sources": list(sources)})
    binary = {path: base64.b64decode(text) for path, text in (document.get("binaryData") or {}).items()}
    return {path: text.encode() for path, text in document["data"].items()} | binary


def item(key: str, path: str) -> Document:
    return {"key": key, "path": path}


async def test_the_files_travel_under_the_volumes_name() -> None:
    """As a ConfigMap, which is how the contract carries them."""
    assert (await volume(projected={"sources": []}))["metadata"]["name"] == "v"


async def test_a_config_map_shows_all_its_keys() -> None:
    """Texts and binary data, byte by byte."""
    assert await files({"configMap": {"name": "cm"}}) == {"a": b"text", "b": b"", "bin": b"\xff\x00"}


async def test_a_secret_shows_all_its_keys() -> None:
    """Also those that are no text."""
    assert await files({"secret": {"name": "s"}}) == {"k": b"secret", "raw": b"\x80"}


async def test_items_choose_keys_and_paths() -> None:
    """Only the named keys appear, at the paths that are asked."""
    source = {"configMap": {"name": "cm", "items": [item("a", "dir/x"), item("bin", "y")]}}

    assert await files(source) == {"dir/x": b"text", "y": b"\xff\x00"}


async def test_later_sources_win() -> None:
    """Where two sources have the same path."""
    first = {"configMap": {"name": "cm", "items": [item("a", "f")]}}
    second = {"secret": {"name": "s", "items": [item("k", "f")]}}

    assert await files(first, second) == {"f": b"secret"}


async def test_a_token_is_made_for_the_pod() -> None:
    """With the audience that is asked."""
    token = {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}}

    assert await files(token) == {"token": b"token of uid-1 for vault"}


async def test_fields_of_the_pod_are_files() -> None:
    """In a projected volume as in a volume of their own."""
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]

    assert await files({"downwardAPI": {"items": items}}) == {"labels": b'x="y"'}
    assert (await volume(downwardAPI={"items": items}))["data"] == {"labels": 'x="y"'}


@pytest.mark.parametrize("sources", [None, []])
async def test_a_volume_without_sources_is_empty(sources: list[Document] | None) -> None:
    """And no error."""
    assert (await volume(projected={"sources": sources}))["data"] == {}


OPTIONAL = [
    {"configMap": {"name": "no", "optional": True}},
    {"secret": {"name": "no", "optional": True}},
    {"configMap": {"name": "cm", "optional": True, "items": [item("no", "f")]}},
]


@pytest.mark.parametrize("source", OPTIONAL)
async def test_an_optional_source_may_be_missing(source: Document) -> None:
    """Its files are not there then."""
    assert await files(source) == {}


REFUSED: list[tuple[Document, type[KubeletError], str]] = [
    ({"configMap": {"name": "no"}}, MissingInput, "configmap 'no' not found in namespace 'ns'"),
    ({"secret": {"name": "no"}}, MissingInput, "secret 'no' not found"),
    ({"secret": {"name": "s", "items": [item("no", "f")]}}, MissingInput, "non-existent key 'no' of 's'"),
    ({"clusterTrustBundle": {"path": "ca"}}, Unsupported, "does not support"),
    ({}, Unsupported, "does not support"),
    (
        {"downwardAPI": {"items": [{"path": "f", "resourceFieldRef": {"resource": "limits.cpu"}}]}},
        Unsupported,
        "no container None",
    ),
    ({"downwardAPI": {"items": [{"path": "f", "fieldRef": {"fieldPath": "no"}}]}}, Unsupported, "'no'"),
]


@pytest.mark.parametrize(("source", "kind", "text"), REFUSED)
async def test_a_source_that_cannot_be_had(source: Document, kind: type[KubeletError], text: str) -> None:
    """What is missing makes the pod wait, what is unknown makes it fail; both are named."""
    with pytest.raises(kind, match=text):
        await files(source)


async def test_resources_of_a_named_container_as_a_file() -> None:
    """In a downward API volume the container is named."""
    selector = {"resource": "limits.memory", "containerName": "c", "divisor": "1Mi"}
    asker = pod(containers=[{"name": "c", "resources": {"limits": {"memory": "64Mi"}}}])
    volume = msgspec.convert(
        {"name": "v", "downwardAPI": {"items": [{"path": "memory", "resourceFieldRef": selector}]}}, Volume
    )

    found = msgspec.json.decode(await projections.projected(volume, asker, Objects(Kubernetes(), asker), HERE))

    assert found["data"] == {"memory": "64"}


async def test_the_root_certificate_of_the_configuration_replaces_the_clusters() -> None:
    """KubernetesApiCaCrt."""
    asker = pod()
    volume = msgspec.convert(
        {"name": "v", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}}, Volume
    )
    site = Kubernetes(config_map("kube-root-ca.crt", {"ca.crt": "cluster"}))
    here = msgspec.structs.replace(HERE, ca_certificate="site")

    found = msgspec.json.decode(await projections.projected(volume, asker, Objects(site, asker), here))

    assert found["data"] == {"ca.crt": "site"}
