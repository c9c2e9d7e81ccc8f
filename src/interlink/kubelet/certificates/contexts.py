"""TLS at the endpoint whose certificate and client authority change while it listens."""

import ssl
import tempfile
from pathlib import Path
from typing import Any

import prometheus_client

from interlink.kubelet.certificates import making
from interlink.kubelet.certificates.making import Pair

EXPIRY = prometheus_client.Gauge(
    "interlink_kubelet_certificate_expiry_seconds",
    "When the certificate of the node's endpoint expires, in seconds since the epoch.",
)


class ServingTLS(ssl.SSLContext):
    """Each new connection gets the certificate and the client authority of that moment."""

    _current: ssl.SSLContext
    _pair: Pair
    _authority: bytes

    def __new__(cls, pair: Pair) -> "ServingTLS":
        """Raises OSError or ValueError for a pair that cannot be used."""
        self = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        self._authority = b""
        self.show(pair)
        return self

    def __init__(self, pair: Pair) -> None:
        """All is done in `__new__`, as the ssl module wants it."""

    def show(self, pair: Pair) -> None:
        """Raises OSError or ValueError for a pair that cannot be used; then the old one stays."""
        self._current = _context(pair, self._authority)
        self._pair = pair
        EXPIRY.set(making.expiry(pair.certificate).timestamp())

    def trust(self, authority: bytes) -> None:
        """Ask clients for a certificate of this authority (PEM). Raises OSError for what is none; the old one stays."""
        if authority != self._authority:
            self._current = _context(self._pair, authority)
            self._authority = authority

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        return self._current.wrap_bio(*arguments, **named)


def _context(pair: Pair, authority: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A resumed session would let in a client whose certificate has expired, or whose authority is no longer trusted.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    _load(context, pair)
    if authority:
        context.load_verify_locations(cadata=authority.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """The ssl module reads files only, so the pair passes through a private temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder) / "cert", Path(folder) / "key"
        certificate.write_bytes(pair.certificate)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
