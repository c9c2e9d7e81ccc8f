"""Certificates that change while the endpoint listens: files, requests, authorities."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import trustme
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from interlink.aio import clock
from interlink.kube.client import KubeClient
from interlink.kube.credentials import Credentials
from interlink.kube.errors import NotFound, Refused
from interlink.kubelet.certificates import keeping, making, requesting
from interlink.kubelet.certificates.contexts import ServingTLS
from interlink.kubelet.certificates.keeping import AuthorityFile, Files, FromCluster, PublishedAuthority, Shelf
from interlink.kubelet.certificates.making import Pair
from interlink.kubelet.certificates.requesting import Requester, SigningRequest, Verdict
from interlink.model.errors import ConfigurationError
from tests.unit.small_server import serving
from tests.unit.virtual_time import in_virtual_time

SIGNER = "kubernetes.io/kubelet-serving"


def issued(authority: trustme.CA, name: str = "localhost") -> Pair:
    leaf = authority.issue_cert(name)
    return Pair(certificate=leaf.cert_chain_pems[0].bytes(), key=leaf.private_key_pem.bytes())


def serial(pair: Pair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate).serial_number


async def shown(tls: ServingTLS, client: ssl.SSLContext) -> int:
    """The serial number of the certificate that a new connection gets. Raises OSError when it is refused."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(1))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        try:
            writer.write(b"x")
            await reader.readexactly(1)
            certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()
        return x509.load_der_x509_certificate(certificate).serial_number


def client_of(authority: trustme.CA, certificate: trustme.LeafCert | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if certificate:
        certificate.configure_cert(context)
    return context


# --- files -----------------------------------------------------------------------------------------------------------


class Folder:
    def __init__(self, path: Path) -> None:
        self.certificate, self.key = path / "c", path / "k"

    def write(self, pair: Pair) -> None:
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)


@in_virtual_time
async def one_look(files: Files, tls: ServingTLS) -> None:
    await files.renew(tls)


@pytest.mark.parametrize("content", [None, b"", b"words"])
def test_files_that_cannot_be_used_are_named(tmp_path: Path, content: bytes | None) -> None:
    """Absent, empty and foreign ones."""
    if content is not None:
        (tmp_path / "c").write_bytes(content)

    with pytest.raises(ConfigurationError, match=f"KubeletCertFile {tmp_path}/c"):
        Files(tmp_path / "c", tmp_path / "k").first()


def test_changed_files_are_shown_to_new_connections(tmp_path: Path) -> None:
    """A certificate whose key is not there yet waits, and the old one is shown."""
    authority, folder = trustme.CA(), Folder(tmp_path)
    first, second = issued(authority), issued(authority)
    folder.write(first)
    files = Files(folder.certificate, folder.key)
    tls = ServingTLS(files.first())

    folder.certificate.write_bytes(second.certificate)
    one_look(files, tls)
    assert asyncio.run(shown(tls, client_of(authority))) == serial(first)
    folder.key.write_bytes(second.key)
    one_look(files, tls)

    assert asyncio.run(shown(tls, client_of(authority))) == serial(second)


# --- the authority of clients ----------------------------------------------------------------------------------------


async def test_clients_of_a_changed_authority_are_known(tmp_path: Path) -> None:
    """Those of the old one no longer; nobody is asked before there is an authority."""
    server, old, new = trustme.CA(), trustme.CA(), trustme.CA()
    tls = ServingTLS(issued(server))
    path = tmp_path / "ca"
    anybody = client_of(server, old.issue_cert("client"))
    await shown(tls, anybody)

    path.write_bytes(old.cert_pem.bytes())
    await keeping.follow_authority(AuthorityFile(path), tls)
    await shown(tls, anybody)
    path.write_bytes(new.cert_pem.bytes())
    await keeping.follow_authority(AuthorityFile(path), tls)

    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await shown(tls, anybody)
    await shown(tls, client_of(server, new.issue_cert("client")))
    await shown(tls, client_of(server))


@pytest.mark.parametrize("content", [None, b"", b"words", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"])
async def test_an_authority_that_cannot_be_used_changes_nothing(tmp_path: Path, content: bytes | None) -> None:
    """The error names the file or the problem; who was known stays known."""
    server, clients = trustme.CA(), trustme.CA()
    tls = ServingTLS(issued(server))
    tls.trust(clients.cert_pem.bytes())
    if content is not None:
        (tmp_path / "ca").write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"KubeletClientCAFile|authority of client certificates"):
        await keeping.follow_authority(AuthorityFile(tmp_path / "ca"), tls)

    await shown(tls, client_of(server, clients.issue_cert("client")))


async def test_the_published_authority_is_read_from_its_config_map() -> None:
    """An API server that takes no client certificates publishes none."""
    answers = [{"data": {"client-ca-file": "PEM"}}, {"data": {}}, {}]

    async def handle(request: web.Request) -> web.Response:
        assert request.path == "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        return web.json_response(answers.pop(0))

    async with serving(handle) as url, KubeClient(Credentials(url, None, None)) as client:
        found = [await PublishedAuthority(client).read() for _ in range(3)]

    assert found == [b"PEM", b"", b""]


# --- requests --------------------------------------------------------------------------------------------------------


class Cluster:
    """Keeps requests; `decide` is asked at each look at one, and may put something into its status."""

    def __init__(self, decide: Callable[[dict[str, Any]], None]) -> None:
        self.requests: dict[str, dict[str, Any]] = {}
        self.looks = 0
        self.answers = 200
        self._decide = decide

    async def __call__(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        match request.method:
            case "POST":
                document = json.loads(await request.read())
                document["metadata"]["uid"] = document["metadata"]["name"]
                self.requests[document["metadata"]["name"]] = document | {"status": {}}
                return web.json_response(document)
            case "DELETE":
                del self.requests[name]
                return web.json_response({})
            case _ if name == "certificatesigningrequests":
                assert request.query["fieldSelector"] == f"spec.signerName={SIGNER}"
                return web.json_response({"items": list(self.requests.values())}, status=self.answers)
        self.looks += 1
        if name not in self.requests:
            return web.json_response({}, status=404)
        self._decide(self.requests[name])
        return web.json_response(self.requests[name])


class Signer:
    """Approves; a certificate lives as long as told."""

    def __init__(self, life: timedelta = timedelta(days=1), *, begins: timedelta = timedelta()) -> None:
        self._life = life
        self._begins = begins
        self._key = ec.generate_private_key(ec.SECP256R1())

    def __call__(self, document: dict[str, Any]) -> None:
        request = x509.load_pem_x509_csr(base64.b64decode(document["spec"]["request"]))
        certificate = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(request.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(clock.now() + self._begins)
            .add_extension(
                request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, critical=False
            )
            .not_valid_after(clock.now() + self._life)
            .sign(self._key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        document["status"] = {"certificate": base64.b64encode(pem).decode()}


@asynccontextmanager
async def requester_of(cluster: Cluster, node_name: str = "vk") -> AsyncIterator[Requester]:
    async with serving(cluster) as url, KubeClient(Credentials(url, None, None)) as client:
        yield Requester(client, node_name=node_name, node_ip="10.0.0.1", signer=SIGNER)


async def test_a_request_says_what_a_kubelet_may_have() -> None:
    """Two usages exactly; the key fits the certificate that comes back."""
    cluster = Cluster(Signer())
    async with requester_of(cluster) as requester:
        pair = await requester.obtain()

    spec = next(iter(cluster.requests.values()))["spec"]
    assert (spec["signerName"], spec["usages"]) == (SIGNER, ["digital signature", "server auth"])
    ServingTLS(pair)


async def test_old_requests_of_this_node_are_removed() -> None:
    """Those of other nodes, and others that only have such a name, stay."""
    cluster = Cluster(Signer())
    async with requester_of(cluster) as first, requester_of(cluster, "vk-2") as another:
        await first.obtain()
        await another.obtain()
        foreign = {"metadata": {"name": "interlink-vk-x", "uid": "u"}, "spec": {"request": ""}, "status": {}}
        cluster.requests["interlink-vk-x"] = foreign
        before = set(cluster.requests)
        await first.obtain()

    gone = before - set(cluster.requests)
    assert len(gone) == 1
    assert gone.pop().startswith("interlink-vk-")
    assert "interlink-vk-x" in cluster.requests
    assert len(cluster.requests) == 3


async def test_without_the_right_to_list_a_request_is_made_all_the_same() -> None:
    """Old ones stay, then."""
    cluster = Cluster(Signer())
    cluster.answers = 403
    async with requester_of(cluster) as requester:
        await requester.obtain()

    assert len(cluster.requests) == 1


async def test_a_denial_is_told_with_its_reason() -> None:
    """In the words of whoever denied it."""

    def deny(document: dict[str, Any]) -> None:
        document["status"] = {"conditions": [{"type": "Denied", "reason": "NotOurs", "message": "who is that?"}]}

    async with requester_of(Cluster(deny)) as requester:
        with pytest.raises(Refused, match="was denied: NotOurs who is that"):
            await requester.obtain()


async def test_a_request_that_was_removed_undecided_is_made_again() -> None:
    """By the next round."""
    cluster = Cluster(lambda _: None)
    async with requester_of(cluster) as requester:
        task = asyncio.create_task(requester.obtain())
        while not cluster.looks:
            await asyncio.sleep(0.01)
        cluster.requests.clear()
        with pytest.raises(NotFound):
            await task


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        ({}, Verdict.PENDING),
        ({"conditions": [{"type": "Approved"}]}, Verdict.PENDING),
        ({"certificate": "eA==", "conditions": [{"type": "Approved"}]}, Verdict.ISSUED),
        ({"conditions": [{"type": "Denied"}]}, Verdict.DENIED),
        ({"conditions": [{"type": "Approved"}, {"type": "Failed", "message": "no"}]}, Verdict.DENIED),
    ],
)
def test_a_request_is_decided_when_a_certificate_is_there(status: object, verdict: Verdict) -> None:
    """Or when there will be none; an approval alone is not enough."""
    assert msgspec.convert({"status": status}, SigningRequest).verdict is verdict


async def test_a_kept_certificate_needs_no_new_approval(tmp_path: Path) -> None:
    """After a restart it is shown at once; its key is readable by its owner only."""
    signer = Signer()
    key_pem, document = request_of("vk")
    signer(document)
    pair = Pair(certificate=base64.b64decode(document["status"]["certificate"]), key=key_pem)
    shelf = Shelf(tmp_path / "kept" / "vk.pem")
    assert shelf.take("vk", "10.0.0.1") is None

    await shelf.put(pair)

    assert (tmp_path / "kept" / "vk.pem").stat().st_mode & 0o777 == 0o600
    source = FromCluster(cast("Requester", None), "vk", "10.0.0.1", shelf)
    assert serial(source.first()) == serial(pair)


@pytest.mark.parametrize(
    ("name", "address", "life"),
    [("other", "10.0.0.1", 1), ("vk", "10.0.0.2", 1), ("vk", "10.0.0.1", -1)],
    ids=["another-node", "another-address", "expired"],
)
async def test_a_kept_certificate_of_another_time_or_node_is_not_shown(
    tmp_path: Path, name: str, address: str, life: int
) -> None:
    """The cluster is asked for a new one."""
    key_pem, document = request_of("vk")
    Signer(timedelta(days=life), begins=timedelta(days=-2))(document)
    shelf = Shelf(tmp_path / "vk.pem")
    await shelf.put(Pair(certificate=base64.b64decode(document["status"]["certificate"]), key=key_pem))

    assert shelf.take(name, address) is None


@pytest.mark.parametrize("content", [b"", b"words"])
def test_a_kept_file_that_cannot_be_read_is_not_shown(tmp_path: Path, content: bytes) -> None:
    """It is replaced by the next certificate."""
    (tmp_path / "vk.pem").write_bytes(content)

    assert Shelf(tmp_path / "vk.pem").take("vk", "10.0.0.1") is None


def request_of(name: str) -> tuple[bytes, dict[str, Any]]:
    """A key, and the request for a certificate as the cluster sees it."""
    request, key = making.signing_request(name, "10.0.0.1")
    return key, json.loads(requesting.document("r", SIGNER, request))


async def test_the_certificate_is_renewed_before_it_expires() -> None:
    """One that lives two seconds is renewed after 1.4 to 1.8 of them; before the first the node shows its own."""
    cluster = Cluster(Signer(timedelta(seconds=2)))
    async with requester_of(cluster) as requester:
        source = FromCluster(requester, "vk", "10.0.0.1")
        tls = ServingTLS(source.first())
        await source.renew(tls)
        expiry = clock.now() + timedelta(seconds=2)
        await source.renew(tls)

    assert clock.now() < expiry
    assert len(cluster.requests) == 1
