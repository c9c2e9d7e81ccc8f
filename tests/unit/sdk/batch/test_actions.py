"""Probes and hooks, from the pod to what the runner performs."""

from typing import Any

import msgspec
import pytest

from interlink.model.pods import Container
from interlink.sdk.batch import actions
from interlink.sdk.errors import Rejected
from tests.unit.builders import Document

PORTS = [{"name": "web", "containerPort": 8080}, {"containerPort": 9}]


def performed(**fields: Any) -> Document:
    return actions.of(msgspec.convert({"name": "c", "ports": PORTS, **fields}, Container))


def http(url: str, *headers: list[str]) -> Document:
    return {"http": {"url": url, "headers": list(headers)}}


ACTIONS = [
    ({"exec": {"command": ["test", "-e", "$x"]}}, {"exec": ["test", "-e", "$x"]}),
    ({"httpGet": {"port": 80}}, http("http://127.0.0.1:80/")),
    ({"httpGet": {"port": "web", "path": "ok?a=1"}}, http("http://127.0.0.1:8080/ok?a=1")),
    ({"httpGet": {"port": "81", "scheme": "HTTPS", "host": "::1", "path": "/x"}}, http("https://[::1]:81/x")),
    (
        {"httpGet": {"port": 1, "httpHeaders": [{"name": "Host", "value": "h"}]}},
        http("http://127.0.0.1:1/", ["Host", "h"]),
    ),
    ({"tcpSocket": {"port": "web"}}, {"tcp": {"host": "127.0.0.1", "port": 8080}}),
    ({"tcpSocket": {"port": 5, "host": "other"}}, {"tcp": {"host": "other", "port": 5}}),
]


@pytest.mark.parametrize(("action", "expected"), ACTIONS)
def test_an_action(action: Document, expected: Document) -> None:
    """The same in a probe and in a hook; the pod's containers are at this machine's own address."""
    assert performed(livenessProbe=action) == {"liveness_probe": expected}
    assert performed(lifecycle={"preStop": action}) == {"pre_stop": expected}


def test_the_numbers_of_a_probe() -> None:
    """Those that are given; the runner has the defaults of Kubernetes."""
    numbers = {"initialDelaySeconds": 1, "timeoutSeconds": 2, "periodSeconds": 3, "successThreshold": 4}
    rest = {"failureThreshold": 5, "terminationGracePeriodSeconds": 6}

    found = performed(startupProbe={"tcpSocket": {"port": 1}, **numbers, **rest})["startup_probe"]

    assert (found["initial_delay_s"], found["timeout_s"], found["period_s"]) == (1, 2, 3)
    assert (found["success_threshold"], found["failure_threshold"], found["grace_s"]) == (4, 5, 6)


def test_a_container_has_all_its_actions() -> None:
    """Three probes and two hooks; a hook may also just sleep."""
    probe = {"tcpSocket": {"port": 1}}
    hooks = {"postStart": {"exec": {"command": ["true"]}}, "preStop": {"sleep": {"seconds": 2}}}

    found = performed(startupProbe=probe, readinessProbe=probe, livenessProbe=probe, lifecycle=hooks)

    assert set(found) == {"startup_probe", "readiness_probe", "liveness_probe", "post_start", "pre_stop"}
    assert found["pre_stop"] == {"sleep": {"seconds": 2}}


REFUSED = [
    ({"readinessProbe": {"grpc": {"port": 1}}}, "container 'c': readinessProbe: gRPC is not supported at this site"),
    ({"livenessProbe": {"periodSeconds": 1}}, "livenessProbe: its kind of action is not supported"),
    ({"startupProbe": {"tcpSocket": {"port": "db"}}}, "startupProbe: the container has no port named 'db'"),
    ({"lifecycle": {"postStart": {"httpGet": {}}}}, "lifecycle: .*port"),
]


@pytest.mark.parametrize(("fields", "text"), REFUSED)
def test_what_cannot_be_performed_is_refused(fields: Document, text: str) -> None:
    """With the place; a probe that is left out would say that all is well."""
    with pytest.raises(Rejected, match=text):
        performed(**fields)
