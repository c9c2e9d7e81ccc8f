"""Where a part listens or is called: `unix:///path`, `http://host` or `https://host` with a port."""

from urllib.parse import urlsplit

import msgspec

from interlink.model.errors import ConfigurationError


class Address(msgspec.Struct, frozen=True):
    """Either `socket` (a path) or `scheme`, `host` and `port`."""

    scheme: str
    host: str = ""
    port: int = 0
    socket: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"unix://{self.socket}" if self.socket else f"{self.scheme}://{host}:{self.port}"


def parse(url: str, port: str | int | None, *, key: str) -> Address:
    """Read an address and its separate port, as the existing configuration files write them.

    `key` names the place for the error. Raises ConfigurationError.
    """
    if url.startswith("unix://"):
        path = url.removeprefix("unix://")
        if not path.startswith("/"):
            raise ConfigurationError(f"{key}: {url!r} must name an absolute path, as in unix:///run/interlink.sock")
        return Address(scheme="unix", socket=path)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigurationError(f"{key}: {url!r} is not like http://host: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{key}: {url!r} must start with unix://, http:// or https://")
    found = _port_of(parts.netloc) if port in (None, "") else port
    return Address(scheme=parts.scheme, host=parts.hostname, port=_port(found, key))


def _port_of(netloc: str) -> str:
    return netloc.rpartition(":")[2] if ":" in netloc.rpartition("]")[2] else ""


def _port(value: str | int | None, key: str) -> int:
    text = str(value).strip()
    if not text.isdecimal() or not 0 <= int(text) < 65536:
        raise ConfigurationError(f"{key}: the port {text!r} must be a number from 0 to 65535")
    return int(text)
