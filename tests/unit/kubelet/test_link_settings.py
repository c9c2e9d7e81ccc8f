"""The way to the server: whom the virtual kubelet trusts, what it shows, as the configuration file says."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from interlink.kubelet import settings
from interlink.model.errors import ConfigurationError
from interlink.sdk import hosting, tls
from interlink.sdk.addresses import Address
from interlink.sdk.errors import SDKError
from interlink.sdk.tls import TLSFile
from interlink.sdk.transport import Link


class Folder:
    """An authority, in both forms, a server's certificate and a client's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        authority = trustme.CA()
        authority.cert_pem.write_to_path(path / "ca.pem")
        pem = (path / "ca.pem").read_text()
        (path / "ca.der").write_bytes(ssl.PEM_cert_to_DER_cert(pem))
        for name in ("server", "client"):
            leaf = authority.issue_cert("127.0.0.1")
            leaf.cert_chain_pems[0].write_to_path(path / f"{name}.crt")
            leaf.private_key_pem.write_to_path(path / f"{name}.key")

    def of(self, name: str) -> str:
        return str(self.path / name)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


async def asked(folder: Folder, keys: dict[str, Any], *, wants_client: bool = False) -> bool:
    """Whether a server with that certificate is reached with these keys of the configuration file."""
    file = TLSFile(
        cert_file=folder.of("server.crt"),
        key_file=folder.of("server.key"),
        ca_cert_file=folder.of("ca.pem") if wants_client else "",
    )
    app = hosting.application([], readiness=list)
    address = Address(scheme="https", host="127.0.0.1", port=0)
    async with hosting.serving(app, address, tls=tls.server_context(file, key="TLS")) as port:
        text = json.dumps({"InterlinkURL": "https://127.0.0.1", "InterlinkPort": port} | keys)
        found = settings.load(text, {}, source="vk.yaml", node_name="vk")
        link = Link(found.server, peer="server", tls=found.server_tls, token_file=found.token_file)
        try:
            return await link.call("GET", "/healthz", None, timeout_s=10) == b"ok"
        except SDKError:
            return False
        finally:
            await link.close()


@pytest.mark.parametrize(
    ("keys", "is_reached"),
    [
        ({}, False),
        ({"TLS": {"Enabled": True, "CACertFile": "ca.pem"}}, True),
        ({"TLS": {"Enabled": False, "CACertFile": "ca.pem"}}, False),
        ({"HTTP": {"CaCert": "ca.pem"}}, True),
        ({"HTTP": {"CaCert": "ca.der"}}, True),
        ({"HTTP": {"Insecure": True}}, True),
        ({"HTTP": {"Insecure": True}, "TLS": {"Enabled": True}}, True),
    ],
)
async def test_whom_the_virtual_kubelet_trusts(folder: Folder, keys: dict[str, Any], is_reached: bool) -> None:
    """The named authority in either form, anybody when told so, else only what the system trusts."""
    placed = {name: {k: folder.of(v) if isinstance(v, str) else v for k, v in b.items()} for name, b in keys.items()}

    assert await asked(folder, placed) is is_reached


@pytest.mark.parametrize("shows_one", [False, True])
async def test_a_client_certificate_is_shown(folder: Folder, shows_one: bool) -> None:
    """To a server that serves nobody without one."""
    pair = {"CertFile": folder.of("client.crt"), "KeyFile": folder.of("client.key")} if shows_one else {}
    keys = {"TLS": {"Enabled": True, "CACertFile": folder.of("ca.pem")} | pair}

    assert await asked(folder, keys, wants_client=True) is shows_one


WRONG = [
    ("{InterlinkURL: 'http://h:1', TLS: {Enabled: true}}", "vk.yaml: TLS.Enabled: InterlinkURL must start with https"),
    ("{InterlinkURL: 'https://h:1', TLS: {Enabled: true, CACertFile: /n}}", "vk.yaml: TLS.CACertFile /n: No such file"),
    ("{InterlinkURL: 'https://h:1', HTTP: {CaCert: /dev/null}}", "vk.yaml: HTTP.CaCert /dev/null: "),
    (
        "{InterlinkURL: 'https://h:1', TLS: {Enabled: true, CertFile: /n, KeyFile: /k}}",
        "vk.yaml: TLS.CertFile /n, vk.yaml: TLS.KeyFile /k: No such file",
    ),
    ("{InterlinkURL: 'http://h:1', KubeletAuthentication: maybe}", "vk.yaml: KubeletAuthentication: "),
]


@pytest.mark.parametrize(("text", "error"), WRONG)
def test_what_is_wrong_is_named(text: str, error: str) -> None:
    """File and key first, and the system's own words."""
    with pytest.raises(ConfigurationError) as caught:
        settings.load(text, {}, source="vk.yaml", node_name="vk")

    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("content", "sent"), [("abc\n", "Bearer abc"), (" abc ", "Bearer abc"), ("", None), ("\n", None)]
)
async def test_a_token_is_sent_without_its_line_end(tmp_path: Path, content: str, sent: str | None) -> None:
    """And read anew for each call; an empty file sends none."""
    seen: list[str | None] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response()

    path = tmp_path / "token"
    path.write_text(content)
    app = hosting.application([web.get("/x", handle)], readiness=list)
    async with hosting.serving(app, Address(scheme="http", host="127.0.0.1", port=0)) as port:
        link = Link(Address(scheme="http", host="127.0.0.1", port=port), peer="server", token_file=path)
        await link.call("GET", "/x", None, timeout_s=10)
        path.write_text("new")
        await link.call("GET", "/x", None, timeout_s=10)
        await link.close()

    assert seen == [sent, "Bearer new"]
