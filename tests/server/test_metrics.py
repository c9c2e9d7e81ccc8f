"""What an operator reads at the server's /metrics."""

import asyncio

from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin, cut


async def is_metric(client: ServerClient, line: str, value: float) -> bool:
    """Within some rounds."""

    async def is_there() -> bool:
        rows = (await client.ask("/metrics", method="GET"))[1].splitlines()
        return f"{line} {value}" in rows

    return await until_async(is_there, deadline_s=20)


async def test_records_by_state(client: ServerClient, plugin: StrangePlugin) -> None:
    """As they are after a round."""
    documents = [pod() for _ in range(4)]
    for document in documents:
        await client.create(document)
    plugin.end(uid_of(documents[0]))

    async def refuse(_: web.Request, __: object) -> web.Response:
        return web.Response(status=400, text="no such partition")

    plugin.behaviours["create"] = refuse
    await client.create(pod())

    for state, count in (("live", 3.0), ("ended", 1.0), ("rejected", 1.0), ("creating", 0.0), ("deleting", 0.0)):
        assert await is_metric(client, f'interlink_records{{state="{state}"}}', count)


async def test_damaged_records(client: ServerClient, server: Programs) -> None:
    """Those that were set aside at the start; none before."""
    assert await client.metric("interlink_damaged_records") == 0
    server.server.kill()
    for name in ("one", "two"):
        (server.cache / f"{name}.yaml").write_text("nonsense")

    server.server.start()

    assert await client.metric("interlink_damaged_records") == 2


async def test_creates_that_wait_for_the_plugin(client: ServerClient, plugin: StrangePlugin) -> None:
    """While it has not answered."""
    gate = asyncio.Event()

    async def slow(_: web.Request, __: object) -> None:
        await gate.wait()

    plugin.behaviours["create"] = slow
    creates = [asyncio.create_task(client.create(pod())) for _ in range(3)]
    assert await is_metric(client, "interlink_waiting_creates", 3.0)
    gate.set()
    assert [code for code, _ in await asyncio.gather(*creates)] == [200] * 3

    assert await is_metric(client, "interlink_waiting_creates", 0.0)


async def test_calls_of_the_plugin(client: ServerClient, plugin: StrangePlugin) -> None:
    """By call and outcome, with the time that they took."""
    await client.create(pod())

    async def refuse(_: web.Request, __: object) -> web.Response:
        return web.Response(status=400, text="no")

    plugin.behaviours["create"] = refuse
    await client.create(pod())
    plugin.behaviours["ping"] = cut
    await client.ask("/pinglink")

    name = "interlink_plugin_call_seconds_count"
    for call, outcome in (("create", "ok"), ("create", "refused"), ("ping", "failed")):
        assert await client.metric(f'{name}{{call="{call}",outcome="{outcome}"}}') == 1
    total = await client.metric('interlink_plugin_call_seconds_sum{call="create",outcome="ok"}')
    assert 0 < total < 10


async def test_an_answer_that_is_doubted(client: ServerClient, plugin: StrangePlugin) -> None:
    """1 while most jobs are left out, 0 as soon as they are there again."""
    for _ in range(6):
        await client.create(pod())

    async def nothing(_: web.Request, __: object) -> web.Response:
        return web.json_response([])

    plugin.behaviours["status"] = nothing

    assert await is_metric(client, "interlink_status_doubted", 1.0)
    assert "does not mention 6 of 6 jobs" in await client.ready()
    plugin.behaviours.clear()
    assert await is_metric(client, "interlink_status_doubted", 0.0)
