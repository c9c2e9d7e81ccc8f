"""The published OpenAPI document, and the server held against it with generated requests."""

import asyncio

import pytest
from aiohttp import web

import interlink
from interlink.testing.programs import Programs
from interlink.wire import messages, openapi
from tests.support.generated import hold_against
from tests.support.server_client import Document, ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin

DOCUMENT = openapi.server(interlink.__version__)


async def follow(request: web.Request, _: object) -> web.StreamResponse:
    """A log that comes in parts."""
    response = web.StreamResponse()
    await response.prepare(request)
    for line in (b"one\n", b"two\n"):
        await response.write(line)
        await asyncio.sleep(0)
    return response


@pytest.mark.parametrize("path", DOCUMENT["paths"])
async def test_generated_requests_get_documented_answers(
    client: ServerClient, server: Programs, plugin: StrangePlugin, path: str
) -> None:
    """Whatever fits the document, and what does not, is answered with a documented code; the process lives on.

    Half of the requests are about a pod that is there; long polls wait for news, shortly.
    """
    pid = server.server.pid
    plugin.behaviours["logs"] = follow
    document = pod()
    await client.create(document)
    seen = await client.changes()
    place = {"owner": {"cluster": "default", "node": "vk"}, "epoch": seen["epoch"]}
    known: dict[str, Document] = {
        "/create": {"pod": document},
        "/delete": document,
        "/getLogs": {"PodUID": uid_of(document)},
        messages.ANNOUNCE: {**place, "pods": [{"pod": document, "job_id": None}], "revision": seen["revision"]},
        messages.CHANGES: {**place, "since": seen["revision"], "wait_s": 0.1},
        messages.REFRESH: {"pod": document},
        messages.USAGE: {"owner": place["owner"]},
    }

    codes = await asyncio.to_thread(
        hold_against, DOCUMENT, path, f"http://127.0.0.1:{server.server_port}", known.get(path, {})
    )

    assert 200 in codes
    assert server.server.pid == pid
    assert "Traceback" not in server.server.log.read_text()
