"""The server's configuration file and environment, with the keys of the existing InterLinkConfig.yaml."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlink.model import configuration
from interlink.model.errors import ConfigurationError
from interlink.sdk import addresses
from interlink.sdk.addresses import Address


class ServerFile(msgspec.Struct, frozen=True, rename="pascal"):
    """`InterLinkConfig.yaml`. Intervals are in seconds."""

    interlink_address: str = ""
    interlink_port: str | int = ""
    sidecar_url: str = msgspec.field(name="SidecarURL", default="")
    sidecar_port: str | int = ""
    interlink_dir: str = ""
    verbose_logging: bool = False
    errors_only_logging: bool = False
    status_interval: float = 2.0
    job_lost_grace: float = 60.0


class ServerSettings(msgspec.Struct, frozen=True):
    address: Address
    plugin: Address
    directory: Path
    status_interval_s: float
    job_lost_grace_s: float
    log_level: str
    unknown_keys: list[str]


def load(text: str, environment: Mapping[str, str], *, source: str) -> ServerSettings:
    """The environment wins over the file. Raises ConfigurationError naming the key."""
    file, unknown = configuration.parse(text, ServerFile, source=source)
    if file.status_interval <= 0:
        raise ConfigurationError(f"{source}: StatusInterval: must be more than 0 seconds")
    return ServerSettings(
        address=_address(
            environment.get("INTERLINKURL") or file.interlink_address,
            environment.get("INTERLINKPORT") or file.interlink_port,
            f"{source}: InterlinkAddress",
        ),
        plugin=_address(
            environment.get("SIDECARURL") or file.sidecar_url,
            environment.get("SIDECARPORT") or file.sidecar_port,
            f"{source}: SidecarURL",
        ),
        directory=Path(environment.get("INTERLINK_DIR") or file.interlink_dir or "~/.interlink").expanduser(),
        status_interval_s=file.status_interval,
        job_lost_grace_s=file.job_lost_grace,
        log_level=_level(file),
        unknown_keys=unknown,
    )


def _address(url: str, port: str | int, key: str) -> Address:
    if not url:
        raise ConfigurationError(f"{key}: missing; set it to unix:///path or http://host, with the port beside it")
    return addresses.parse(url, port, key=key)


def _level(file: ServerFile) -> str:
    return "debug" if file.verbose_logging else "error" if file.errors_only_logging else "info"
