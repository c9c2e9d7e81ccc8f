"""TLS from the files that a configuration names: 1.2 at least, client certificates when an authority is named."""

import ssl
from pathlib import Path

import msgspec

from interlink.model.errors import ConfigurationError


class TLSFile(msgspec.Struct, frozen=True, rename="pascal"):
    """The block `TLS` of the existing configuration files."""

    enabled: bool = False
    cert_file: str = ""
    key_file: str = ""
    ca_cert_file: str = msgspec.field(name="CACertFile", default="")


def server_context(tls: TLSFile, *, key: str) -> ssl.SSLContext:
    """With an authority, clients must show a certificate of it. Raises ConfigurationError naming the key."""
    if not tls.cert_file or not tls.key_file:
        raise ConfigurationError(f"{key}: CertFile and KeyFile are needed for https")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, tls, key, authority_key=f"{key}.CACertFile")
    if tls.ca_cert_file:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: TLSFile, *, key: str, authority_key: str = "") -> ssl.SSLContext:
    """Trusts the named authority only, or the system's; shows the certificate when there is one.

    `authority_key`: where the authority is named, if not in the block itself.
    """
    context = ssl.create_default_context()
    if tls.ca_cert_file:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, tls, key, authority_key=authority_key or f"{key}.CACertFile")
    return context


def _load(context: ssl.SSLContext, tls: TLSFile, key: str, *, authority_key: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    place = key
    try:
        if tls.cert_file:
            place = f"{key}.CertFile {tls.cert_file}, {key}.KeyFile {tls.key_file}"
            context.load_cert_chain(tls.cert_file, tls.key_file or None)
        if tls.ca_cert_file:
            place = f"{authority_key} {tls.ca_cert_file}"
            _trust(context, Path(tls.ca_cert_file).read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConfigurationError(f"{place}: {reason or error}") from error


def _trust(context: ssl.SSLContext, authority: bytes) -> None:
    """PEM, or the DER form that existing files may have. Raises OSError or ValueError for anything else."""
    context.load_verify_locations(cadata=authority.decode("ascii") if b"-----BEGIN" in authority else authority)
