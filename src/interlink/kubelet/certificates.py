"""The endpoint's serving certificate: from files, else made by ourselves."""

import ssl
import tempfile
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from interlink.aio import clock
from interlink.kubelet.settings import KubeletSettings
from interlink.model.errors import ConfigurationError

_LIFETIME = timedelta(days=365)


def server_context(settings: KubeletSettings) -> ssl.SSLContext:
    """Raises ConfigurationError when the configured files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.certificate is None:
        _load_self_signed(context, settings)
        return context
    certificate, key = settings.certificate
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigurationError(f"KubeletCertFile {certificate}, KubeletKeyFile {key}: {error}") from error
    return context


def _load_self_signed(context: ssl.SSLContext, settings: KubeletSettings) -> None:
    """The ssl module reads files only, so the pair passes through a private temporary folder."""
    certificate, key = self_signed(settings.node_name, settings.node_ip)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("cert", certificate), ("key", key)):
            path = Path(folder) / name
            path.touch(mode=0o600)
            path.write_bytes(data)
        context.load_cert_chain(Path(folder) / "cert", Path(folder) / "key")


def self_signed(node_name: str, node_ip: str) -> tuple[bytes, bytes]:
    """A certificate and its key, PEM, valid a year, for the node's name and address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node_name}"[:64]),
        ]
    )
    names = x509.SubjectAlternativeName([x509.DNSName(node_name), x509.IPAddress(ip_address(node_ip))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(clock.now() - timedelta(minutes=5))
        .not_valid_after(clock.now() + _LIFETIME)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
