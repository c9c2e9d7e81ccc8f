"""What containers use, on its way from a plugin: one question, nothing kept, nothing made up."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from aiohttp import web

from interlink.kubelet.dialects.own import Remote
from interlink.model.ids import Owner, PodUID
from interlink.sdk import serving
from interlink.sdk.addresses import Address
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.batch.scheduler import Scheduler
from interlink.sdk.client import PluginClient
from interlink.sdk.errors import NotFound, OutcomeUnknown
from interlink.sdk.plugin import Plugin
from interlink.sdk.transport import Link
from interlink.wire.messages import ContainerUsage
from tests.unit.small_server import serving as small_server

UID = PodUID("uid-1")
AT = datetime(2026, 7, 14, 10, 0, 0, tzinfo=UTC)
NOTED = {"at": "2026-07-14T10:00:00.000000Z", "containers": {"c": {"cpuSeconds": 1.5, "memoryBytes": 1000}}}
USED = ContainerUsage(pod_uid=UID, container="c", cpu_seconds=1.5, memory_bytes=1000, at=AT)


def plugin(root: Path) -> BatchPlugin:
    return BatchPlugin(root, scheduler=cast("Scheduler", None), runtime=cast("Runtime", None))


@asynccontextmanager
async def link_to(app: web.Application) -> AsyncIterator[Link]:
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    link = Link(Address(scheme="http", host="127.0.0.1", port=runner.addresses[0][1]), peer="plugin")
    try:
        yield link
    finally:
        await link.close()
        await runner.cleanup()


async def test_a_batch_plugin_tells_what_the_runner_noted(tmp_path: Path) -> None:
    """Over HTTP; pods whose jobs noted nothing, or nothing that can be read, are left out."""
    for uid, text in ((UID, json.dumps(NOTED)), ("uid-2", "words"), ("uid-3", None)):
        (tmp_path / uid).mkdir()
        if text is not None:
            (tmp_path / uid / "usage.json").write_text(text)

    async with link_to(serving.application(plugin(tmp_path))) as link:
        found = await PluginClient(link).usage([UID, PodUID("uid-2"), PodUID("uid-3"), PodUID("uid-4")])

    assert found == [USED]


async def test_a_plugin_that_does_not_know_has_no_such_question() -> None:
    """404, as from a plugin of the existing kind."""
    async with link_to(serving.application(cast("Plugin", object()))) as link:
        with pytest.raises(NotFound):
            await PluginClient(link).usage([UID])


@pytest.mark.parametrize("body", [b"words", b'{"a": 1}', b'[{"pod_uid": 1}]'])
async def test_an_answer_that_cannot_be_read_is_no_usage(body: bytes) -> None:
    """It is an error, never zero."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async with small_server(answer) as url:
        host, port = url.removeprefix("http://").split(":")
        link = Link(Address(scheme="http", host=host, port=int(port)), peer="server")
        with pytest.raises(OutcomeUnknown):
            await Remote(link, Owner(cluster="c", node="vk"), may_act=lambda: None).usage()
        await link.close()


async def test_a_server_that_does_not_know_knows_of_nothing() -> None:
    """The node then claims nothing."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404)

    async with small_server(answer) as url:
        host, port = url.removeprefix("http://").split(":")
        link = Link(Address(scheme="http", host=host, port=int(port)), peer="server")
        assert await Remote(link, Owner(cluster="c", node="vk"), may_act=lambda: None).usage() == []
        await link.close()
