"""A collector whose certificate nobody vouches for: the one that it shows now is the one that is trusted.

gRPC has no switch for taking any certificate. Until the program's end the collector has to keep this one.
"""

import ssl

from cryptography import x509
from cryptography.x509.oid import NameOID

_TIMEOUT_S = 5.0


def shown_by(endpoint: str) -> tuple[bytes, str]:
    """The certificate as PEM, and a name that is in it. Raises OSError or ValueError."""
    host, _, port = endpoint.removeprefix("https://").rpartition(":")
    pem = ssl.get_server_certificate((host, int(port)), timeout=_TIMEOUT_S).encode()
    return pem, _name(x509.load_pem_x509_certificate(pem))


def _name(certificate: x509.Certificate) -> str:
    """A name or an address that it is for; an old one has a common name only."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(common[0].value) if common else ""
    found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    return found[0] if found else ""
