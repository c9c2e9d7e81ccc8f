"""`sdk.serve` gives a plugin its HTTP side, and ends with a signal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trustme

from interlink.sdk import tls
from interlink.sdk.addresses import Address
from interlink.sdk.client import PluginClient
from interlink.sdk.errors import Unreachable
from interlink.sdk.tls import TLSFile
from interlink.sdk.transport import Link
from interlink.testing import ports
from interlink.testing.daemons import Daemon
from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async

PROGRAM = """
import sys
from interlink import sdk

class Plugin:
    async def jobs(self):
        return []
    async def capacity(self):
        return sdk.PingAnswer(status="ok")
    def chores(self):
        async def chore():
            print("chore done", file=sys.stderr, flush=True)
        return [sdk.Chore("chore", chore, 1000)]

sdk.serve(Plugin(), sys.argv[1])
"""


def daemon(tmp_path: Path, address: str) -> Daemon:
    return Daemon([sys.executable, "-c", PROGRAM, address], log=tmp_path / "log", environ=dict(os.environ))


@pytest.mark.parametrize("kind", ["http", "unix"])
async def test_a_plugin_is_served_until_a_signal_comes(tmp_path: Path, kind: str) -> None:
    """Over TCP and over a unix socket; its chores are done, it logs, and it ends with 0."""
    address = (
        Address("http", "127.0.0.1", ports.free()) if kind == "http" else Address("unix", socket=str(tmp_path / "s"))
    )
    program, link = daemon(tmp_path, str(address)), Link(address, peer="plugin")
    program.start()

    async def answers() -> bool:
        try:
            return bool(await PluginClient(link).ping())
        except Unreachable:
            return False

    assert await until_async(answers, deadline_s=20)
    assert await PluginClient(link).jobs() == []
    await link.close()
    assert program.terminate(deadline_s=10) == 0
    log = program.log.read_text()
    assert [word in log for word in ("plugin.ready", "chore done", "process.stopping")] == [True] * 3


def test_a_wrong_address_ends_the_program_with_one_line() -> None:
    """No traceback, exit code 2."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "ftp://x"], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 2
    assert done.stderr == "Error: address: 'ftp://x' must start with unix://, http:// or https://\n"


async def test_a_plugin_with_certificates_and_a_token(tmp_path: Path) -> None:
    """The keys TLS and TokenFile of our plugins: only who has both a certificate and the token is served."""
    authority = trustme.CA()
    files = {name: tmp_path / name for name in ("ca", "cert", "key", "client", "token")}
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(files["ca"]))
    certificate.cert_chain_pems[0].write_to_path(str(files["cert"]))
    certificate.private_key_pem.write_to_path(str(files["key"]))
    authority.issue_cert("server").private_key_and_cert_chain_pem.write_to_path(str(files["client"]))
    files["token"].write_text("s3cr3t")
    keys = {
        "Enabled": True,
        "CertFile": str(files["cert"]),
        "KeyFile": str(files["key"]),
        "CACertFile": str(files["ca"]),
    }
    programs = Programs(
        tmp_path,
        plugin_keys={"SidecarAddress": "https://127.0.0.1", "TLS": keys, "TokenFile": str(files["token"])},
    )
    programs.plugin.start(is_awaited=False)
    address = Address("https", "127.0.0.1", programs.plugin_port)
    known = TLSFile(cert_file=str(files["client"]), ca_cert_file=str(files["ca"]))
    stranger = TLSFile(ca_cert_file=str(files["ca"]))

    async def is_served(files_: TLSFile, token: Path | None) -> bool:
        link = Link(address, peer="plugin", tls=tls.client_context(files_, key="TLS"), token_file=token)
        try:
            return bool(await PluginClient(link).ping())
        except Exception:
            return False
        finally:
            await link.close()

    try:
        assert await until_async(lambda: is_served(known, files["token"]), deadline_s=20)
        assert not await is_served(known, None)
        assert not await is_served(stranger, files["token"])
    finally:
        programs.plugin.stop()
