"""Keys, certificates and requests for them, as a kubelet names them; pure but for randomness."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from interlink.aio import clock

_LIFETIME = timedelta(days=365)
_PEM = serialization.Encoding.PEM
_RENEWED_AFTER = (0.7, 0.9)


class Pair(msgspec.Struct, frozen=True):
    """A certificate, with those that lead to its authority, and its key; both PEM."""

    certificate: bytes
    key: bytes


def common_name(node_name: str) -> str:
    """X.509 allows 64 characters."""
    return f"system:node:{node_name}"[:64]


def self_signed(node_name: str, node_ip: str) -> Pair:
    """Valid a year, for the node's name and address."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_subject(node_name))
        .issuer_name(_subject(node_name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(clock.now() - timedelta(minutes=5))
        .not_valid_after(clock.now() + _LIFETIME)
        .add_extension(_names(node_name, node_ip), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate=certificate.public_bytes(_PEM), key=_pem(key))


def signing_request(node_name: str, node_ip: str) -> tuple[bytes, bytes]:
    """A request for a certificate as the signer of kubelets accepts it, and the new key that it is for; both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(node_name))
        .add_extension(_names(node_name, node_ip), critical=False)
        .sign(key, hashes.SHA256())
    )
    return request.public_bytes(_PEM), _pem(key)


def requested_name(request: bytes) -> str:
    """The common name that a request asks for; empty when it cannot be read."""
    try:
        found = x509.load_pem_x509_csr(request).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return ""
    return str(found[0].value) if found else ""


def expiry(certificate: bytes) -> datetime:
    """Raises ValueError for what is no certificate."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def is_for(certificate: bytes, node_name: str, node_ip: str) -> bool:
    """Whether a certificate is still good, and names this node and its address. Raises ValueError for what is none."""
    found = x509.load_pem_x509_certificate(certificate)
    names = [attribute.value for attribute in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        addresses = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    is_named = names == [common_name(node_name)] and ip_address(node_ip) in addresses.get_values_for_type(
        x509.IPAddress
    )
    return is_named and found.not_valid_before_utc <= clock.now() < found.not_valid_after_utc


def renewal(certificate: bytes, *, rng: random.Random) -> datetime:
    """When to ask for the next one: after 70 to 90 % of its life. Raises ValueError for what is no certificate."""
    found = x509.load_pem_x509_certificate(certificate)
    life = found.not_valid_after_utc - found.not_valid_before_utc
    return found.not_valid_before_utc + life * rng.uniform(*_RENEWED_AFTER)


def _subject(node_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name(node_name)),
        ]
    )


def _names(node_name: str, node_ip: str) -> x509.SubjectAlternativeName:
    names: Sequence[x509.GeneralName] = [x509.DNSName(node_name), x509.IPAddress(ip_address(node_ip))]
    return x509.SubjectAlternativeName(names)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
