"""How a command reaches a program: an address, the certificates for https, a bearer token."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from interlink.sdk import addresses, tls
from interlink.sdk.tls import TLSFile
from interlink.sdk.transport import Link

_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--token-file", type=_FILE, metavar="FILE", help="The bearer token to show."),
    click.option("--ca-file", type=_FILE, metavar="FILE", help="The authority to trust, for https."),
    click.option("--cert-file", type=_FILE, metavar="FILE", help="The certificate to show, for https."),
    click.option("--key-file", type=_FILE, metavar="FILE", help="The key of the certificate."),
)


class Credentials(msgspec.Struct, frozen=True):
    token_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


def options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that connects; it gets what they say as `credentials`."""

    @functools.wraps(command)
    def connecting(
        *args: Any,
        token_file: Path | None,
        ca_file: Path | None,
        cert_file: Path | None,
        key_file: Path | None,
        **others: Any,
    ) -> None:
        command(*args, credentials=Credentials(token_file, ca_file, cert_file, key_file), **others)

    made: Callable[..., None] = connecting
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def link(url: str, credentials: Credentials, *, key: str, peer: str, headers: Mapping[str, str] | None = None) -> Link:
    """Call it in a running loop. Raises ConfigurationError, which names `key` or the files."""
    address = addresses.parse(url, None, key=key)
    files = TLSFile(
        cert_file=_text(credentials.cert_file),
        key_file=_text(credentials.key_file),
        ca_cert_file=_text(credentials.ca_file),
    )
    context = tls.client_context(files, key="--ca-file, --cert-file") if address.scheme == "https" else None
    return Link(address, peer=peer, tls=context, token_file=credentials.token_file, headers=headers)


def _text(path: Path | None) -> str:
    return str(path) if path else ""
