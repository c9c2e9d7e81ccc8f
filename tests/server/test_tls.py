"""TLS with client certificates, from the files that the configuration names."""

import json
import ssl
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
import trustme

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async


async def test_https_with_client_certificates(make_server: Callable[..., Programs], tmp_path: Path) -> None:
    """A client with a certificate of the authority is served; one without, and one without TLS, are one line each."""
    authority = trustme.CA()
    certificate, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("vk")
    files = {name: tmp_path / name for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(str(files["ca"]))
    certificate.cert_chain_pems[0].write_to_path(str(files["cert"]))
    certificate.private_key_pem.write_to_path(str(files["key"]))
    programs = make_server(
        InterlinkAddress="https://127.0.0.1",
        TLS={
            "Enabled": True,
            "CertFile": str(files["cert"]),
            "KeyFile": str(files["key"]),
            "CACertFile": str(files["ca"]),
        },
    )
    programs.server.start(is_awaited=False)
    trusting = ssl.create_default_context(cafile=str(files["ca"]))
    stranger = ssl.create_default_context(cafile=str(files["ca"]))
    client.configure_cert(trusting)
    url = f"https://127.0.0.1:{programs.server_port}/healthz"

    async with aiohttp.ClientSession() as session:

        async def answers() -> bool:
            try:
                async with session.get(url, ssl=trusting) as response:
                    return response.status == 200
            except aiohttp.ClientError:
                return False

        assert await until_async(answers, deadline_s=20)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url, ssl=stranger)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url.replace("https", "http"))
        assert await answers()
    log = programs.server.log.read_text()
    refusals = [line for line in map(json.loads, log.splitlines()) if line["event"] == "tls.refused"]
    assert {line["reason"] for line in refusals} == {"peer did not return a certificate", "http request"}
    assert len({line["remote"] for line in refusals}) == len(refusals)  # the client may have tried again
    assert "Traceback" not in log


async def test_missing_certificate_ends_the_start(make_server: Callable[..., Programs]) -> None:
    """One line names the key; nothing is served in the clear."""
    programs = make_server(InterlinkAddress="https://127.0.0.1")
    programs.server.start(is_awaited=False)

    assert programs.server.await_exit() == 2
    assert "TLS: CertFile and KeyFile are needed for https" in programs.server.log.read_text()
