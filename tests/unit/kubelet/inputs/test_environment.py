"""A container's environment: the order, the references, and what cannot be resolved."""

from typing import Any

import msgspec
import pytest

from interlink.kubelet.errors import KubeletError, MissingInput, Unsupported
from interlink.kubelet.inputs import environment
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.objects import Objects
from interlink.kubelet.inputs.services import Service, ServiceMeta, ServicePort, ServiceSpec
from interlink.model.pods import Container
from tests.unit.builders import Document, pod
from tests.unit.kubelet.inputs.kubernetes import HERE, Kubernetes, config_map, secret

SITE = Kubernetes(
    config_map("cm", {"A": "1", "B": "$(A)"}, binary={"BIN": b"\xff"}),
    config_map("late", {"A": "late", "C": "3"}),
    secret("s", {"A": b"secret", "PW": "pä$$".encode()}),
    secret("bytes", {"RAW": b"\xff\x00"}),
    ("secret", "damaged", msgspec.json.encode({"data": {"A": "%%%"}})),
)
LABELLED = {"labels": {"app": "web", "a'b": "c"}, "annotations": {"note": 'say "hi"\\\n'}}


async def resolved(**container: Any) -> dict[str, str]:
    spec = msgspec.convert({"name": "c", **container}, Container)
    asker = pod(metadata=LABELLED, serviceAccountName="sa")
    return await environment.resolve(spec, asker, Objects(SITE, asker), HERE)


def variable(variable_name: str, source: str, **reference: Any) -> Document:
    return {"name": variable_name, "valueFrom": {source: reference}}


# --- expansion -------------------------------------------------------------------------------------------------------

VALUES = {"A": "1", "B": "2", "REF": "$(A)", "EMPTY": "", "a.b-c": "dotted"}
EXPANSIONS = [
    ("", ""),
    ("plain", "plain"),
    ("$(A)", "1"),
    ("x$(A)y$(B)z", "x1y2z"),
    ("$(A)$(A)", "11"),
    ("$(EMPTY)", ""),
    ("$(a.b-c)", "dotted"),
    ("$(REF)", "$(A)"),
    ("$(UNKNOWN)", "$(UNKNOWN)"),
    ("$(UNKNOWN)$(A)", "$(UNKNOWN)1"),
    ("$$(A)", "$(A)"),
    ("$$$(A)", "$1"),
    ("$$$$(A)", "$$(A)"),
    ("$$$$$(A)", "$$1"),
    ("$$A", "$A"),
    ("$$", "$"),
    ("$", "$"),
    ("cost: 5$", "cost: 5$"),
    ("$A ${A} $?", "$A ${A} $?"),
    ("(A)", "(A)"),
    ("$A)", "$A)"),
    ("$(A", "$(A"),
    ("$(", "$("),
    ("$()", "$()"),
    ("$(A)$(B", "1$(B"),
    ("\\$(A)", "\\1"),
    ("$(A B)", "$(A B)"),
    ("$(A\n)", "$(A\n)"),
    ("line\n$(A)\n", "line\n1\n"),
    ("$($($(", "$($($("),
    ("$(A$(B))", "$(A$(B))"),
    ("$(A$(B)", "$(A$(B)"),
    ("$(x$$y)", "$(x$$y)"),
]


@pytest.mark.parametrize(("text", "expected"), EXPANSIONS)
def test_references_in_a_value(text: str, expected: str) -> None:
    """`$(NAME)` is the value, `$$` a dollar sign, and what is unknown stays as it is written."""
    assert environment.expand(text, VALUES) == expected


async def test_a_reference_sees_what_is_defined_before_it() -> None:
    """Not what comes after it, and a variable that is defined again sees its earlier value."""
    env = [
        {"name": "X", "value": "$(Y)"},
        {"name": "Y", "value": "1"},
        {"name": "Z", "value": "$(Y)"},
        {"name": "Y", "value": "$(Y)2"},
    ]

    assert await resolved(env=env) == {"X": "$(Y)", "Y": "12", "Z": "1"}


async def test_values_that_come_from_elsewhere_are_not_expanded() -> None:
    """A `$(A)` or `$$` inside a ConfigMap or a Secret is meant literally."""
    env = [variable("B", "configMapKeyRef", name="cm", key="B"), variable("PW", "secretKeyRef", name="s", key="PW")]

    assert await resolved(envFrom=[{"configMapRef": {"name": "cm"}}], env=env) == {"A": "1", "B": "$(A)", "PW": "pä$$"}


# --- the order -------------------------------------------------------------------------------------------------------


async def test_later_sources_win() -> None:
    """First `envFrom` in its order, then `env` in its order."""
    sources = [{"configMapRef": {"name": "cm"}}, {"configMapRef": {"name": "late"}}]

    assert await resolved(envFrom=sources, env=[{"name": "C", "value": "env"}]) == {
        "A": "late",
        "B": "$(A)",
        "C": "env",
    }


async def test_a_prefix_is_put_before_each_name() -> None:
    """Of ConfigMaps and Secrets alike."""
    sources = [{"prefix": "X_", "configMapRef": {"name": "late"}}, {"prefix": "S_", "secretRef": {"name": "s"}}]

    assert set(await resolved(envFrom=sources)) == {"X_A", "X_C", "S_A", "S_PW"}


async def test_env_may_refer_to_what_env_from_brought() -> None:
    """The prefix is part of the name."""
    sources = [{"prefix": "X_", "configMapRef": {"name": "cm"}}]

    assert (await resolved(envFrom=sources, env=[{"name": "Y", "value": "<$(X_A)>"}]))["Y"] == "<1>"


async def test_binary_data_is_not_part_of_an_environment() -> None:
    """Only the texts of a ConfigMap are."""
    assert "BIN" not in await resolved(envFrom=[{"configMapRef": {"name": "cm"}}])


@pytest.mark.parametrize("entry", [{"name": "X"}, {"name": "X", "value": ""}, {"name": "X", "value": None}])
async def test_a_variable_without_a_value_is_empty(entry: Document) -> None:
    """It is set all the same."""
    assert await resolved(env=[entry]) == {"X": ""}


# --- optional and missing --------------------------------------------------------------------------------------------

ABSENT = [
    {"envFrom": [{"configMapRef": {"name": "no"}}]},
    {"envFrom": [{"secretRef": {"name": "no"}}]},
    {"env": [variable("X", "configMapKeyRef", name="no", key="A")]},
    {"env": [variable("X", "configMapKeyRef", name="cm", key="no")]},
    {"env": [variable("X", "secretKeyRef", name="no", key="A")]},
    {"env": [variable("X", "secretKeyRef", name="s", key="no")]},
    {"env": [variable("X", "configMapKeyRef", name="cm", key="BIN")]},
]


def optional(container: Document) -> Document:
    text = msgspec.json.encode(container).replace(b'"name":"no"', b'"optional":true,"name":"no"')
    text = text.replace(b'"key":"no"', b'"optional":true,"key":"no"').replace(
        b'"key":"BIN"', b'"optional":true,"key":"BIN"'
    )
    document: Document = msgspec.json.decode(text)
    return document


@pytest.mark.parametrize("container", ABSENT)
async def test_a_missing_reference_makes_the_pod_wait(container: Document) -> None:
    """The error names what is missing."""
    with pytest.raises(MissingInput, match=r"'no'|'BIN'"):
        await resolved(**container)


@pytest.mark.parametrize("container", ABSENT)
async def test_an_optional_reference_may_be_missing(container: Document) -> None:
    """The variable is not set then, which is not the same as empty."""
    assert await resolved(**optional(container)) == {}


BAD: list[tuple[Document, type[KubeletError], str]] = [
    (
        {"env": [variable("X", "resourceFieldRef", resource="limits.gold")]},
        Unsupported,
        "resourceFieldRef 'limits.gold'",
    ),
    ({"env": [variable("X", "resourceFieldRef", resource="cpu")]}, Unsupported, "resourceFieldRef 'cpu'"),
    (
        {"env": [variable("X", "resourceFieldRef", resource="requests.cpu", divisor="x")]},
        Unsupported,
        "divisor 'x'",
    ),
    ({"env": [variable("X", "fileKeyRef", path="p", key="k")]}, Unsupported, "'X'.*fileKeyRef"),
    ({"env": [{"name": "X", "valueFrom": {"newKindRef": {}}}]}, Unsupported, "'X'.*a source"),
    ({"env": [variable("X", "fieldRef", fieldPath="status.qosClass")]}, Unsupported, "status.qosClass"),
    ({"env": [variable("X", "secretKeyRef", name="bytes", key="RAW")]}, Unsupported, "not UTF-8; mount it as a file"),
    ({"envFrom": [{"secretRef": {"name": "bytes"}}]}, Unsupported, "not UTF-8"),
    ({"envFrom": [{"secretRef": {"name": "damaged"}}]}, MissingInput, "'damaged'.*base64"),
]


@pytest.mark.parametrize(("container", "kind", "text"), BAD)
async def test_what_cannot_be_honoured_is_refused(container: Document, kind: type[KubeletError], text: str) -> None:
    """A value is never left out or changed in silence."""
    with pytest.raises(kind, match=text):
        await resolved(**container)


async def test_bytes_of_another_key_do_no_harm() -> None:
    """A variable takes one key of a Secret; what the others hold does not matter to it."""
    mixed = Kubernetes(secret("mixed", {"TEXT": b"t", "RAW": b"\xff"}))
    spec = msgspec.convert({"name": "c", "env": [variable("X", "secretKeyRef", name="mixed", key="TEXT")]}, Container)

    assert await environment.resolve(spec, pod(), Objects(mixed, pod()), HERE) == {"X": "t"}


async def test_each_object_is_fetched_once() -> None:
    """However often a pod refers to it."""
    site = Kubernetes(config_map("cm", {"A": "1"}))
    spec = msgspec.convert({"name": "c", "envFrom": [{"configMapRef": {"name": "cm"}}] * 5}, Container)
    await environment.resolve(spec, pod(), Objects(site, pod()), HERE)

    assert site.fetched == ["configmap ns/cm"]


# --- fields ----------------------------------------------------------------------------------------------------------

FIELDS = [
    ("metadata.name", "p"),
    ("metadata.namespace", "ns"),
    ("metadata.uid", "uid-1"),
    ("metadata.labels['app']", "web"),
    ("metadata.labels['a'b']", "c"),
    ("metadata.labels['no']", ""),
    ("metadata.annotations['note']", 'say "hi"\\\n'),
    ("spec.nodeName", "vk"),
    ("spec.serviceAccountName", "sa"),
    ("status.hostIP", "10.0.0.1"),
    ("status.hostIPs", "10.0.0.1"),
    ("status.podIP", "10.0.0.2"),
    ("status.podIPs", "10.0.0.2"),
    ("metadata.labels", 'a\'b="c"\napp="web"'),
    ("metadata.annotations", 'note="say \\"hi\\"\\\\\\n"'),
]


@pytest.mark.parametrize(("path", "value"), FIELDS)
async def test_a_field_of_the_pod(path: str, value: str) -> None:
    """The downward API knows these fields."""
    assert await resolved(env=[variable("X", "fieldRef", fieldPath=path)]) == {"X": value}


async def test_the_default_service_account_has_a_name() -> None:
    """A pod that names none has `default`."""
    spec = msgspec.convert(
        {"name": "c", "env": [variable("X", "fieldRef", fieldPath="spec.serviceAccountName")]}, Container
    )

    assert await environment.resolve(spec, pod(), Objects(SITE, pod()), HERE) == {"X": "default"}


# --- resources -------------------------------------------------------------------------------------------------------

LIMITED = {"limits": {"cpu": "1500m", "memory": "100Mi"}, "requests": {"cpu": "250m"}}
RESOURCES = [
    ("limits.cpu", None, "2"),
    ("limits.cpu", "1m", "1500"),
    ("limits.cpu", "0", "2"),
    ("requests.cpu", None, "1"),
    ("requests.cpu", "1m", "250"),
    ("limits.memory", None, "104857600"),
    ("limits.memory", "1Mi", "100"),
    ("limits.memory", "1M", "105"),
    ("requests.memory", "1Mi", "0"),
    ("limits.ephemeral-storage", "1Gi", "10"),
]


@pytest.mark.parametrize(("resource", "divisor", "expected"), RESOURCES)
async def test_a_resource_in_units_of_its_divisor(resource: str, divisor: str | None, expected: str) -> None:
    """Rounded up; a limit that is not set is what the node has."""
    selector = {"resource": resource} | ({"divisor": divisor} if divisor else {})

    found = await resolved(resources=LIMITED, env=[{"name": "X", "valueFrom": {"resourceFieldRef": selector}}])

    assert found == {"X": expected}


# --- service links ---------------------------------------------------------------------------------------------------


def service(name: str, address: str, *ports: tuple[int, str]) -> Service:
    spec = ServiceSpec(cluster_ip=address, ports=[ServicePort(port=port, name=label) for port, label in ports])
    return Service(metadata=ServiceMeta(name=name), spec=spec)


LINKED = Kubernetes(
    config_map("cm", {"WEB_SERVICE_PORT": "mine", "not a = name": "x", "ok.name-1": "y", "\u00e4": "z"}),
    services={
        "default": [service("kubernetes", "10.96.0.1", (443, "https")), service("other", "10.96.0.2", (1, ""))],
        "ns": [
            service("web", "10.96.0.9", (80, "http"), (9090, "admin-port")),
            service("headless", "None", (80, "")),
            service("portless", "10.96.0.8"),
            service("six", "fd00::1", (53, "")),
        ],
    },
)
MASTER = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
}


async def linked(surroundings: Surroundings = HERE, *, env_from: Any = None, **spec: Any) -> dict[str, str]:
    asker = pod(**spec)
    container = msgspec.convert({"name": "c", "envFrom": env_from or []}, Container)
    return await environment.resolve(container, asker, Objects(LINKED, asker), surroundings)


async def test_services_of_the_namespace_have_variables() -> None:
    """As a kubelet makes them; headless ones and those of other namespaces have none."""
    found = await linked()

    assert found.items() >= MASTER.items()
    assert found["WEB_SERVICE_HOST"] == "10.96.0.9"
    assert found["WEB_SERVICE_PORT"] == "80"
    assert found["WEB_SERVICE_PORT_ADMIN_PORT"] == "9090"
    assert found["WEB_PORT_9090_TCP"] == "tcp://10.96.0.9:9090"
    assert found["SIX_PORT"] == "tcp://[fd00::1]:53"
    assert not [name for name in found if name.startswith(("HEADLESS", "OTHER", "PORTLESS"))]


async def test_service_links_can_be_switched_off() -> None:
    """But for the one of Kubernetes itself."""
    assert await linked(enableServiceLinks=False) == MASTER


async def test_service_links_are_the_lowest() -> None:
    """Whatever the pod names wins; keys of an object that are no names are passed over."""
    found = await linked(env_from=[{"configMapRef": {"name": "cm"}}])

    assert (found["WEB_SERVICE_PORT"], found["ok.name-1"]) == ("mine", "y")
    assert not {"not a = name", "\u00e4"} & found.keys()


async def test_the_api_server_can_have_another_address_for_pods() -> None:
    """KubernetesApiAddr and KubernetesApiPort."""
    found = await linked(
        Surroundings(host_ip="", pod_ip="", kubernetes=("api.example", 6443)), enableServiceLinks=False
    )

    assert found["KUBERNETES_SERVICE_HOST"] == "api.example"
    assert found["KUBERNETES_PORT_6443_TCP"] == "tcp://api.example:6443"
