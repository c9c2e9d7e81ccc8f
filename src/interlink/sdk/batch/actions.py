"""Probes and lifecycle hooks of a container as the runner performs them; pure.

`exec` is a command of the container, which the runner runs inside it. HTTP and TCP go to this machine: the containers
of a pod share its network.
"""

from typing import Any, TypeVar

import msgspec

from interlink.model.pods import Container
from interlink.sdk.errors import Rejected

_T = TypeVar("_T", bound=msgspec.Struct)
_HERE = "127.0.0.1"


class _Exec(msgspec.Struct, frozen=True):
    command: list[str] | None = None


class _Header(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _HTTPGet(msgspec.Struct, frozen=True, rename="camel"):
    port: int | str
    host: str | None = None
    path: str | None = None
    scheme: str | None = None
    http_headers: list[_Header] | None = None


class _TCPSocket(msgspec.Struct, frozen=True):
    port: int | str
    host: str | None = None


class _Sleep(msgspec.Struct, frozen=True):
    seconds: int = 0


class _Action(msgspec.Struct, frozen=True, rename="camel"):
    exec: _Exec | None = None
    http_get: _HTTPGet | None = None
    tcp_socket: _TCPSocket | None = None
    sleep: _Sleep | None = None
    grpc: dict[str, Any] | None = None


class _Probe(_Action, frozen=True, rename="camel"):
    initial_delay_seconds: int | None = None
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    failure_threshold: int | None = None
    termination_grace_period_seconds: int | None = None


class _Lifecycle(msgspec.Struct, frozen=True, rename="camel"):
    post_start: _Action | None = None
    pre_stop: _Action | None = None


def of(container: Container) -> dict[str, Any]:
    """The probes and hooks that the container has, by the runner's names. Raises Rejected for one it cannot perform."""
    kinds = (("startup", container.startup_probe), ("readiness", container.readiness_probe))
    found: dict[str, Any] = {}
    for kind, document in (*kinds, ("liveness", container.liveness_probe)):
        if document:
            place = f"container {container.name!r}: {kind}Probe"
            found[f"{kind}_probe"] = _probe(_read(document, _Probe, place), container, place)
    hooks = _read(container.lifecycle or {}, _Lifecycle, f"container {container.name!r}: lifecycle")
    for key, name, hook in (("post_start", "postStart", hooks.post_start), ("pre_stop", "preStop", hooks.pre_stop)):
        if hook is not None:
            found[key] = _action(hook, container, f"container {container.name!r}: {name}")
    return found


def _read(document: dict[str, Any], kind: type[_T], place: str) -> _T:
    try:
        return msgspec.convert(document, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Rejected(f"{place}: {error}") from error


def _probe(probe: _Probe, container: Container, place: str) -> dict[str, Any]:
    numbers = {
        "initial_delay_s": probe.initial_delay_seconds,
        "timeout_s": probe.timeout_seconds,
        "period_s": probe.period_seconds,
        "success_threshold": probe.success_threshold,
        "failure_threshold": probe.failure_threshold,
        "grace_s": probe.termination_grace_period_seconds,
    }
    return _action(probe, container, place) | {key: value for key, value in numbers.items() if value is not None}


def _action(action: _Action, container: Container, place: str) -> dict[str, Any]:
    if action.exec is not None and action.exec.command:
        return {"exec": action.exec.command}
    if (get := action.http_get) is not None:
        headers = [[header.name, header.value] for header in get.http_headers or []]
        return {"http": {"url": _url(get, container, place), "headers": headers}}
    if (tcp := action.tcp_socket) is not None:
        return {"tcp": {"host": tcp.host or _HERE, "port": _port(tcp.port, container, place)}}
    if action.sleep is not None:
        return {"sleep": {"seconds": action.sleep.seconds}}
    kind = "gRPC is" if action.grpc is not None else "its kind of action is"
    raise Rejected(f"{place}: {kind} not supported at this site; use exec, httpGet or tcpSocket")


def _url(get: _HTTPGet, container: Container, place: str) -> str:
    host = get.host or _HERE
    host = f"[{host}]" if ":" in host else host
    path = get.path or "/"
    path = path if path.startswith("/") else f"/{path}"
    return f"{(get.scheme or 'HTTP').lower()}://{host}:{_port(get.port, container, place)}{path}"


def _port(port: int | str, container: Container, place: str) -> int:
    """A number, or the name of one of the container's ports."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for known in container.ports or []:
        if known.name == port:
            return known.container_port
    raise Rejected(f"{place}: the container has no port named {port[:60]!r}")
