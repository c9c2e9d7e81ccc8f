"""The create request of a pod: what Kubernetes resolves, and everything else as it came."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from interlink.kubelet.errors import MissingInput
from interlink.kubelet.inputs import resolving
from interlink.wire.messages import PodCreateRequest
from tests.unit.builders import Document, seen
from tests.unit.kubelet.inputs.kubernetes import HERE, Kubernetes, config_map, secret

CONFIG = config_map("cm", {"a": "1"}, binary={"b": b"\xff"})
SECRET = secret("s", {"k": b"\x00\xff"})
SITE = Kubernetes(CONFIG, SECRET)


async def resolved(site: Kubernetes = SITE, **spec: Any) -> PodCreateRequest:
    return await resolving.resolve(seen(**spec), site, HERE)


async def sent(site: Kubernetes = SITE, **spec: Any) -> Document:
    document: Document = msgspec.json.decode((await resolved(site, **spec)).pod)
    return document


async def test_what_we_do_not_know_of_a_pod_travels_on() -> None:
    """Only the resolved parts of a pod are touched."""
    odd: dict[str, Any] = {
        "hostUsers": False,
        "tolerations": [{"key": "k", "tolerationSeconds": 30}],
        "overhead": {"cpu": "250m"},
    }

    assert odd.items() <= (await sent(SITE, **odd))["spec"].items()


async def test_managed_fields_are_left_out() -> None:
    """They are long and say nothing to a plugin."""
    assert "managedFields" not in (await sent(metadata={"managedFields": [{"manager": "kubectl"}]}))["metadata"]


async def test_the_environment_is_plain_values() -> None:
    """Of init containers and containers; `envFrom` is gone."""
    container = {"name": "c", "envFrom": [{"configMapRef": {"name": "cm"}}], "env": [{"name": "X", "value": "$(a)"}]}
    document = await sent(containers=[container], initContainers=[{**container, "name": "i"}])

    for entry in (*document["spec"]["containers"], *document["spec"]["initContainers"]):
        assert entry["env"] == [{"name": "a", "value": "1"}, {"name": "X", "value": "1"}]
        assert "envFrom" not in entry


async def test_command_and_args_are_expanded() -> None:
    """With the container's own environment; what is unknown stays."""
    container = {"name": "c", "command": ["$(X)", "$$(X)"], "args": ["$(NO)"], "env": [{"name": "X", "value": "1"}]}

    entry = (await sent(containers=[container]))["spec"]["containers"][0]
    assert (entry["command"], entry["args"]) == (["1", "$(X)"], ["$(NO)"])


async def test_a_sub_path_expression_becomes_a_sub_path() -> None:
    """With the container's own environment, which only is known here."""
    mount = {"name": "v", "mountPath": "/m", "subPathExpr": "of/$(POD)"}
    env = [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    entry = (await sent(containers=[{"name": "c", "env": env, "volumeMounts": [mount]}]))["spec"]["containers"][0]

    assert entry["volumeMounts"] == [{"name": "v", "mountPath": "/m", "subPath": "of/p"}]


AWKWARD = [
    "",
    " ",
    "\n",
    "tab\t",
    'quo"te',
    "back\\slash",
    "umläut",
    "🙂",
    "\u2028",
    "\x01",
    "null",
    "$HOME",
    "'; rm -rf /",
]


async def test_values_and_arguments_travel_unchanged() -> None:
    """Quotes, white space, control characters and every script of the world."""
    env = [{"name": f"V{number}", "value": text} for number, text in enumerate(AWKWARD)]
    entry = (await sent(containers=[{"name": "c", "args": AWKWARD, "env": env}]))["spec"]["containers"][0]

    assert entry["args"] == AWKWARD
    assert [variable["value"] for variable in entry["env"]] == AWKWARD


async def test_the_objects_of_volumes_come_beside_the_pod() -> None:
    """Byte by byte as Kubernetes has them, each once."""
    volumes = [{"name": "v", "configMap": {"name": "cm"}}, {"name": "w", "configMap": {"name": "cm"}}]
    request = await resolved(
        volumes=[*volumes, {"name": "x", "secret": {"secretName": "s"}}, {"name": "y", "emptyDir": {}}]
    )

    assert [bytes(raw) for raw in request.configmaps or []] == [CONFIG[2]]
    assert [bytes(raw) for raw in request.secrets or []] == [SECRET[2]]


@pytest.mark.parametrize(
    "volume", [{"configMap": {"name": "no", "optional": True}}, {"secret": {"secretName": "no", "optional": True}}]
)
async def test_an_optional_object_may_be_missing(volume: Document) -> None:
    """Nothing comes in its place."""
    request = await resolved(volumes=[{"name": "v", **volume}])

    assert (request.configmaps, request.secrets) == ([], [])


@pytest.mark.parametrize("volume", [{"configMap": {"name": "no"}}, {"secret": {"secretName": "no"}}])
async def test_a_missing_object_makes_the_pod_wait(volume: Document) -> None:
    """The error names the volume and the object."""
    with pytest.raises(MissingInput, match=r"volume 'v': (configmap|secret) 'no' not found"):
        await resolved(volumes=[{"name": "v", **volume}])


async def test_an_api_server_that_is_away_makes_the_pod_wait() -> None:
    """Also for optional references: not to be had is not the same as not there."""
    away = Kubernetes()
    away.is_away = True

    with pytest.raises(MissingInput, match="is away"):
        await resolved(away, volumes=[{"name": "v", "configMap": {"name": "no", "optional": True}}])


async def test_a_downward_api_volume_travels_as_a_projected_one() -> None:
    """With its mode, and with its files beside the pod."""
    items = [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
    request = await resolved(volumes=[{"name": "v", "downwardAPI": {"items": items, "defaultMode": 256}}])

    volume = msgspec.json.decode(request.pod)["spec"]["volumes"][0]
    assert volume == {"name": "v", "projected": {"sources": [{"downwardAPI": {"items": items}}], "defaultMode": 256}}
    assert msgspec.json.decode((request.projectedvolumesmaps or [])[0])["data"] == {"name": "p"}


@pytest.mark.parametrize("key", ["initContainers", "volumes"])
async def test_null_lists_are_no_hindrance(key: str) -> None:
    """A pod whose lists are null is resolved."""
    assert (await sent(SITE, **{key: None}))["metadata"]["uid"] == "uid-1"


async def test_containers_that_are_kept_back_do_not_travel() -> None:
    """Nor is anything resolved for them."""
    site = Kubernetes()
    absent = [{"configMapRef": {"name": "no"}}]
    annotations = {
        "interlink.eu/disable-offload-containers": "a,b",
        "interlink.eu/disable-offload-init-containers": "i",
    }

    document = await sent(
        site,
        metadata={"annotations": annotations},
        containers=[{"name": "a", "envFrom": absent}, {"name": "c"}, {"name": "b"}],
        initContainers=[{"name": "i", "envFrom": absent}],
    )

    assert [c["name"] for c in document["spec"]["containers"]] == ["c"]
    assert document["spec"]["initContainers"] == []


async def test_projected_volumes_can_be_left_out() -> None:
    """With their mounts; other volumes stay."""
    volumes: list[Document] = [
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "labels", "downwardAPI": {"items": []}},
        {"name": "scratch", "emptyDir": {}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    without = msgspec.structs.replace(HERE, has_projected_volumes=False)

    request = await resolving.resolve(
        seen(volumes=volumes, containers=[{"name": "c", "volumeMounts": mounts}]), SITE, without
    )

    spec = msgspec.json.decode(request.pod)["spec"]
    assert [volume["name"] for volume in spec["volumes"]] == ["scratch"]
    assert [mount["name"] for mount in spec["containers"][0]["volumeMounts"]] == ["scratch"]
    assert request.projectedvolumesmaps == []


async def test_the_builder_of_job_scripts_is_named() -> None:
    """JobScriptBuilderURL goes with each pod."""
    here = msgspec.structs.replace(HERE, job_script_builder_url="http://builder")

    assert (await resolving.resolve(seen(), SITE, here)).jobscript_url == "http://builder"


async def test_secrets_for_registries_travel_beside_the_pod() -> None:
    """Those that are there, each once; a pod that names none sends nothing of the kind."""
    names = [{"name": "s"}, {"name": "missing"}, {"name": "s"}]

    request = await resolved(imagePullSecrets=names)

    assert request.pull_secrets == [Raw(SECRET[2])]
    assert (await resolved()).pull_secrets is UNSET
    assert (await resolved(imagePullSecrets=[{"name": "missing"}])).pull_secrets is UNSET
