"""Job scripts: from a builder that the virtual kubelet names, else from a Go template of the existing system."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.jobs import end_jobs, living_jobs
from tests.support.server_client import ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin

SOURCES = Path(__file__).parents[2] / "tools" / "gotemplate"
TEMPLATE = """#!/bin/sh
# {{ .Pod.Namespace }}/{{ .Pod.Name }} as {{ .JobScriptBuild.ApptainerOptions.Executable }}
{{ range .Pod.Spec.Containers }}run {{ .Image | printf "%q" }} {{ index .Command 0 }}
{{ end }}"""


@pytest.fixture(scope="session")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program that renders Go templates."""
    if shutil.which("go") is None:
        pytest.skip("no Go to build tools/gotemplate with: install it")
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "interlink-go-template"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=SOURCES, check=True, timeout=170)
    return folder


def sent_script(plugin: StrangePlugin) -> Any:
    bodies = [json.loads(body) for body in plugin.bodies if b'"jobConfig"' in body]
    return bodies[-1].get("jobScript")


async def test_builder_wins_over_a_template(
    plugin: StrangePlugin,
    make_server: Callable[..., Programs],
    session: aiohttp.ClientSession,
    aiohttp_builder: Callable[[web.Response], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the server has only a template; a pod that names no builder gets the template's script."""
    renderer = tmp_path / "interlink-go-template"
    renderer.write_text("#!/bin/sh\necho of the template\n")
    renderer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    template = tmp_path / "script.tmpl"
    template.touch()
    programs = make_server(JobScriptTemplate=str(template))
    programs.start()
    client = ServerClient(session, programs.server_port)
    builder, _ = await aiohttp_builder(web.Response(text="of the builder"))

    codes = [
        (await client.ask("/create", {"pod": pod(), "jobscriptURL": builder}))[0],
        (await client.ask("/create", {"pod": pod()}))[0],
    ]

    assert codes == [200, 200]
    scripts = [json.loads(body)["jobScript"] for body in plugin.bodies if b'"jobScript"' in body]
    assert scripts == ["of the builder", "of the template\n"]


async def test_go_template_makes_the_script(
    plugin: StrangePlugin,
    make_server: Callable[..., Programs],
    session: aiohttp.ClientSession,
    renderer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The template sees the create request under its Go names and the configuration; its text reaches the plugin."""
    monkeypatch.setenv("PATH", f"{renderer}:{os.environ['PATH']}")
    template = tmp_path / "script.tmpl"
    template.write_text(TEMPLATE)
    options = {"apptainer_options": {"executable": "/bin/apptainer"}}
    programs = make_server(JobScriptTemplate=str(template), JobScriptBuildConfig=options)
    programs.start()

    code, _ = await ServerClient(session, programs.server_port).create(pod())

    assert code == 200
    assert sent_script(plugin) == '#!/bin/sh\n# ns/p as /bin/apptainer\nrun "i" true\n'


async def test_template_that_fails_rejects_the_pod(
    make_server: Callable[..., Programs],
    session: aiohttp.ClientSession,
    renderer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pod is told the words of the template engine."""
    monkeypatch.setenv("PATH", f"{renderer}:{os.environ['PATH']}")
    template = tmp_path / "script.tmpl"
    template.write_text("{{ .NoSuchField }}")
    programs = make_server(JobScriptTemplate=str(template))
    programs.start()

    code, text = await ServerClient(session, programs.server_port).create(pod())

    assert (code, "NoSuchField" in text) == (422, True)


async def test_missing_renderer_ends_the_start(
    make_server: Callable[..., Programs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says how to build it."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    template = tmp_path / "script.tmpl"
    template.write_text("x")
    programs = make_server(JobScriptTemplate=str(template))
    programs.server.start(is_awaited=False)

    assert programs.server.await_exit() == 2
    assert "go build -o /usr/local/bin/interlink-go-template" in programs.server.log.read_text()


async def test_builder_that_the_virtual_kubelet_names(
    plugin: StrangePlugin,
    make_server: Callable[..., Programs],
    session: aiohttp.ClientSession,
    aiohttp_builder: Callable[[web.Response], Any],
) -> None:
    """The builder gets the request with the configuration; its answer is the job script; its refusal is the pod's."""
    programs = make_server(JobScriptBuildConfig={"volumes_options": {"scratch_area": "/scratch"}})
    programs.start()
    client = ServerClient(session, programs.server_port)
    good, asked = await aiohttp_builder(web.Response(text="echo hello"))
    bad, _ = await aiohttp_builder(web.Response(status=400, text="no such image"))
    document = pod()

    code, _ = await client.ask("/create", {"pod": document, "jobscriptURL": good})
    refused, text = await client.ask("/create", {"pod": pod(), "jobscriptURL": bad})

    assert (code, sent_script(plugin)) == (200, "echo hello")
    assert asked[0]["jobConfig"]["Volumes"]["scratch_area"] == "/scratch"
    assert (refused, "no such image" in text) == (422, True)
    assert plugin.submissions == {uid_of(document): 1}


async def test_builder_without_configuration_is_refused(client: ServerClient) -> None:
    """The existing server answers 200 with nothing; here the pod is told why."""
    code, text = await client.ask("/create", {"pod": pod(), "jobscriptURL": "http://127.0.0.1:9/"})

    assert (code, "JobScriptBuildConfig" in text) == (422, True)


# --- the script in the job of the local plugin -----------------------------------------------------------------------

SCRIPT = """#!/bin/sh
cd "$workingPath"
test "$SANDBOX" = "$PWD" || exit 90
echo of the script
echo of the container > run-c.out
until [ -e %s ]; do sleep 0.05; done
echo 3 > run-c.status
exit 5
"""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Programs]:
    """The server and the local plugin, running; it gives its jobs nothing of an environment with a password in it."""
    programs = Programs(tmp_path, server_keys={"StatusInterval": 0.1, "JobScriptBuildConfig": {}})
    programs.plugin.environ["PASSWORD_OF_THE_SITE"] = "p4ssw0rd"
    programs.start()
    yield programs
    programs.stop()
    end_jobs(programs.jobs)


async def test_the_script_runs_in_place_of_the_containers_commands(
    local: Programs,
    session: aiohttp.ClientSession,
    aiohttp_builder: Callable[[web.Response], Any],
    tmp_path: Path,
) -> None:
    """Once, over a restart of the plugin; it says how its containers ended, and what they printed."""
    client = ServerClient(session, local.server_port)
    url, _ = await aiohttp_builder(web.Response(text=SCRIPT % (tmp_path / "go")))
    document = pod()
    code, _ = await client.ask("/create", {"pod": document, "jobscriptURL": url})
    await client.until_state(document, "running")
    local.plugin.restart()
    (tmp_path / "go").touch()
    await client.until_state(document, "terminated")

    state = (await client.status(document))[0]["containers"][0]["state"]
    _, log = await client.ask("/getLogs", {"PodUID": uid_of(document), "ContainerName": "c", "Opts": {}})
    assert (code, state["terminated"]["exitCode"], log) == (200, 3, "of the container\n")
    assert not (local.jobs / uid_of(document) / "env").exists()


async def test_a_deleted_pods_script_ends(
    local: Programs, session: aiohttp.ClientSession, aiohttp_builder: Callable[[web.Response], Any]
) -> None:
    """Its own output is the container's, and knows nothing of the site's secrets."""
    client = ServerClient(session, local.server_port)
    url, _ = await aiohttp_builder(web.Response(text="env; exec sleep 60"))
    document = pod()
    await client.ask("/create", {"pod": document, "jobscriptURL": url})
    await client.until_state(document, "running")
    code, _ = await client.ask("/delete", document, method="DELETE")

    assert code == 200
    assert await until_async(lambda: no_jobs(local), deadline_s=30)
    _, log = await client.ask("/getLogs", {"PodUID": uid_of(document), "ContainerName": "c", "Opts": {}})
    assert "workingPath=" in log
    assert "PASSWORD" not in log


async def no_jobs(local: Programs) -> bool:
    return living_jobs(local.jobs) == []


async def test_a_script_that_is_none_rejects_the_pod(
    local: Programs, session: aiohttp.ClientSession, aiohttp_builder: Callable[[web.Response], Any]
) -> None:
    """In one line; nothing of the content is told."""
    client = ServerClient(session, local.server_port)
    url, _ = await aiohttp_builder(web.Response(text="secret\0" * 10))

    code, text = await client.ask("/create", {"pod": pod(), "jobscriptURL": url})

    assert (code, "jobScript: it holds a zero byte" in text, "secret" in text) == (422, True, False)
