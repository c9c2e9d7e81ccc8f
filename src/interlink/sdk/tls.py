"""TLS from the files that a configuration names: 1.2 at least, client certificates when an authority is named."""

import ssl

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
    _load(context, tls, key)
    if tls.ca_cert_file:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(tls: TLSFile, *, key: str) -> ssl.SSLContext:
    """Trusts the named authority only, or the system's; shows the certificate when there is one."""
    context = ssl.create_default_context()
    if tls.ca_cert_file:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, tls, key)
    return context


def _load(context: ssl.SSLContext, tls: TLSFile, key: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    place = key
    try:
        if tls.cert_file:
            place = f"{key}.CertFile {tls.cert_file}, {key}.KeyFile {tls.key_file}"
            context.load_cert_chain(tls.cert_file, tls.key_file or None)
        if tls.ca_cert_file:
            place = f"{key}.CACertFile {tls.ca_cert_file}"
            context.load_verify_locations(tls.ca_cert_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"{place}: {error.strerror or error}") from error
