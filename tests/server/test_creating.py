"""Create, once, whatever happens on the way. Names as in the list of failures of the existing server."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import ServerClient, pod, uid_of
from tests.support.strange_plugin import Document, StrangePlugin, cut, serving


async def test_c16_concurrent_creates_share_one_submission(client: ServerClient, plugin: StrangePlugin) -> None:
    """Twenty requests at once for one pod lead to one submission and get the same id."""
    document = pod()

    answers = await asyncio.gather(*(client.create(document) for _ in range(20)))

    assert set(answers) == {answers[0]}
    assert answers[0][0] == 200
    assert plugin.submissions == {uid_of(document): 1}


async def test_c13_repeated_create_answers_from_the_record(client: ServerClient, plugin: StrangePlugin) -> None:
    """Also after a restart of the server."""
    document = pod()

    assert await client.create(document) == await client.create(document)
    assert plugin.calls["create"] == 1


async def test_measured_plugin_accepts_and_answers_are_lost(client: ServerClient, plugin: StrangePlugin) -> None:
    """Each job is found by asking, and is not submitted again."""

    async def accept_and_cut(request: web.Request, data: Document) -> web.Response:
        plugin.accept(data)
        return await cut(request, data)

    plugin.behaviours["create"] = accept_and_cut
    documents = [pod() for _ in range(20)]

    answers = await asyncio.gather(*(client.create(document) for document in documents))

    assert {code for code, _ in answers} == {200}
    assert plugin.submissions == {uid_of(document): 1 for document in documents}


async def test_c10_an_error_that_was_a_success(client: ServerClient, plugin: StrangePlugin) -> None:
    """The plugin answers 500 although the job is there: the job is found."""

    async def accept_and_complain(_: web.Request, data: Document) -> web.Response:
        plugin.accept(data)
        return web.Response(status=500, text="sbatch: Socket timed out")

    plugin.behaviours["create"] = accept_and_complain
    document = pod()

    assert (await client.create(document))[0] == 200
    assert plugin.submissions == {uid_of(document): 1}


@pytest.mark.parametrize(
    "answer",
    [
        web.Response,
        lambda **_: web.Response(text="not JSON"),
        lambda **_: web.json_response({"PodUID": "x"}),
        lambda **_: web.Response(status=500, text="boom"),
    ],
)
async def test_c11_an_answer_that_cannot_be_read(
    client: ServerClient, plugin: StrangePlugin, answer: Callable[..., web.Response]
) -> None:
    """Nothing was submitted, and the answer says nothing: it is tried again until it is answered."""
    attempts = 0

    async def fail_twice(_: web.Request, __: object) -> web.Response | None:
        nonlocal attempts
        attempts += 1
        return answer() if attempts <= 2 else None

    plugin.behaviours["create"] = fail_twice
    document = pod()

    assert (await client.create(document))[0] == 200
    assert plugin.submissions == {uid_of(document): 1}


@pytest.mark.parametrize("status", [200, 201, 202])
@pytest.mark.parametrize("as_list", [False, True])
async def test_every_form_of_answer_that_plugins_give(
    client: ServerClient, plugin: StrangePlugin, status: int, *, as_list: bool
) -> None:
    """Any 2xx, one object or a list of one."""

    async def answer(_: web.Request, data: Document) -> web.Response:
        body = {"PodUID": data["pod"]["metadata"]["uid"], "PodJID": "4711", "metadata": {}}
        return web.json_response([body] if as_list else body, status=status)

    plugin.behaviours["create"] = answer

    code, text = await client.create(pod())

    assert (code, '"PodJID":"4711"' in text) == (200, True)


async def test_rejected_is_definitive_and_word_for_word(client: ServerClient, plugin: StrangePlugin) -> None:
    """The plugin is not asked again, and its text arrives as it was, also later."""
    text = "sbatch: error: invalid partition specified: nosuch <&>"

    async def reject(_: web.Request, __: object) -> web.Response:
        return web.Response(status=400, text=text)

    plugin.behaviours["create"] = reject
    document = pod()

    first, second = await client.create(document), await client.create(document)

    assert first == second
    assert first[0] == 422
    assert text in first[1]
    assert plugin.calls["create"] == 1
    change = await client.change(document)
    assert change is not None
    assert (change["rejected"], change["has_ended"]) == (text, True)


async def test_measured_plugin_killed_during_creates(client: ServerClient, plugin: StrangePlugin) -> None:
    """The creates are held, and answered when it is back."""
    documents = [pod() for _ in range(10)]
    plugin.behaviours |= {"create": cut, "status": cut}
    creates = [asyncio.create_task(client.create(document, hold_s=60)) for document in documents]
    assert await until_async(lambda: _called(plugin, "create", 5), deadline_s=10)
    plugin.behaviours.clear()

    answers = await asyncio.gather(*creates)

    assert {code for code, _ in answers} == {200}
    assert plugin.submissions == {uid_of(document): 1 for document in documents}


async def _called(plugin: StrangePlugin, route: str, times: int) -> bool:
    return plugin.calls[route] >= times


async def test_c7_c8_a_create_goes_on_when_nobody_waits(client: ServerClient, plugin: StrangePlugin) -> None:
    """The caller gives up, the submission does not; its result is told with the changes."""
    gate = asyncio.Event()

    async def slow(_: web.Request, __: object) -> None:
        await gate.wait()

    plugin.behaviours["create"] = slow
    document = pod()
    code, text = await client.create(document, hold_s=0)
    assert (code, "goes on trying" in text) == (503, True)

    gate.set()

    async def has_job() -> bool:
        change = await client.change(document)
        return change is not None and bool(change["status"]["JID"])

    assert await until_async(has_job, deadline_s=10)
    assert plugin.submissions == {uid_of(document): 1}


async def test_c7_server_dies_while_the_plugin_works(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """After the restart the job is found without another create."""

    async def accept_and_kill(_: web.Request, data: Document) -> web.Response:
        server.server.kill()
        return plugin.accept(data)

    plugin.behaviours["create"] = accept_and_kill
    document = pod()
    with pytest.raises(aiohttp.ClientError):
        await client.create(document)
    plugin.behaviours.clear()

    server.server.start()

    async def has_job() -> bool:
        change = await client.change(document)
        return change is not None and bool(change["status"]["JID"])

    assert await until_async(has_job, deadline_s=10)
    assert (await client.create(document))[0] == 200
    assert plugin.submissions == {uid_of(document): 1}


async def test_measured_virtual_kubelet_killed_during_creates(client: ServerClient, plugin: StrangePlugin) -> None:
    """Its connections break; it comes back and repeats them all. None is submitted twice."""
    gate = asyncio.Event()

    async def slow(_: web.Request, __: object) -> None:
        await gate.wait()

    plugin.behaviours["create"] = slow
    documents = [pod() for _ in range(20)]
    creates = [asyncio.create_task(client.create(document)) for document in documents]
    assert await until_async(lambda: _called(plugin, "create", 20), deadline_s=10)
    for create in creates:
        create.cancel()
    await asyncio.gather(*creates, return_exceptions=True)

    repeated = [asyncio.create_task(client.create(document)) for document in documents]
    gate.set()

    assert {code for code, _ in await asyncio.gather(*repeated)} == {200}
    assert plugin.submissions == {uid_of(document): 1 for document in documents}


async def test_measured_server_killed_during_creates(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """Some jobs had been accepted, of others nothing was sent: each pod has its one job when it is asked again."""
    accepted = 0

    async def accept_some_and_kill(_: web.Request, data: Document) -> web.Response:
        nonlocal accepted
        accepted += 1
        if accepted == 10:
            server.server.kill()
        return plugin.accept(data)

    plugin.behaviours["create"] = accept_some_and_kill
    documents = [pod() for _ in range(20)]
    await asyncio.gather(*(client.create(document) for document in documents), return_exceptions=True)
    plugin.behaviours.clear()

    server.server.start()

    answers = await asyncio.gather(*(client.create(document) for document in documents))
    assert {code for code, _ in answers} == {200}
    assert plugin.submissions == {uid_of(document): 1 for document in documents}


def waiting(status: Document) -> tuple[str, str]:
    state = status["containers"][0]["state"]["waiting"]
    return state["reason"], state["message"]


@pytest.fixture
async def given_up(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> tuple[Programs, ServerClient, Document]:
    """A server with a pod whose create an existing virtual kubelet does not wait for any more: the plugin is away."""
    programs = make_server(CreateHold=0.2)
    programs.start()
    client = ServerClient(session, programs.server_port)
    plugin.behaviours |= {"create": cut, "status": cut}
    document = pod()
    assert (await client.ask("/create", {"pod": document}))[0] == 503
    return programs, client, document


async def test_existing_virtual_kubelet_is_told_that_its_pod_waits(
    plugin: StrangePlugin, given_up: tuple[Programs, ServerClient, Document]
) -> None:
    """It has given up waiting; the pod is neither ended nor lost, and the create goes on by itself."""
    _, client, document = given_up

    (status,) = await client.status(document)

    reason, message = waiting(status)
    assert (reason, "closed the connection" in message) == ("SiteUnreachable", True)
    plugin.behaviours.clear()
    await client.until_state(document, "running")
    assert plugin.submissions == {uid_of(document): 1}


async def test_existing_virtual_kubelet_after_a_restart_that_its_create_waited_through(
    plugin: StrangePlugin, given_up: tuple[Programs, ServerClient, Document]
) -> None:
    """The server has not kept what the pod is to be given: it says that it needs the create again, and takes it."""
    programs, client, document = given_up
    programs.server.restart()
    plugin.behaviours.clear()

    (status,) = await client.status(document)

    assert "needs the create again" in waiting(status)[1]
    assert (await client.ask("/create", {"pod": document}))[0] in (200, 503)
    await client.until_state(document, "running")
    assert plugin.submissions == {uid_of(document): 1}


async def test_existing_virtual_kubelet_never_hears_of_an_empty_list(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """It would take that for success: also before the plugin has said anything of a job."""
    document = pod()
    plugin.behaviours["status"] = cut
    await client.create(document)

    (status,) = await client.status(document)

    assert waiting(status)[0] == "ContainerCreating"


async def test_c5_d4_late_create_after_delete_is_refused(client: ServerClient, plugin: StrangePlugin) -> None:
    """A create that comes after the deletion of its pod starts nothing."""
    document = pod()
    assert (await client.ask("/delete", document))[0] == 200

    code, text = await client.create(document)

    assert (code, "has been deleted" in text) == (409, True)
    assert plugin.submissions == {}


async def test_d4_delete_overtakes_a_slow_create(client: ServerClient, plugin: StrangePlugin) -> None:
    """The job that the create makes is ended; that the plugin does not know it yet, asked meanwhile, proves nothing."""
    await client.create(pod())  # so that the plugin is asked every interval
    gate = asyncio.Event()

    async def slow(_: web.Request, __: object) -> None:
        await gate.wait()

    plugin.behaviours["create"] = slow
    document = pod()
    create = asyncio.create_task(client.create(document))
    assert await until_async(lambda: _called(plugin, "create", 2), deadline_s=10)
    assert (await client.ask("/delete", document))[0] == 200
    asked = plugin.calls["status"]
    assert await until_async(lambda: _called(plugin, "status", asked + 3), deadline_s=10)
    gate.set()
    await create

    await client.wait_ended(document)

    assert "terminated" in plugin.jobs[uid_of(document)]


async def test_another_owners_pod_is_refused(
    client: ServerClient, session: aiohttp.ClientSession, server: Programs, plugin: StrangePlugin
) -> None:
    """Neither create nor delete nor logs nor status reach a pod of another cluster or node."""
    document = pod()
    await client.create(document)
    stranger = ServerClient(session, server.server_port, cluster="other")

    assert (await stranger.create(document))[0] == 409
    assert (await stranger.ask("/delete", document))[0] == 409
    assert await stranger.status(document) == []
    assert (await stranger.changes())["changes"] == []
    assert (await stranger.ask("/getLogs", {"PodUID": uid_of(document), "ContainerName": "c"}))[0] == 404
    assert (await client.create({**document, "spec": {**document["spec"], "nodeName": "vk2"}}))[0] == 409
    assert "running" in plugin.jobs[uid_of(document)]


@pytest.mark.parametrize("told", ["", "another-pod"])
async def test_c12_answer_that_names_another_pod(
    client: ServerClient, plugin: StrangePlugin, server: Programs, told: str
) -> None:
    """The job id is the pod's that was asked for, also after a restart; nothing is submitted twice."""

    async def mistaken(_: web.Request, data: Any) -> web.Response:
        plugin.accept(data)
        return web.json_response({"PodUID": told, "PodJID": "j-1"})

    plugin.behaviours["create"] = mistaken
    document = pod()
    first = await client.create(document)
    server.server.restart()
    second = await client.create(document)

    for code, text in (first, second):
        assert (code, json.loads(text)) == (200, {"PodUID": uid_of(document), "PodJID": "j-1"})
    assert plugin.submissions == {uid_of(document): 1}


async def test_limits_answer_with_the_reason(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """Too many pods, too many waiting creates, too large a body: 429 and 413, and the server goes on."""
    programs = make_server(MaxPods=3, MaxWaitingCreates=1, MaxBodyBytes=10_000)
    programs.start()
    client = ServerClient(session, programs.server_port)
    gate = asyncio.Event()

    async def slow(_: web.Request, __: object) -> None:
        await gate.wait()

    plugin.behaviours["create"] = slow
    waiting = asyncio.create_task(client.create(pod()))
    assert await until_async(lambda: _called(plugin, "create", 1), deadline_s=10)
    code, text = await client.create(pod())
    assert (code, "MaxWaitingCreates" in text) == (429, True)
    gate.set()
    assert (await waiting)[0] == 200
    assert [(await client.create(pod()))[0] for _ in range(2)] == [200, 200]
    code, text = await client.create(pod())
    assert (code, "MaxPods" in text) == (429, True)
    code, text = await client.ask("/create", b"x" * 20_000)
    assert (code, "body size 10000 exceeded" in text) == (413, True)
    assert (await client.ask("/healthz", method="GET"))[0] == 200


async def test_pods_with_jobs_are_adopted_above_the_limit(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """Their jobs are there, whatever the limit says; a create after that is refused."""
    programs = make_server(MaxPods=1)
    programs.start()
    client = ServerClient(session, programs.server_port)
    documents = [pod(job_id="job-1"), pod(job_id="job-2")]
    for document in documents:
        plugin.run(uid_of(document))

    answer = await client.announce(*documents)

    assert answer["adopted"] == 2
    assert len((await client.changes())["changes"]) == 2
    assert (await client.create(pod()))[0] == 429


async def test_the_token_that_the_plugin_wants(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """SidecarTokenFile is shown with each call, as the file is then."""
    shown: list[str | None] = []

    async def look(request: web.Request, _: object) -> None:
        shown.append(request.headers.get("Authorization"))

    plugin.behaviours["create"] = look
    token = tmp_path / "token"
    token.write_text("one\n")
    programs = make_server(SidecarTokenFile=str(token))
    programs.start()
    client = ServerClient(session, programs.server_port)

    await client.create(pod())
    token.write_text("two")
    await client.create(pod())

    assert shown == ["Bearer one", "Bearer two"]


async def test_no_environment_value_reaches_the_cache_or_the_log(client: ServerClient, server: Programs) -> None:
    """What a pod's environment holds passes through and is written nowhere."""
    await client.create(pod())

    written = server.server.log.read_text() + "".join(p.read_text() for p in server.cache.glob("*.yaml"))

    assert "s3cr3t-in-the-environment" not in written


async def test_full_disk_promises_nothing_and_recovers(
    client: ServerClient, plugin: StrangePlugin, server: Programs
) -> None:
    """A cache that cannot be written: 503 with the reason, nothing reaches the plugin; then it works by itself."""
    server.cache.rename(server.cache.with_name("away"))
    server.cache.write_text("a file where the directory was")
    document = pod()

    code, text = await client.create(document)

    assert (code, "cannot write" in text) == (503, True)
    assert "cannot write" in await client.ready()
    assert plugin.calls["create"] == 0
    server.cache.unlink()
    assert (await client.create(document))[0] == 200
    assert (server.cache / f"{uid_of(document)}.yaml").exists()
    assert await client.ready() == "ok"


async def test_plugin_started_late(tmp_path_factory: pytest.TempPathFactory, session: aiohttp.ClientSession) -> None:
    """A create that comes before there is a plugin is held until there is one."""
    plugin = StrangePlugin()
    async with serving(plugin):
        port = plugin.port
    programs = Programs(tmp_path_factory.mktemp("late"), plugin_port=port, server_keys={"StatusInterval": 0.1})
    programs.start()
    try:
        document = pod()
        create = asyncio.create_task(ServerClient(session, programs.server_port).create(document, hold_s=60))
        async with serving(plugin, port):
            assert (await create)[0] == 200
        assert plugin.submissions == {uid_of(document): 1}
    finally:
        programs.stop()
