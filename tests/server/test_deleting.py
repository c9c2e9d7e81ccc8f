"""Delete, for good."""

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

import aiohttp
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import Document, ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin, cut


async def test_measured_d1_d7_r5_plugin_down_while_pods_are_deleted(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """The tombstones are durable, also over a restart of the server, and every job ends at last."""
    documents = [pod() for _ in range(20)]
    await asyncio.gather(*(client.create(document) for document in documents))
    plugin.behaviours |= {"delete": cut, "status": cut}

    answers = await asyncio.gather(*(client.ask("/delete", document, method="DELETE") for document in documents))

    assert {code for code, _ in answers} == {200}
    server.server.restart()
    plugin.behaviours.clear()
    for document in documents:
        assert (await client.wait_ended(document, deadline_s=30))["is_deleting"]
    assert all("terminated" in plugin.jobs[uid_of(document)] for document in documents)


async def test_delete_of_what_never_was(client: ServerClient, plugin: StrangePlugin) -> None:
    """The plugin denies the job: the deletion is over at once, and a later create is refused."""
    document = pod()

    assert (await client.ask("/delete", document))[0] == 200

    change = await client.change(document)
    assert change is not None
    assert (change["has_ended"], change["is_deleting"]) == (True, True)
    assert (await client.create(document))[0] == 409
    assert plugin.submissions == {}


async def test_a_bare_deletion_is_enough(client: ServerClient) -> None:
    """The record keeps what it knows of the pod's containers, whatever the deletion leaves out."""
    document = pod()
    await client.create(document)

    await client.ask("/delete", {"metadata": {"uid": uid_of(document)}, "spec": {"nodeName": "vk"}})

    assert (await client.wait_ended(document))["is_deleting"]


async def test_d5_deleting_twice(client: ServerClient, plugin: StrangePlugin) -> None:
    """A repeated deletion is answered like the first."""
    document = pod()
    await client.create(document)

    answers = [await client.ask("/delete", document) for _ in range(3)]

    assert {code for code, _ in answers} == {200}
    await client.wait_ended(document)
    assert plugin.calls["delete"] >= 1


async def test_d6_plugin_that_fails_to_cancel_what_has_ended(client: ServerClient, plugin: StrangePlugin) -> None:
    """The plugin answers 500 because the job is over: its end is seen by asking, and that settles the deletion."""
    document = pod()
    await client.create(document)
    plugin.end(uid_of(document), 0)

    async def fail(_: web.Request, __: object) -> web.Response:
        return web.Response(status=500, text="scancel: Invalid job id specified")

    plugin.behaviours["delete"] = fail
    assert (await client.ask("/delete", document))[0] == 200

    assert (await client.wait_ended(document))["is_deleting"]


async def test_plugin_that_forgets_what_it_deletes(client: ServerClient, plugin: StrangePlugin) -> None:
    """A deleted job that the plugin no longer mentions has ended; no grace period, no doubt."""

    async def delete_and_forget(_: web.Request, data: Document) -> web.Response:
        plugin.jobs.pop(data["metadata"]["uid"], None)
        return web.Response()

    plugin.behaviours["delete"] = delete_and_forget
    documents = [pod() for _ in range(6)]
    await asyncio.gather(*(client.create(document) for document in documents))

    await asyncio.gather(*(client.ask("/delete", document) for document in documents))

    for document in documents:
        await client.wait_ended(document)


async def test_the_plugin_gets_the_pod_as_it_was_sent(client: ServerClient, plugin: StrangePlugin) -> None:
    """Existing plugins may look at any part of the pod."""
    document = pod(labels={"a": "b"})
    await client.create(document)

    await client.ask("/delete", document)

    assert any(b'"labels": {"a": "b"}' in body for body in plugin.bodies)


async def test_shorter_grace_is_passed_on(client: ServerClient, plugin: StrangePlugin) -> None:
    """`kubectl delete --now` after a patient deletion reaches the plugin."""
    asked: list[int] = []

    async def note(_: web.Request, data: Document) -> web.Response:
        asked.append(data["metadata"]["deletionGracePeriodSeconds"])
        return web.Response()

    plugin.behaviours["delete"] = note
    document = pod()
    await client.create(document)

    await client.ask("/delete", pod(uid_of(document), deletionGracePeriodSeconds=300))
    await client.ask("/delete", pod(uid_of(document), deletionGracePeriodSeconds=1))

    assert asked == [300, 1]


async def test_tombstone_goes_when_the_virtual_kubelet_confirms(client: ServerClient, server: Programs) -> None:
    """The record stays until the pod has left Kubernetes, then it is removed from the disk."""
    document, other = pod(), pod()
    await client.create(document)
    await client.create(other)
    await client.ask("/delete", document)
    await client.wait_ended(document)
    record = server.cache / f"{uid_of(document)}.yaml"

    await client.announce(document, other)
    assert record.exists()
    await client.announce(other)

    assert not record.exists()


async def sweeps(client: ServerClient, plugin: StrangePlugin, count: int) -> None:
    """Wait for so many more sweeps, told by their questions; a few come when another owner has announced."""
    await client.announce(node=f"node-{uuid.uuid4()}")
    wanted = plugin.calls["jobs"] + count

    async def were_made() -> bool:
        return plugin.calls["jobs"] >= wanted

    assert await until_async(were_made, deadline_s=20)


def record_of(programs: Programs, document: Document) -> Path:
    return programs.cache / f"{uid_of(document)}.yaml"


async def deleted(client: ServerClient, plugin: StrangePlugin) -> Document:
    """A pod whose job has been ended by its deletion, longer ago than the lifetime of a tombstone in these tests."""
    document = pod()
    await client.create(document)
    await client.ask("/delete", document)
    await client.wait_ended(document)
    await sweeps(client, plugin, 2)
    return document


LIFETIME = {"TombstoneLifetime": 0.2}


async def test_tombstone_of_an_existing_virtual_kubelet_expires(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """It deletes and forgets: asking about other pods only is its confirmation, and nothing else is."""
    programs = make_server(**LIFETIME)
    programs.start()
    client = ServerClient(session, programs.server_port)
    document, other = await deleted(client, plugin), pod()

    for _ in range(3):
        await client.status(document)
        await sweeps(client, plugin, 1)
    assert record_of(programs, document).exists()
    await sweeps(client, plugin, 2)
    assert record_of(programs, document).exists()

    await client.create(other)

    async def is_gone() -> bool:
        await client.status(other)
        return not record_of(programs, document).exists()

    assert await until_async(is_gone, deadline_s=10)


async def test_tombstone_of_one_that_announces_waits_for_it(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """However long it is away, also over a restart of the server, and whatever it asks before it announces again."""
    programs = make_server(**LIFETIME)
    programs.start()
    client = ServerClient(session, programs.server_port)
    own = {"InterLink-Node": "vk"}
    await client.announce()
    document, other = await deleted(client, plugin), pod()
    programs.server.restart()
    await sweeps(client, plugin, 2)

    assert (await client.ask("/create", {"pod": other}, headers=own))[0] == 200
    assert (await client.ask("/delete", other, headers=own))[0] == 200
    assert (await client.ask("/status", [other], headers=own))[0] == 200
    await sweeps(client, plugin, 2)

    assert record_of(programs, document).exists()
    await client.announce(other)
    assert not record_of(programs, document).exists()


async def test_tombstone_of_a_job_that_is_not_known_to_have_ended_stays(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """The plugin takes the deletion and the job runs on: it is remembered, whatever the owner asks about."""
    programs = make_server(**LIFETIME)
    programs.start()
    client = ServerClient(session, programs.server_port)

    async def take(_: web.Request, __: object) -> web.Response:
        return web.Response()

    plugin.behaviours["delete"] = take
    document, other = pod(), pod()
    for one in (document, other):
        await client.create(one)
    await client.ask("/delete", document)

    for _ in range(4):
        await sweeps(client, plugin, 1)
        await client.status(other)

    assert record_of(programs, document).exists()


async def test_d6_deletion_that_the_plugin_never_takes_is_given_up(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """A plugin that fails to cancel what has ended: once its pod has left Kubernetes its record goes, later."""
    programs = make_server(**LIFETIME)
    programs.start()
    client = ServerClient(session, programs.server_port)
    document = pod()
    await client.create(document)
    plugin.end(uid_of(document), 0)
    plugin.behaviours["delete"] = cut
    await client.ask("/delete", document)
    await client.wait_ended(document)

    async def is_gone() -> bool:
        await client.announce()
        return not record_of(programs, document).exists()

    assert await until_async(is_gone, deadline_s=10)
