"""After a death, and after the cache is lost."""

import asyncio
import shutil

import aiohttp
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import Document, ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin, cut


async def with_jobs(client: ServerClient, count: int) -> list[Document]:
    """Pods as Kubernetes would know them after their creation: with their job ids."""
    documents = [pod() for _ in range(count)]
    answers = await asyncio.gather(*(client.create(document) for document in documents))
    assert {code for code, _ in answers} == {200}
    return [pod(uid_of(d), job_id=f"job-{uid_of(d)[:8]}") for d in documents]


def lose_cache(server: Programs) -> None:
    server.server.kill()
    shutil.rmtree(server.cache)
    server.server.start()


async def test_r1_t02_the_announcement_rebuilds_a_lost_cache(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """50 pods come back with their states by one announcement and one bulk question, and none is submitted."""
    documents = await with_jobs(client, 50)
    plugin.end(uid_of(documents[0]), 5)
    lose_cache(server)
    plugin.calls.clear()

    answer = await client.announce(*documents)

    assert answer["adopted"] == 50
    states = {c["status"]["UID"]: c for c in (await client.changes())["changes"]}
    assert states[uid_of(documents[0])]["has_ended"]
    assert all("running" in states[uid_of(d)]["status"]["containers"][0]["state"] for d in documents[1:])
    assert plugin.calls["create"] == 0
    assert plugin.calls["status"] <= 2


async def test_r1_existing_virtual_kubelet_gets_right_answers_after_a_loss(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """It cannot announce, but its status questions carry the pod with its JobID."""
    documents = await with_jobs(client, 3)
    lose_cache(server)

    statuses = await client.status(*documents)

    assert [s["JID"] for s in statuses] == [f"job-{uid_of(d)[:8]}" for d in documents]
    assert all("running" in s["containers"][0]["state"] for s in statuses)
    assert plugin.calls["create"] == 3


async def test_r4_read_side_is_served_while_the_plugin_is_away(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """After a restart the states are answered from disk at once; what cannot be known yet shows in /readyz."""
    documents = await with_jobs(client, 3)
    plugin.end(uid_of(documents[0]), 4)
    await client.wait_ended(documents[0])
    plugin.behaviours["status"] = cut

    server.server.restart()

    first, *_ = await client.status(*documents)
    assert first["containers"][0]["state"]["terminated"]["exitCode"] == 4

    async def is_told() -> bool:
        return "could not be asked" in await client.ready()

    assert await until_async(is_told, deadline_s=10)


async def test_nothing_is_created_before_the_plugin_has_been_compared(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """With live jobs in the cache and a plugin that does not say what it has, new creates wait."""
    await with_jobs(client, 2)
    plugin.behaviours["status"] = cut
    server.server.restart()
    plugin.calls.clear()

    code, _ = await client.create(pod(), hold_s=1)

    assert code == 503
    assert plugin.calls["create"] == 0
    plugin.behaviours.clear()

    async def is_created() -> bool:
        return plugin.calls["create"] == 1

    assert await until_async(is_created, deadline_s=20)


async def test_measured_s6_pods_force_deleted_while_the_virtual_kubelet_is_down(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """What the list lacks is deleted."""
    documents = await with_jobs(client, 20)

    answer = await client.announce(*documents[:5])

    assert answer["deleted"] == 15
    for document in documents[5:]:
        await client.wait_ended(document)
    assert all("running" in plugin.jobs[uid_of(document)] for document in documents[:5])


async def test_s8_pod_force_deleted_during_its_create(client: ServerClient, plugin: StrangePlugin) -> None:
    """The virtual kubelet died over it and has no job id; the job that its create makes is ended."""
    begun, gate = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request, __: object) -> None:
        begun.set()
        await gate.wait()

    plugin.behaviours["create"] = slow
    document = pod()
    assert (await client.create(document, hold_s=0))[0] == 503
    await begun.wait()

    answer = await client.announce()
    gate.set()

    assert answer["deleted"] == 1
    await client.wait_ended(document)
    assert "running" not in plugin.jobs.get(uid_of(document), {})


async def test_measured_jobs_end_after_a_restart_of_both(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """Both parts are restarted with running pods, then all jobs end: every end is told, in both dialects."""
    documents = await with_jobs(client, 50)
    server.server.restart()

    for document in documents:
        plugin.end(uid_of(document), 3)

    for document in documents:
        await client.wait_ended(document)
    statuses = await client.status(*documents)
    assert {s["containers"][0]["state"]["terminated"]["exitCode"] for s in statuses} == {3}
    assert len(statuses) == 50


async def test_d8_ended_pod_that_left_kubernetes_unseen(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """Collected while the virtual kubelet was down: the plugin is told to clean up, and then the record goes."""
    gone, kept = await with_jobs(client, 2)
    for document in (gone, kept):
        plugin.end(uid_of(document))
        await client.wait_ended(document)

    async def is_forgotten() -> bool:
        await client.announce(kept)
        return not (server.cache / f"{uid_of(gone)}.yaml").exists()

    assert await until_async(is_forgotten, deadline_s=20)
    assert plugin.calls["delete"] == 1
    assert (server.cache / f"{uid_of(kept)}.yaml").exists()


async def test_a_list_that_is_older_than_a_create_deletes_nothing(client: ServerClient, plugin: StrangePlugin) -> None:
    """An announcement made before a pod came does not take the pod's job away."""
    seen = await client.changes()
    (document,) = await with_jobs(client, 1)
    owner = {"cluster": "default", "node": "vk"}
    stale = {"owner": owner, "pods": [], "epoch": seen["epoch"], "revision": seen["revision"]}

    answer = await client.json("/interlink/v1/announce", stale)
    other_life = await client.json("/interlink/v1/announce", stale | {"epoch": "x", "revision": 10**9})

    assert (answer["deleted"], other_life["deleted"]) == (0, 0)
    assert "running" in plugin.jobs[uid_of(document)]


async def test_a_pod_whose_state_has_changed_since_the_list_was_made_is_deleted(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """The server hears of a job's start between the two calls: the pod has left Kubernetes all the same."""
    (document,) = await with_jobs(client, 1)
    seen = await client.changes()
    plugin.end(uid_of(document))
    await client.wait_ended(document)
    stale = {"owner": {"cluster": "default", "node": "vk"}, "pods": [], "epoch": seen["epoch"]}

    answer = await client.json("/interlink/v1/announce", stale | {"revision": seen["revision"]})

    assert answer["deleted"] == 1


async def test_owners_do_not_touch_each_other(
    client: ServerClient, session: aiohttp.ClientSession, server: Programs, plugin: StrangePlugin
) -> None:
    """Two virtual kubelets, one of them with an empty list: only its own pods go."""
    mine = (await with_jobs(client, 1))[0]
    theirs = pod(node="vk2")
    stranger = ServerClient(session, server.server_port, cluster="c2")
    assert (await stranger.create(theirs))[0] == 200

    assert (await stranger.announce(node="vk2"))["deleted"] == 1
    await stranger.announce(node="vk")

    assert "running" in plugin.jobs[uid_of(mine)]
    assert await stranger.changes(node="vk") | {"epoch": ""} == {
        "epoch": "",
        "revision": 0,
        "changes": [],
        "is_complete": True,
    }


async def test_t23_nothing_is_asked_while_nothing_happens(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """With no live pod, jobs without a pod are looked for only while some may be left: after pods have come or gone."""
    document = pod()
    await client.create(document)
    plugin.end(uid_of(document))
    await client.wait_ended(document)
    await client.announce(document)

    async def is_asked() -> bool:
        asked = plugin.calls.total()

        async def is_more() -> bool:
            return plugin.calls.total() > asked

        return await until_async(is_more, deadline_s=3)

    while await is_asked():
        assert plugin.calls["jobs"] <= 5
    looks = plugin.calls["jobs"]

    await client.announce()
    await client.announce()
    assert await is_asked()
    assert plugin.calls["jobs"] > looks > 1


async def test_orphans_are_cancelled_after_two_sightings(client: ServerClient, plugin: StrangePlugin) -> None:
    """A job with our tag and no pod ends once its owner has announced; before, and of others, nothing is touched."""
    orphan = "0f0f0f0f-0000-4000-8000-000000000001"
    plugin.run(orphan)
    assert plugin.calls["jobs"] == 0
    await client.announce()

    async def is_cancelled() -> bool:
        return "terminated" in plugin.jobs[orphan]

    assert await until_async(is_cancelled, deadline_s=10)
    assert plugin.calls["jobs"] >= 2
    assert await client.metric('interlink_reconciled_total{result="orphan"}') == 1


async def test_an_orphan_that_cannot_be_cancelled_is_in_nobodys_way(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """The others are cancelled all the same."""
    orphans = [f"0f0f0f0f-0000-4000-8000-00000000000{number}" for number in range(3)]
    for orphan in orphans:
        plugin.run(orphan)

    async def refuse_first(_: web.Request, data: Document) -> web.Response | None:
        return web.Response(status=500) if data["metadata"]["uid"] == orphans[0] else None

    plugin.behaviours["delete"] = refuse_first
    await client.announce()

    async def are_cancelled() -> bool:
        return all("terminated" in plugin.jobs[orphan] for orphan in orphans[1:])

    assert await until_async(are_cancelled, deadline_s=10)
    plugin.behaviours.clear()

    async def is_cancelled() -> bool:
        return "terminated" in plugin.jobs[orphans[0]]

    assert await until_async(is_cancelled, deadline_s=20)


async def test_plugin_without_our_dialect_is_never_swept(client: ServerClient, plugin: StrangePlugin) -> None:
    """A plugin that cannot tell its jobs answers 404, and all else works."""
    plugin.has_jobs_route = False
    (document,) = await with_jobs(client, 1)
    await client.announce(document)
    plugin.end(uid_of(document))

    assert (await client.wait_ended(document))["has_ended"]
