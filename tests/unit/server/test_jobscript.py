"""Job scripts: what a builder is sent, what its answers mean, and what a template makes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec import Raw

from interlink.sdk.errors import Rejected, SDKError, Unreachable
from interlink.server.jobscript import BuilderService, GoTemplate, NoScripts
from interlink.wire.messages import RetrievedPodData, ScratchVolumes, ScriptBuildConfig
from tests.unit.small_server import cut, serving

DATA = RetrievedPodData(pod=Raw(b'{"metadata":{}}'))
CONFIG = ScriptBuildConfig(volumes=ScratchVolumes(scratch_area="/scratch"))


class Builder:
    """Answers with a status and a text, or cuts the connection; remembers what came."""

    def __init__(self, status: int = 200, body: str | bytes = "#!/bin/sh\n") -> None:
        self._status = status
        self._body = body.encode() if isinstance(body, str) else body
        self.asked: list[tuple[str, Any]] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.asked.append((request.headers["Content-Type"], await request.json()))
        return web.Response(status=self._status, body=self._body) if self._status else cut(request)


class Template:
    """Makes a script of its own for every pod."""

    async def completed(self, data: RetrievedPodData, url: str) -> RetrievedPodData:
        return msgspec.structs.replace(data, job_script="from the template")


async def built(builder: Builder) -> str | msgspec.UnsetType:
    async with serving(builder) as url:
        return (await BuilderService(CONFIG, NoScripts()).completed(DATA, f"{url}/build")).job_script


async def test_the_script_is_the_answer() -> None:
    """As it comes."""
    assert await built(Builder(body="#!/bin/bash\necho 'grüße'\n")) == "#!/bin/bash\necho 'grüße'\n"


async def test_the_builder_is_sent_no_logins() -> None:
    """Those for registries go to the plugin, which gets them with the script."""
    builder = Builder()
    data = msgspec.structs.replace(DATA, pull_secrets=[Raw(b"{}")])
    async with serving(builder) as url:
        answer = await BuilderService(CONFIG, NoScripts()).completed(data, f"{url}/")

    assert "imagePullSecrets" not in builder.asked[0][1]
    assert answer.pull_secrets == [Raw(b"{}")]


async def test_the_builder_is_sent_the_pod_and_the_configuration() -> None:
    """As JSON, with the names of the contract."""
    builder = Builder()
    await built(builder)

    kind, body = builder.asked[0]
    assert (kind, body["pod"], body["jobConfig"]["Volumes"]["scratch_area"]) == (
        "application/json",
        {"metadata": {}},
        "/scratch",
    )


@pytest.mark.parametrize(
    ("builder", "kind", "text"),
    [
        (Builder(400, "no such image"), Rejected, r"refuses the pod \(400\): no such image"),
        (Builder(404, ""), Rejected, r"\(404\)"),
        (Builder(500), Unreachable, "answered 500"),
        (Builder(503), Unreachable, "answered 503"),
        (Builder(0), Unreachable, "cannot reach the job-script builder"),
        (Builder(200, b"\xff"), Unreachable, "cannot reach the job-script builder"),
    ],
)
async def test_a_builder_without_a_script(builder: Builder, kind: type[SDKError], text: str) -> None:
    """Its refusal is the pod's end; trouble with it is repeated."""
    with pytest.raises(kind, match=text):
        await built(builder)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "nonsense", "http://", "ftp://h/"])
async def test_a_builder_that_is_not_there_is_unreachable(url: str) -> None:
    """The URL is named."""
    with pytest.raises(Unreachable, match=f"cannot reach the job-script builder {url}"):
        await BuilderService(CONFIG, NoScripts()).completed(DATA, url)


async def test_a_server_without_a_configuration_has_no_builder() -> None:
    """A pod that asks for one is refused, with the key that is missing."""
    with pytest.raises(Rejected, match="JobScriptBuildConfig"):
        await NoScripts().completed(DATA, "http://b")


async def test_a_long_refusal_is_cut() -> None:
    """It becomes the pod's message."""
    with pytest.raises(Rejected) as caught:
        await built(Builder(422, "x" * 5000))

    assert len(str(caught.value)) < 600


async def test_a_pod_that_names_no_builder_gets_no_script() -> None:
    """Its request travels as it is, with what the configuration says about scripts where it says something."""
    assert await NoScripts().completed(DATA, "") == DATA
    assert (await BuilderService(CONFIG, NoScripts()).completed(DATA, "")).job_config == CONFIG


async def test_a_server_without_a_configuration_may_have_a_template() -> None:
    """Then nobody is told a configuration."""
    maker = BuilderService(None, Template())
    async with serving(Builder(body="from the builder")) as url:
        found = [await maker.completed(DATA, asked) for asked in ("", url)]

    assert [data.job_script for data in found] == ["from the template", "from the builder"]
    assert [data.job_config for data in found] == [DATA.job_config] * 2


async def test_a_template_is_for_pods_that_name_no_builder() -> None:
    """The pod's builder wins."""
    maker = BuilderService(CONFIG, Template())
    async with serving(Builder(body="from the builder")) as url:
        found = [(await maker.completed(DATA, asked)).job_script for asked in ("", url)]

    assert found == ["from the template", "from the builder"]


# --- templates -------------------------------------------------------------------------------------------------------


def renderer(folder: Path, script: str) -> GoTemplate:
    """A program in the place of the one that renders templates."""
    program = folder / "render"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return GoTemplate(program, folder / "template")


async def test_a_template_is_given_the_request(tmp_path: Path) -> None:
    """Its path as the argument, the request as the input; the output is the script."""
    found = await renderer(tmp_path, 'echo "$1"; cat').completed(DATA, "")

    first, rest = str(found.job_script).split("\n", 1)
    assert first == f"{tmp_path}/template"
    assert msgspec.json.decode(rest)["pod"] == {"metadata": {}}


async def test_a_template_that_does_not_fit_the_pod_is_a_refusal(tmp_path: Path) -> None:
    """With the words of the engine."""
    with pytest.raises(Rejected, match=f"JobScriptTemplate {tmp_path}/template .*no field .X"):
        await renderer(tmp_path, "echo no field .X >&2; exit 1").completed(DATA, "")


async def test_a_missing_engine_is_trouble_of_the_site(tmp_path: Path) -> None:
    """The pod waits until somebody has mended it."""
    with pytest.raises(Unreachable, match=f"cannot run {tmp_path}/absent"):
        await GoTemplate(tmp_path / "absent", tmp_path / "template").completed(DATA, "")
