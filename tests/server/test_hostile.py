"""Requests and files that are meant to harm: each gets its answer, and nothing else suffers."""

import os

import aiohttp
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin


async def test_absurd_grace_period_stops_nothing(client: ServerClient, plugin: StrangePlugin, server: Programs) -> None:
    """A deletion with a number of 400 digits is taken, and rounds and creates go on, also after a restart."""
    document = pod()
    await client.create(document)
    metadata = f'{{"uid":"{uid_of(document)}","deletionGracePeriodSeconds":1{"0" * 400}}}'
    body = f'{{"metadata":{metadata},"spec":{{"nodeName":"vk"}}}}'
    await client.ask("/delete", body.encode())
    server.server.restart()

    other = pod()
    assert (await client.create(other))[0] == 200
    plugin.end(uid_of(other), 3)
    assert (await client.wait_ended(other))["has_ended"]


async def test_announced_uid_that_is_a_path_is_refused(client: ServerClient, server: Programs) -> None:
    """Nothing is written outside the cache, and the other pods are asked for as before."""
    bad = pod("../../escaped", job_id="j")

    code, _ = await client.ask(
        "/interlink/v1/announce",
        {
            "owner": {"cluster": "default", "node": "vk"},
            "pods": [{"pod": bad, "job_id": "j"}],
            "epoch": "",
            "revision": 0,
        },
    )

    assert code == 400
    assert not (server.cache.parent.parent / "escaped.yaml").exists()


async def test_announcement_of_a_revision_never_told_deletes_nothing(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """An owner cannot have been told more than there was to tell."""
    document = pod()
    await client.create(document)
    epoch = (await client.changes())["epoch"]
    owner = {"cluster": "default", "node": "vk"}

    answer = await client.json(
        "/interlink/v1/announce", {"owner": owner, "pods": [], "epoch": epoch, "revision": 10**9}
    )

    assert answer["deleted"] == 0
    assert "running" in plugin.jobs[uid_of(document)]


async def test_odd_entries_of_the_cache_are_set_aside(client: ServerClient, server: Programs) -> None:
    """Directories, dangling links, loops and pipes do not keep the server from starting with the good records."""
    document = pod()
    await client.create(document)
    server.server.kill()
    (server.cache / "dir-1.yaml").mkdir()
    (server.cache / "dangling.yaml").symlink_to("nowhere")
    (server.cache / "loop.yaml").symlink_to("loop.yaml")
    os.mkfifo(server.cache / "pipe.yaml")
    (server.cache / ".a.yaml.tmp").mkdir()

    server.server.start()

    assert await client.change(document) is not None
    ready = await client.ready()
    assert all(f"damaged record {name}.yaml" in ready for name in ("dir-1", "dangling", "loop", "pipe"))


async def test_cluster_with_dashes_is_one_cluster(session: aiohttp.ClientSession, server: Programs) -> None:
    """Both dialects find the pods of a cluster however its name is written."""
    client = ServerClient(session, server.server_port, cluster="a-b")
    document = pod()
    await client.create(document)

    assert len(await client.status(document)) == 1
    assert len(await client.status()) == 1
    assert len((await client.changes())["changes"]) == 1
    assert (await client.ask("/getLogs", {"PodUID": uid_of(document), "ContainerName": "c"}))[0] == 200
    assert (await ServerClient(session, server.server_port, cluster="a/b").ask("/status", []))[0] == 400


async def test_data_that_cannot_be_read_is_refused_before_anything_is_begun(
    client: ServerClient, server: Programs
) -> None:
    """A Secret that is none leaves no record."""
    for secrets in ([None], [{"metadata": 5}]):
        document = pod()
        code, _ = await client.ask("/create", {"pod": document, "secrets": secrets})

        assert code == 400
        assert not (server.cache / f"{uid_of(document)}.yaml").exists()


async def test_log_that_breaks_off_is_not_taken_for_whole(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """A plugin that dies in the middle of a log ends the reader's connection with an error."""

    async def half(request: web.Request, _: object) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    plugin.behaviours["logs"] = half
    document = pod()
    await client.create(document)
    url = f"http://127.0.0.1:{server.server_port}/getLogs"

    async with aiohttp.ClientSession() as session:
        response = await session.post(url, json={"PodUID": uid_of(document), "ContainerName": "c"})
        broke_off = await until_async(lambda: _breaks_off(response), deadline_s=10)

    assert broke_off


async def _breaks_off(response: aiohttp.ClientResponse) -> bool:
    try:
        await response.read()
    except aiohttp.ClientPayloadError:
        return True
    return False
