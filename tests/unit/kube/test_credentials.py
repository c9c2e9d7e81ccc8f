"""Where Kubernetes is and who we are: kubeconfig files, right and wrong."""

import asyncio
import base64
import json
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from interlink.kube import credentials
from interlink.kube.errors import Unavailable
from interlink.model.errors import ConfigurationError
from interlink.testing.waiting import until_async

Document = dict[str, Any]
Write = Callable[..., Path]
AUTHORITY = trustme.CA()
CERTIFICATE = AUTHORITY.issue_cert("localhost")
CA_PEM = AUTHORITY.cert_pem.bytes()
CERT_PEM, KEY_PEM = CERTIFICATE.cert_chain_pems[0].bytes(), CERTIFICATE.private_key_pem.bytes()
OTHER_KEY = trustme.CA().issue_cert("localhost").private_key_pem.bytes()


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(cluster: Document | None = None, user: Document | None = None, **changes: Any) -> Document:
    server = {"server": "https://127.0.0.1:6443", "certificate-authority-data": encoded(CA_PEM)}
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server if cluster is None else cluster}],
        "users": [{"name": "u", "user": user or {}}],
    } | changes


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a kubeconfig file."""

    def write(content: Any) -> Path:
        path = tmp_path / "kubeconfig"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


async def test_the_server_is_that_of_the_current_context(write: Write) -> None:
    """A slash at its end does not matter."""
    found = credentials.load(write(document({"server": "http://127.0.0.1:8080/"})))

    assert (found.server, found.tls, await found.headers()) == ("http://127.0.0.1:8080", None, {})


async def test_an_embedded_client_certificate_is_shown(write: Write, tmp_path: Path) -> None:
    """It leaves no file behind, and the cluster's authority is the only one that is trusted."""
    user = {"client-certificate-data": encoded(CERT_PEM), "client-key-data": encoded(KEY_PEM)}
    found = credentials.load(write(document(user=user)))

    assert found.tls is not None
    assert len(found.tls.get_ca_certs()) == 1
    assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert await found.headers() == {}


async def test_certificates_may_be_files_beside_the_kubeconfig(write: Write, tmp_path: Path) -> None:
    """Relative paths count from the kubeconfig."""
    for name, data in (("ca", CA_PEM), ("cert", CERT_PEM), ("key", KEY_PEM)):
        (tmp_path / name).write_bytes(data)
    cluster = {"server": "https://127.0.0.1:6443", "certificate-authority": "ca"}

    found = credentials.load(write(document(cluster, {"client-certificate": "cert", "client-key": "key"})))
    assert found.tls is not None
    assert len(found.tls.get_ca_certs()) == 1


async def test_a_cluster_may_be_trusted_blindly(write: Write) -> None:
    """Only where the kubeconfig says so."""
    found = credentials.load(write(document({"server": "https://h:1", "insecure-skip-tls-verify": True})))

    assert found.tls is not None
    assert found.tls.verify_mode is ssl.CERT_NONE


async def test_a_token_is_a_bearer_token(write: Write) -> None:
    """It is sent with every request."""
    found = credentials.load(write(document(user={"token": "t0k"})))

    assert await found.headers() == {"Authorization": "Bearer t0k"}


async def test_a_name_and_a_password_are_basic_authentication(write: Write) -> None:
    """As old test clusters have it."""
    found = credentials.load(write(document(user={"username": "a", "password": "b"})))

    assert await found.headers() == {"Authorization": "Basic YTpi"}


async def test_a_token_file_is_read_now_and_then(write: Write, tmp_path: Path) -> None:
    """A read token is used for a minute, or until the server refuses it."""
    (tmp_path / "token").write_text("one\n")
    found = credentials.load(write(document(user={"tokenFile": str(tmp_path / "token")})))
    before = await found.headers()
    (tmp_path / "token").write_text("two\n")

    assert await found.headers() == before == {"Authorization": "Bearer one"}
    found.forget_token()
    assert await found.headers() == {"Authorization": "Bearer two"}


# --- exec plug-ins ---------------------------------------------------------------------------------------------------


async def test_an_exec_plug_in_gives_the_token(write: Write, tmp_path: Path) -> None:
    """It is run with its environment, and not again for each request."""
    command = """import os
print('{"status": {"token": "%s"}}' % os.environ["WHO"])
open(os.environ["CALLS"], "a").write("x")"""
    env = [{"name": "WHO", "value": "me"}, {"name": "CALLS", "value": str(tmp_path / "calls")}]
    entry = {"apiVersion": "v1", "command": sys.executable, "args": ["-S", "-c", command], "env": env}
    found = credentials.load(write(document(user={"exec": entry})))

    assert await found.headers() == {"Authorization": "Bearer me"}
    await found.headers()
    assert (tmp_path / "calls").read_text() == "x"


def plug_in(command: str, **env: object) -> dict[str, object]:
    variables = [{"name": name, "value": str(value)} for name, value in env.items()]
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/bin/sh",
        "args": ["-c", command],
        "env": variables,
    }


async def test_an_exec_plug_in_is_told_what_is_wanted(write: Write, tmp_path: Path) -> None:
    """The version of the answer, in the variable that plug-ins read; nobody sits at a terminal."""
    command = 'printf %s "$KUBERNETES_EXEC_INFO" > "$SEEN"; echo \'{"status": {"token": "t"}}\''
    found = credentials.load(write(document(user={"exec": plug_in(command, SEEN=tmp_path / "seen")})))
    await found.headers()

    asked = json.loads((tmp_path / "seen").read_text())
    assert (asked["apiVersion"], asked["spec"]) == ("client.authentication.k8s.io/v1", {"interactive": False})


async def test_an_exec_plug_in_is_asked_again_before_its_token_expires(write: Write, tmp_path: Path) -> None:
    """One whose token is about to expire is asked for each request, after a second."""
    soon = (datetime.now(UTC) + timedelta(seconds=31.2)).isoformat()
    status = {"token": "t", "expirationTimestamp": soon}
    command = f"echo x >> $CALLS; echo '{json.dumps({'status': status})}'"
    found = credentials.load(write(document(user={"exec": plug_in(command, CALLS=tmp_path / "calls")})))

    async def is_asked_again() -> bool:
        await found.headers()
        return (tmp_path / "calls").read_text() == "x\nx\n"

    await asyncio.gather(*(found.headers() for _ in range(5)))
    assert (tmp_path / "calls").read_text() == "x\n"
    assert await until_async(is_asked_again, deadline_s=10)


async def test_an_exec_plug_in_may_give_a_client_certificate(write: Write) -> None:
    """It is shown to the API server; one that cannot be used is an error that names the plug-in."""
    for key, is_good in ((KEY_PEM, True), (OTHER_KEY, False)):
        status = {"clientCertificateData": CERT_PEM.decode(), "clientKeyData": key.decode()}
        command = f"cat <<'END'\n{json.dumps({'status': status})}\nEND"
        found = credentials.load(write(document(user={"exec": plug_in(command)})))
        if is_good:
            assert await found.headers() == {}
        else:
            with pytest.raises(ConfigurationError, match="plug-in /bin/sh"):
                await found.headers()


async def test_an_exec_plug_in_that_fails_later_is_a_trouble_that_passes(write: Write, tmp_path: Path) -> None:
    """The program goes on and asks again; at the first time it would have been a wrong configuration."""
    command = '[ -e "$GATE" ] && { echo "no network" >&2; exit 1; }; echo \'{"status": {"token": "t"}}\''
    found = credentials.load(write(document(user={"exec": plug_in(command, GATE=tmp_path / "gate")})))
    await found.headers()
    (tmp_path / "gate").touch()
    found.forget_token()

    with pytest.raises(Unavailable, match="ended with 1: no network"):
        await found.headers()


PLUG_INS = [
    pytest.param("/bin/sh", ["-c", "exit 3"], "ended with 3", id="fails"),
    pytest.param("/nowhere/plug-in", [], "plug-in", id="absent"),
    pytest.param("/bin/sh", ["-c", "echo words"], "plug-in", id="words"),
]


@pytest.mark.parametrize(("command", "args", "text"), PLUG_INS)
async def test_an_exec_plug_in_that_fails_is_named(write: Write, command: str, args: list[str], text: str) -> None:
    """The error says which program it was and how it ended."""
    entry = {"apiVersion": "v1", "command": command, "args": args}
    found = credentials.load(write(document(user={"exec": entry})))

    with pytest.raises(ConfigurationError, match=text):
        await found.headers()


# --- wrong files -----------------------------------------------------------------------------------------------------

HTTPS = "https://127.0.0.1:6443"
WRONG: dict[str, Any] = {
    "no-context": document() | {"current-context": None},
    "unknown-context": document() | {"current-context": "there"},
    "unknown-cluster": document(clusters=[]),
    "empty": "",
    "list": "- a",
    "no-yaml": "a: [",
    "no-authority-file": document({"server": HTTPS, "certificate-authority": "absent"}),
    "authority-no-base64": document({"server": HTTPS, "certificate-authority-data": "%%%"}),
    "authority-no-certificate": document({"server": HTTPS, "certificate-authority-data": encoded(b"words")}),
    "certificate-no-base64": document(user={"client-certificate-data": "%%%", "client-key-data": "%%%"}),
    "anothers-key": document(
        user={"client-certificate-data": encoded(CERT_PEM), "client-key-data": encoded(OTHER_KEY)}
    ),
    "no-key-file": document(user={"client-certificate": "absent", "client-key": "absent"}),
}


@pytest.mark.parametrize(
    "content",
    [pytest.param(content, id=name) for name, content in WRONG.items()],
)
def test_a_wrong_kubeconfig_is_an_error_that_names_it(write: Write, content: Any) -> None:
    """Whatever is wrong with the file or with what it refers to, the error is one of configuration."""
    path = write(content)

    with pytest.raises(ConfigurationError, match=str(path)):
        credentials.load(path)


def test_a_missing_kubeconfig_is_an_error_that_names_it(tmp_path: Path) -> None:
    """The path is in the text."""
    with pytest.raises(ConfigurationError, match=f"kubeconfig {tmp_path}/absent"):
        credentials.load(tmp_path / "absent")


def test_outside_a_cluster_a_kubeconfig_is_needed() -> None:
    """Where there is no service account, the error says what to set."""
    with pytest.raises(ConfigurationError, match="set KUBECONFIG outside"):
        credentials.load(None)
