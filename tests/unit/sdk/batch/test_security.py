"""What a pod's security contexts ask for and a job does not have."""

from typing import Any

import msgspec
import pytest

from interlink.model.pods import Container
from interlink.sdk.batch import security
from interlink.sdk.errors import Rejected
from tests.unit.builders import Document, pod

USER = 1000
OF_A_CHART: Document = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

TABLE: list[tuple[Any, list[str]]] = [
    (None, []),
    ({}, []),
    ({"runAsUser": USER}, []),
    ({"runAsUser": 0}, ["runAsUser"]),
    ({"runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 1, "supplementalGroups": [4000]},
     ["fsGroup", "runAsGroup", "runAsUser", "supplementalGroups"]),
    ({"supplementalGroups": [], "fsGroupChangePolicy": "OnRootMismatch", "supplementalGroupsPolicy": "Merge"}, []),
    ({"runAsNonRoot": True}, []),
    ({"privileged": True}, ["privileged"]),
    ({"privileged": False, "readOnlyRootFilesystem": False, "allowPrivilegeEscalation": True}, []),
    ({"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
     ["allowPrivilegeEscalation", "readOnlyRootFilesystem"]),
    ({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}, ["capabilities.add"]),
    ({"capabilities": {"add": []}}, []),
    ({"capabilities": None, "seLinuxOptions": None}, []),
    ({"capabilities": "strange", "new": 1}, ["capabilities", "new"]),
    ({"seccompProfile": {"type": "RuntimeDefault"}}, ["seccompProfile"]),
    ({"seccompProfile": {"type": "Unconfined"}, "appArmorProfile": {"type": "Unconfined"}, "procMount": "Default"}, []),
    ({"appArmorProfile": {"type": "RuntimeDefault"}, "procMount": "Unmasked", "seLinuxOptions": {"level": "s0"}},
     ["appArmorProfile", "procMount", "seLinuxOptions"]),
    ({"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}, ["sysctls"]),
    (OF_A_CHART, ["allowPrivilegeEscalation", "readOnlyRootFilesystem", "seccompProfile"]),
]  # fmt: skip


@pytest.mark.parametrize(("context", "names"), TABLE)
def test_what_does_not_hold_is_named(context: Any, names: list[str]) -> None:
    """What asks for nothing, or for what is so anyway, is not."""
    assert security.unenforced(context, user=USER) == names


def test_what_the_runtime_sees_to_is_not_named() -> None:
    """A read-only image, for example."""
    enforced = ["allowPrivilegeEscalation", "readOnlyRootFilesystem"]

    assert security.unenforced(OF_A_CHART, user=USER, enforced=enforced) == ["seccompProfile"]


def test_root_keeps_its_capabilities() -> None:
    """An ordinary user has none to drop."""
    assert security.unenforced({"capabilities": {"drop": ["ALL"]}}, user=0) == ["capabilities.drop"]


@pytest.mark.parametrize(
    ("of_pod", "of_container", "user", "is_refused"),
    [
        (True, None, 0, True),
        (None, True, 0, True),
        (True, False, 0, False),
        (False, True, 0, True),
        (True, True, USER, False),
        (None, None, 0, False),
    ],
)
def test_what_must_not_run_as_root_does_not(
    of_pod: bool | None, of_container: bool | None, user: int, is_refused: bool
) -> None:
    """The container's own word counts before the pod's; a null is none."""
    asking = pod(securityContext={"runAsNonRoot": of_pod})
    container = msgspec.convert({"name": "c", "securityContext": {"runAsNonRoot": of_container}}, Container)
    if not is_refused:
        security.check_user(asking, container, user=user)
        return

    with pytest.raises(Rejected, match="container 'c' has runAsNonRoot and will run as root"):
        security.check_user(asking, container, user=user)
