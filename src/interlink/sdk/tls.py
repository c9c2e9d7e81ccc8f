"""TLS from the files that a configuration names: 1.2 at least, client certificates when an authority is named."""

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import structlog

from interlink.model.errors import ConfigurationError

log = structlog.get_logger(__name__)


class TLSFile(msgspec.Struct, frozen=True, rename="pascal"):
    """The block `TLS` of the existing configuration files."""

    enabled: bool = False
    cert_file: str = ""
    key_file: str = ""
    ca_cert_file: str = msgspec.field(name="CACertFile", default="")


def server_context(tls: TLSFile, *, key: str) -> ssl.SSLContext:
    """With an authority, clients must show a certificate of it. Each new connection uses the files as they are then.

    Raises ConfigurationError naming the key.
    """
    if not tls.cert_file or not tls.key_file:
        raise ConfigurationError(f"{key}: CertFile and KeyFile are needed for https")

    def configure(context: ssl.SSLContext) -> None:
        _load(context, tls, key, authority_key=f"{key}.CACertFile")
        if tls.ca_cert_file:
            context.verify_mode = ssl.CERT_REQUIRED

    return _Renewed(ssl.PROTOCOL_TLS_SERVER, configure, tls)


def client_context(tls: TLSFile, *, key: str, authority_key: str = "", is_insecure: bool = False) -> ssl.SSLContext:
    """Trusts the named authority only, or the system's, or with `is_insecure` everybody; shows the certificate when
    there is one. Each new connection uses the files as they are then. Raises ConfigurationError naming the key.

    `authority_key`: where the authority is named, if not in the block itself.
    """

    def configure(context: ssl.SSLContext) -> None:
        if not tls.ca_cert_file:
            context.load_default_certs()
        _load(context, tls, key, authority_key=authority_key or f"{key}.CACertFile")
        if is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE

    return _Renewed(ssl.PROTOCOL_TLS_CLIENT, configure, tls)


class _Renewed(ssl.SSLContext):
    """Makes another one for the next connection when its files have changed; from files that cannot be used, such as a
    certificate whose key has not come yet, none is made, and the last one stays."""

    _configure: Callable[[ssl.SSLContext], None]
    _files: list[Path]
    _stamps: list[object]
    _newer: ssl.SSLContext | None
    _trouble: str

    def __new__(cls, protocol: int, configure: Callable[[ssl.SSLContext], None], tls: TLSFile) -> "_Renewed":
        """Raises ConfigurationError for files that cannot be used now."""
        self = super().__new__(cls, protocol)
        self._configure = configure
        self._files = [Path(name) for name in (tls.cert_file, tls.key_file, tls.ca_cert_file) if name]
        self._stamps = [_stamp(file) for file in self._files]
        self._newer, self._trouble = None, ""
        configure(self)
        return self

    def __init__(self, protocol: int, configure: Callable[[ssl.SSLContext], None], tls: TLSFile) -> None:
        """All is done in `__new__`, as the ssl module wants it."""

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        stamps = [_stamp(file) for file in self._files]
        if stamps != self._stamps:
            self._renew(stamps)
        if self._newer is not None:
            return self._newer.wrap_bio(*arguments, **named)
        return super().wrap_bio(*arguments, **named)

    def _renew(self, stamps: list[object]) -> None:
        """What failed is tried again with the next connection: it may not have been the files' fault, or their rights
        come later than they."""
        newer = ssl.SSLContext(self.protocol)
        try:
            self._configure(newer)
        except ConfigurationError as error:
            if str(error) != self._trouble:
                log.warning("tls.files-unusable", error=str(error), next_step="what was read before stays in use")
            self._trouble = str(error)
        else:
            self._newer, self._stamps, self._trouble = newer, stamps, ""


def _stamp(file: Path) -> object:
    """Differs when the file was replaced or written."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


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
