"""Where and for whom a plugin listens, from the keys that the configuration files of plugins share."""

import ssl
from pathlib import Path

import msgspec

from interlink.model.errors import ConfigurationError
from interlink.sdk import addresses, tls, tokens
from interlink.sdk.addresses import Address
from interlink.sdk.tls import TLSFile


class Listening(msgspec.Struct, frozen=True):
    """`tls` is set exactly for https; with a `token_file` callers must show what it holds."""

    address: Address
    tls: ssl.SSLContext | None = None
    token_file: Path | None = None


def at(url: str, *, tls_files: TLSFile | None = None, token_file: str | Path = "") -> Listening:
    """`url` is unix:///path, http://host:port or https://host:port. Raises ConfigurationError."""
    return read(address=url, port=None, tls_files=tls_files or TLSFile(), token_file=token_file, key="address")


def read(
    *,
    socket: str = "",
    address: str,
    port: str | int | None,
    tls_files: TLSFile,
    token_file: str | Path = "",
    key: str = "SidecarPort",
    source: str = "",
) -> Listening:
    """A socket wins over the address and the port. Raises ConfigurationError naming the key."""
    place = f"{source}: " if source else ""
    found = addresses.parse(socket or address, port, key=f"{place}{key}")
    is_https = found.scheme == "https"
    if tls_files.enabled and not is_https:
        raise ConfigurationError(f"{place}TLS.Enabled: the address must start with https:// then")
    if token_file:
        tokens.check(Path(token_file), key=f"{place}TokenFile")
    return Listening(
        address=found,
        tls=tls.server_context(tls_files, key=f"{place}TLS") if is_https else None,
        token_file=Path(token_file) if token_file else None,
    )
