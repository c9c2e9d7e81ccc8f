"""Certificates and authorities are renewed under running programs: a new connection uses what the files hold then."""

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from aiohttp import web

from interlink.sdk import hosting, tls
from interlink.sdk.addresses import Address
from interlink.sdk.errors import SDKError
from interlink.sdk.tls import TLSFile
from interlink.sdk.transport import Link


class Side:
    """Certificate, key and trusted authority of one program, in files that may be replaced."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.file = TLSFile(
            cert_file=str(folder / "crt"), key_file=str(folder / "key"), ca_cert_file=str(folder / "ca")
        )

    def be(self, authority: trustme.CA, name: str) -> None:
        leaf = authority.issue_cert("127.0.0.1", common_name=name)
        self.put("crt", leaf.cert_chain_pems[0].bytes())
        self.put("key", leaf.private_key_pem.bytes())

    def trust(self, authority: trustme.CA) -> None:
        self.put("ca", authority.cert_pem.bytes())

    def spoil(self, name: str) -> None:
        self.put(name, b"-----BEGIN CERTIFICATE-----\n")

    def mend(self, name: str, content: bytes) -> None:
        """In the same file, of the same size and time, as it is when only its rights change."""
        path = self._folder / name
        before = path.stat()
        path.write_bytes(content.ljust(before.st_size)[: before.st_size])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def put(self, name: str, content: bytes) -> None:
        """As a mounted Secret changes: the file is another one afterwards."""
        (self._folder / "new").write_bytes(content)
        (self._folder / "new").rename(self._folder / name)


class Pair:
    """A server and a client that know each other."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.server, self.client = Side(folder / "server"), Side(folder / "client")
        for side, name in ((self.server, "server-1"), (self.client, "client-1")):
            side.be(self.authority, name)
            side.trust(self.authority)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Calls"]:
        async def who(request: web.Request) -> web.Response:
            assert request.transport is not None
            return web.Response(text=_name(request.transport.get_extra_info("peercert")))

        app = hosting.application([web.get("/who", who)], readiness=list)
        address = Address(scheme="https", host="127.0.0.1", port=0)
        shown = tls.client_context(self.client.file, key="TLS")
        async with hosting.serving(app, address, tls=tls.server_context(self.server.file, key="TLS")) as port:
            yield Calls(Address(scheme="https", host="127.0.0.1", port=port), shown)


class Calls:
    """Each over a new connection."""

    def __init__(self, address: Address, shown: ssl.SSLContext) -> None:
        self._address, self._shown = address, shown

    async def who_am_i(self) -> str:
        """What the server sees; empty when there is no connection."""
        link = Link(self._address, peer="server", tls=self._shown)
        try:
            return (await link.call("GET", "/who", None, timeout_s=10)).decode()
        except SDKError:
            return ""
        finally:
            await link.close()


def _name(certificate: dict[str, tuple[tuple[tuple[str, str], ...], ...]]) -> str:
    return next(value for part in certificate["subject"] for key, value in part if key == "commonName")


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


async def test_a_renewed_client_certificate_is_shown(pair: Pair) -> None:
    """Without a restart of the client."""
    async with pair.connected() as calls:
        before = await calls.who_am_i()
        pair.client.be(pair.authority, "client-2")

        assert (before, await calls.who_am_i()) == ("client-1", "client-2")


async def test_an_authority_that_is_replaced_is_trusted_no_longer(pair: Pair) -> None:
    """By the server of its clients; and trusted again when it is back."""
    async with pair.connected() as calls:
        pair.server.trust(trustme.CA())
        refused = await calls.who_am_i()
        pair.server.trust(pair.authority)

        assert (refused, await calls.who_am_i()) == ("", "client-1")


async def test_a_renewed_server_certificate_is_shown(pair: Pair) -> None:
    """Of another authority, so only who trusts that one gets through."""
    async with pair.connected() as calls:
        other = trustme.CA()
        pair.server.be(other, "server-2")
        refused = await calls.who_am_i()
        pair.client.trust(other)

        assert (refused, await calls.who_am_i()) == ("", "client-1")


@pytest.mark.parametrize("name", ["crt", "key", "ca"])
async def test_what_cannot_be_used_leaves_what_was_read_before(pair: Pair, name: str) -> None:
    """A file that is half written, or a certificate whose key has not come yet; then the whole is taken."""
    async with pair.connected() as calls:
        pair.client.spoil(name)
        meanwhile = await calls.who_am_i()
        pair.client.trust(pair.authority)
        pair.client.be(pair.authority, "client-2")

        assert (meanwhile, await calls.who_am_i()) == ("client-1", "client-2")


async def test_what_could_not_be_read_is_tried_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied certificate is there before its rights are, and a program may have no descriptor left for a moment: the
    file does not change when it can be read again. It is said once."""
    said: list[str] = []
    monkeypatch.setattr(tls, "log", SimpleNamespace(warning=lambda event, **_: said.append(event)))
    leaf = pair.authority.issue_cert("127.0.0.1", common_name="client-2")
    content = leaf.private_key_pem.bytes() + leaf.cert_chain_pems[0].bytes()
    async with pair.connected() as calls:
        pair.client.put("key", content)
        pair.client.put("crt", b"x" * len(content))
        meanwhile = [await calls.who_am_i() for _ in range(3)]
        pair.client.mend("crt", content)

        assert (meanwhile, await calls.who_am_i()) == (["client-1"] * 3, "client-2")
        assert said == ["tls.files-unusable"]
