"""The keys of a test control plane: one authority for everything, made anew for each control plane."""

from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Pair(NamedTuple):
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority that keeps its files in one folder; keys have mode 0600."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca = trustme.CA(organization_name="interlink test control plane")
        self.pair = self._store("ca", self._ca.cert_pem.bytes(), self._ca.private_key_pem.bytes())

    def issue_client(self, name: str, *, group: str | None = None) -> Pair:
        """A certificate for the Kubernetes user `name`, in `group`."""
        # Without a host name trustme writes an empty critical extension, which Go refuses.
        leaf = self._ca.issue_cert("client.invalid", common_name=name, organization_name=group)
        return self._issue(name, leaf)

    def issue_serving(self, name: str, hosts: list[str]) -> Pair:
        """A certificate for a server reached as any of these host names and addresses."""
        return self._issue(name, self._ca.issue_cert(*hosts, common_name=name))

    def _issue(self, name: str, leaf: trustme.LeafCert) -> Pair:
        chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
        return self._store(name.replace(":", "-"), chain, leaf.private_key_pem.bytes())

    def _store(self, name: str, cert: bytes, key: bytes) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.cert.write_bytes(cert)
        write_private(pair.key, key)
        return pair


def make_signing_key(file: Path) -> Path:
    """A key that signs service account tokens; the file holds both halves."""
    key = ec.generate_private_key(ec.SECP256R1())
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    write_private(file, key.private_bytes(encoding, form, serialization.NoEncryption()))
    return file


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from the first byte on."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_bytes(content)
