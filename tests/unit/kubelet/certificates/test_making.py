"""The certificate of the node's own HTTPS endpoint."""

import ipaddress
import random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from interlink.aio import clock
from interlink.kubelet.certificates import making


def parsed(name: str = "vk", address: str = "10.0.0.1") -> x509.Certificate:
    return x509.load_pem_x509_certificate(making.self_signed(name, address).certificate)


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
    pair = making.self_signed("vk", "10.0.0.1")

    private = serialization.load_pem_private_key(pair.key, password=None)
    assert private.public_key() == x509.load_pem_x509_certificate(pair.certificate).public_key()
    assert making.self_signed("vk", "10.0.0.1").key != pair.key


def test_a_long_node_name_still_has_a_certificate() -> None:
    """A common name is cut at its limit; the alternative name is whole."""
    name = "n" * 63
    names = parsed(name).extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == [name]


def test_a_request_is_what_the_signer_of_kubelets_accepts() -> None:
    """Organisation, common name, and at least one address; the key is new each time."""
    request, key = making.signing_request("vk", "10.0.0.1")
    found = x509.load_pem_x509_csr(request)

    assert found.subject.rfc4514_string() == "CN=system:node:vk,O=system:nodes"
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.1")]
    assert making.requested_name(request) == "system:node:vk"
    assert making.signing_request("vk", "10.0.0.1")[1] != key


def test_a_request_that_cannot_be_read_asks_for_nobody() -> None:
    """It is somebody else's."""
    assert making.requested_name(b"words") == ""


def test_renewal_comes_after_70_to_90_percent_of_the_life() -> None:
    """At a moment of its own, so that many nodes do not renew together."""
    certificate = making.self_signed("vk", "10.0.0.1").certificate
    days = [(making.renewal(certificate, rng=random.Random(seed)) - clock.now()).days for seed in range(50)]

    assert min(days) >= 254
    assert max(days) <= 329
    assert len(set(days)) > 10
