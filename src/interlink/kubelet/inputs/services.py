"""Service links: the variables by which containers find the services of their namespace; pure.

Names and forms are those of a kubelet (kubernetes/pkg/kubelet/envvars), the Docker-style ones included.
"""

from collections.abc import Iterable

import msgspec


class ServicePort(msgspec.Struct, frozen=True):
    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ports: list[ServicePort] | None = None


class ServiceMeta(msgspec.Struct, frozen=True):
    name: str = ""


class Service(msgspec.Struct, frozen=True):
    metadata: ServiceMeta
    spec: ServiceSpec = ServiceSpec()


def variables(services: Iterable[Service]) -> dict[str, str]:
    """Headless services and those without an address have none."""
    found: dict[str, str] = {}
    for service in services:
        if service.spec.cluster_ip not in ("", "None") and service.spec.ports:
            found |= _of(service.metadata.name, service.spec.cluster_ip, service.spec.ports)
    return found


def _of(service: str, address: str, ports: list[ServicePort]) -> dict[str, str]:
    prefix = service.upper().replace("-", "_")
    found = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(ports[0].port)}
    for port in ports:
        if port.name:
            found[f"{prefix}_SERVICE_PORT_{port.name.upper().replace('-', '_')}"] = str(port.port)
    found[f"{prefix}_PORT"] = _url(address, ports[0])
    for port in ports:
        link = f"{prefix}_PORT_{port.port}_{port.protocol.upper()}"
        found |= {
            link: _url(address, port),
            f"{link}_PROTO": port.protocol.lower(),
            f"{link}_PORT": str(port.port),
            f"{link}_ADDR": address,
        }
    return found


def _url(address: str, port: ServicePort) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"{port.protocol.lower()}://{host}:{port.port}"
