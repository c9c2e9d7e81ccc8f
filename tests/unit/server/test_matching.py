"""Which data each container of a create request gets."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlink.server import matching
from interlink.wire.codec import InvalidMessage
from interlink.wire.messages import Origin, PodCreateRequest, RetrievedContainer
from tests.unit.builders import Document, pod

ORIGIN = Origin(cluster="c", node="vk", attempt=2)


def named(name: str, **fields: Any) -> Raw:
    return Raw(msgspec.json.encode({"metadata": {"name": name}, **fields}))


CM, OTHER_CM, SECRET, PROJECTED = named("cm", data={"a": "1"}), named("other"), named("s"), named("token")
VOLUMES: list[Document] = [
    {"name": "config", "configMap": {"name": "cm"}},
    {"name": "again", "configMap": {"name": "cm"}},
    {"name": "other", "configMap": {"name": "other"}},
    {"name": "secret", "secret": {"secretName": "s"}},
    {"name": "token", "projected": {"sources": []}},
    {"name": "scratch", "emptyDir": {}},
]


def mounting(name: str, *volumes: str) -> Document:
    return {"name": name, "volumeMounts": [{"name": volume, "mountPath": f"/{volume}"} for volume in volumes]}


def retrieved(*containers: Document, init: list[Document] | None = None) -> list[RetrievedContainer]:
    spec = pod(containers=list(containers), initContainers=init, volumes=VOLUMES)
    request = PodCreateRequest(
        pod=Raw(b'{"opaque": 1}'), configmaps=[CM, OTHER_CM], secrets=[SECRET], projectedvolumesmaps=[PROJECTED]
    )
    found = matching.retrieved(request, spec, ORIGIN)
    assert (found.pod, found.interlink) == (request.pod, ORIGIN)
    return found.container or []


def test_init_containers_come_first() -> None:
    """Each container has an entry, in the order of the spec."""
    found = retrieved({"name": "b"}, {"name": "a"}, init=[{"name": "i"}, {"name": "h"}])

    assert [entry.name for entry in found] == ["i", "h", "b", "a"]


CASES = [
    # mounts                         ConfigMaps        Secrets    projected
    ((), None, None, None),
    (("config",), [CM], None, None),
    (("config", "again"), [CM], None, None),
    (("config", "config"), [CM], None, None),
    (("other", "config"), [OTHER_CM, CM], None, None),
    (("secret", "token"), None, [SECRET], [PROJECTED]),
    (("scratch", "unknown"), None, None, None),
]


@pytest.mark.parametrize(("mounts", "config_maps", "secrets", "projected"), CASES)
def test_a_container_gets_what_it_mounts(
    mounts: tuple[str, ...], config_maps: list[Raw] | None, secrets: list[Raw] | None, projected: list[Raw] | None
) -> None:
    """Each object once, byte by byte as it came, and nothing that only another container mounts."""
    entry = retrieved(mounting("c", *mounts), mounting("d", "config", "secret", "token"))[0]

    assert (entry.config_maps, entry.secrets, entry.projected_volume_maps) == (config_maps, secrets, projected)


def test_an_object_that_did_not_come_is_left_out() -> None:
    """An optional one may be missing."""
    spec = pod(containers=[mounting("c", "config")], volumes=VOLUMES)

    found = matching.retrieved(PodCreateRequest(pod=Raw(b"{}")), spec, ORIGIN)
    assert (found.container or [])[0].config_maps is None


@pytest.mark.parametrize("item", [b"1", b'{"metadata": 1}'])
def test_an_object_that_is_none_is_refused(item: bytes) -> None:
    """The request is invalid then."""
    with pytest.raises(InvalidMessage):
        matching.retrieved(PodCreateRequest(pod=Raw(b"{}"), configmaps=[Raw(item)]), pod(), ORIGIN)


def test_secrets_for_registries_are_passed_on() -> None:
    """To the plugin alone, and to no container; a request without them has no such member, as existing ones."""
    request = PodCreateRequest(pod=Raw(b"{}"), pull_secrets=[SECRET])
    found = matching.retrieved(request, pod(containers=[mounting("c", "secret")], volumes=VOLUMES), ORIGIN)

    assert (found.pull_secrets, (found.container or [])[0].secrets) == ([SECRET], None)
    plain = matching.retrieved(PodCreateRequest(pod=Raw(b"{}")), pod(), ORIGIN)
    assert b"imagePullSecrets" not in msgspec.json.encode(plain)
