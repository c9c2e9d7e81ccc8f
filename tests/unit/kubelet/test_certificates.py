"""The certificate of the node's own HTTPS endpoint."""

import ipaddress
import ssl
from pathlib import Path

import msgspec
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from interlink.aio import clock
from interlink.kubelet import certificates, settings
from interlink.kubelet.settings import KubeletSettings
from interlink.model.errors import ConfigurationError


def made(certificate: tuple[Path, Path] | None = None) -> KubeletSettings:
    found = settings.load("InterlinkURL: http://h:1", {}, source="vk.yaml", node_name="vk")
    return msgspec.structs.replace(found, certificate=certificate)


def parsed(name: str = "vk", address: str = "10.0.0.1") -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.self_signed(name, address)[0])


def test_a_self_signed_certificate_has_the_names_of_a_node() -> None:
    """Organisation and common name are those that Kubernetes asks of a kubelet."""
    subject = parsed().subject

    found = [subject.get_attributes_for_oid(oid)[0].value for oid in (NameOID.ORGANIZATION_NAME, NameOID.COMMON_NAME)]
    assert found == ["system:nodes", "system:node:vk"]


@pytest.mark.parametrize("address", ["10.0.0.1", "::1"])
def test_a_self_signed_certificate_is_for_the_nodes_name_and_address(address: str) -> None:
    """The API server may call the node by either."""
    names = parsed(address=address).extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["vk"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(address)]


def test_a_self_signed_certificate_is_for_serving_only() -> None:
    """It cannot be used as a client's."""
    usage = parsed().extensions.get_extension_for_oid(ExtensionOID.EXTENDED_KEY_USAGE).value

    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]  # type: ignore[call-overload]  # it is an ExtendedKeyUsage


def test_a_self_signed_certificate_is_valid_now_and_for_a_year() -> None:
    """With some minutes for clocks that differ."""
    found = parsed()

    assert found.not_valid_before_utc < clock.now() < found.not_valid_after_utc
    assert (found.not_valid_after_utc - found.not_valid_before_utc).days == 365


def test_the_key_belongs_to_the_certificate() -> None:
    """And no two nodes share one."""
    certificate, key = certificates.self_signed("vk", "10.0.0.1")

    private = serialization.load_pem_private_key(key, password=None)
    assert private.public_key() == x509.load_pem_x509_certificate(certificate).public_key()
    assert certificates.self_signed("vk", "10.0.0.1")[1] != key


def test_a_long_node_name_still_has_a_certificate() -> None:
    """A common name is cut at its limit; the alternative name is whole."""
    name = "n" * 63
    names = parsed(name).extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [name]


def test_without_files_the_endpoint_makes_its_own() -> None:
    """TLS 1.2 at least."""
    assert certificates.server_context(made()).minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_configured_files_are_used(tmp_path: Path) -> None:
    """When there are any."""
    issued = trustme.CA().issue_cert("vk")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "c")
    issued.private_key_pem.write_to_path(tmp_path / "k")

    context = certificates.server_context(made((tmp_path / "c", tmp_path / "k")))
    assert context.protocol is ssl.PROTOCOL_TLS_SERVER


@pytest.mark.parametrize("content", [None, b"", b"words"])
def test_files_that_cannot_be_used_are_named(tmp_path: Path, content: bytes | None) -> None:
    """Absent, empty and foreign ones."""
    if content is not None:
        (tmp_path / "c").write_bytes(content)

    with pytest.raises(ConfigurationError, match=f"KubeletCertFile {tmp_path}/c"):
        certificates.server_context(made((tmp_path / "c", tmp_path / "k")))
