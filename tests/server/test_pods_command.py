"""`interlink pods` against a running server."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import trustme
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.strange_plugin import StrangePlugin
from tests.unit.small_server import serving

UID = "11111111-2222-3333-4444-555555555555"
MANIFEST = f"""
kind: ConfigMap
metadata: {{name: words}}
data: {{word: hello}}
---
kind: Pod
metadata: {{name: p, uid: {UID}}}
spec:
  restartPolicy: Never
  containers: [{{name: c, image: i, env: [{{name: W, valueFrom: {{configMapKeyRef: {{name: words, key: word}}}}}}]}}]
---
kind: Job
metadata: {{name: j}}
spec: {{completions: 2, template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}
"""


class Command:
    """`interlink pods` with the options of one server, as a user starts it; the test's loop goes on meanwhile."""

    def __init__(self, *options: str) -> None:
        self._argv = [sys.executable, "-m", "interlink", "pods", *options]

    async def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [*self._argv, *arguments]
        return await asyncio.to_thread(
            subprocess.run, argv, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
        )

    async def done(self, *arguments: str) -> str:
        result = await self(*arguments)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout


async def test_the_life_of_a_submitted_pod(server: Programs, plugin: StrangePlugin, tmp_path: Path) -> None:
    """Submitted, listed, shown, its log read, deleted."""
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(MANIFEST)
    command = Command("--server", f"http://127.0.0.1:{server.server_port}")

    submitted = json.loads(await command.done("submit", "-f", str(manifest), "-o", "json"))

    assert [(row["namespace"], row["name"]) for row in submitted] == [
        ("default", "p"), ("default", "j-0"), ("default", "j-1")
    ]  # fmt: skip
    assert submitted[0] | {"uid": UID, "job_id": f"job-{UID[:8]}"} == submitted[0]
    assert set(plugin.jobs) == {row["uid"] for row in submitted}
    [sent] = [json.loads(body) for body in plugin.bodies if UID.encode() in body and b'"containers"' in body][:1]
    assert sent["pod"]["spec"]["containers"][0]["env"] == [{"name": "W", "value": "hello"}]

    async def state(expected: str) -> bool:
        rows = json.loads(await command.done("list", "-o", "json"))
        return [row["state"] for row in rows if row["uid"] == UID] == [expected]

    assert await until_async(lambda: state("running"), deadline_s=20)
    table = await command.done("list")
    assert "NAMESPACE" in table
    assert table.count("running") == 3
    assert json.loads(await command.done("show", UID))["status"]["JID"] == f"job-{UID[:8]}"
    assert await command.done("logs", UID, "c", "--tail", "5") == "a line\n"

    assert await command.done("delete", UID, "--grace-period", "1") == f"pod {UID}: the job is being ended\n"
    assert await until_async(lambda: state("deleted"), deadline_s=20)


async def test_another_owners_pods_are_not_shown(server: Programs, plugin: StrangePlugin, tmp_path: Path) -> None:
    """Each owner sees its own; a pod that is not there is one line and code 1."""
    manifest = tmp_path / "pods.yaml"
    manifest.write_text(MANIFEST)
    url = f"http://127.0.0.1:{server.server_port}"
    await Command("--server", url).done("submit", "-f", str(manifest))
    stranger = Command("--server", url, "--owner", "other/node")

    assert json.loads(await stranger.done("list", "-o", "json")) == []
    for arguments in (("show", UID), ("delete", UID), ("logs", UID, "c")):
        result = await stranger(*arguments)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
        assert UID in result.stderr
    assert "running" in plugin.jobs[UID]


async def test_a_server_that_wants_certificates(
    make_server: Callable[..., Programs], plugin: StrangePlugin, tmp_path: Path
) -> None:
    """The options show one and name the authority; without them there is one line and code 1."""
    authority = trustme.CA()
    certificate, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("admin")
    authority.cert_pem.write_to_path(tmp_path / "ca")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    certificate.private_key_pem.write_to_path(tmp_path / "key")
    client.cert_chain_pems[0].write_to_path(tmp_path / "client.cert")
    client.private_key_pem.write_to_path(tmp_path / "client.key")
    keys = {"CertFile": str(tmp_path / "cert"), "KeyFile": str(tmp_path / "key"), "CACertFile": str(tmp_path / "ca")}
    programs = make_server(InterlinkAddress="https://127.0.0.1", TLS={"Enabled": True, **keys})
    programs.server.start(is_awaited=False)
    server = ("--server", f"https://127.0.0.1:{programs.server_port}", "--ca-file", str(tmp_path / "ca"))
    known = Command(*server, "--cert-file", str(tmp_path / "client.cert"), "--key-file", str(tmp_path / "client.key"))

    async def answers() -> bool:
        return (await known("list")).returncode == 0

    assert await until_async(answers, deadline_s=20)
    stranger = await Command(*server)("list")
    wrong = await Command(*server, "--cert-file", str(tmp_path / "absent"))("list")

    assert (stranger.returncode, stranger.stderr.count("\n")) == (1, 1)
    assert (wrong.returncode, "--ca-file, --cert-file" in wrong.stderr) == (2, True)
    assert plugin.port


async def test_a_token_is_shown(tmp_path: Path) -> None:
    """A proxy in front of the server may want one."""
    seen: list[str | None] = []

    async def proxy(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.json_response({"epoch": "e", "revision": 0, "changes": [], "is_complete": True})

    (tmp_path / "token").write_text("secret\n")
    async with serving(proxy) as url:
        await Command("--server", url, "--token-file", str(tmp_path / "token")).done("list")

    assert seen == ["Bearer secret"]
