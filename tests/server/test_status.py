"""What the server says of jobs: asked once per interval, never concluded from silence."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
from tests.support.server_client import Document, ServerClient, pod, uid_of
from tests.support.strange_plugin import StrangePlugin


async def rounds(plugin: StrangePlugin, count: int) -> None:
    """Wait until the plugin has been asked so many more times."""
    wanted = plugin.calls["status"] + count

    async def were_asked() -> bool:
        return plugin.calls["status"] >= wanted

    assert await until_async(were_asked, deadline_s=20)


async def created(client: ServerClient, count: int) -> list[Document]:
    documents = [pod() for _ in range(count)]
    answers = await asyncio.gather(*(client.create(document) for document in documents))
    assert {code for code, _ in answers} == {200}
    return documents


async def test_measured_t23_idle_is_one_question_for_all_pods(client: ServerClient, plugin: StrangePlugin) -> None:
    """100 pods are asked for in one call per interval; finished ones are not asked again; with none, nothing is."""
    documents = await created(client, 100)
    await rounds(plugin, 1)
    plugin.asked.clear()
    await rounds(plugin, 3)
    assert {len(uids) for uids in plugin.asked} == {100}

    for document in documents:
        plugin.end(uid_of(document))
    for document in documents:
        await client.wait_ended(document)
    plugin.asked.clear()
    calls = plugin.calls["status"]
    await client.changes(wait_s=1)
    await asyncio.sleep(0)

    assert plugin.calls["status"] == calls


async def test_what_is_said_of_a_running_job_is_passed_on(
    client: ServerClient, server: Programs, plugin: StrangePlugin
) -> None:
    """As long as the plugin says it, in both dialects, and over a restart."""
    (document,) = await created(client, 1)
    remark = {"reason": "Suspended", "message": "Slurm has suspended the job"}

    async def says(expected: Document | None) -> bool:
        change = await client.change(document)
        (status,) = await client.status(document)
        return change is not None and change["status"].get("interlink") == status.get("interlink") == expected

    plugin.remarks[uid_of(document)] = remark
    assert await until_async(lambda: says(remark), deadline_s=20)
    server.server.restart()
    assert await until_async(lambda: says(remark), deadline_s=20)
    plugin.remarks.clear()
    assert await until_async(lambda: says(None), deadline_s=20)


async def test_r14_r15_virtual_kubelets_are_answered_from_memory(client: ServerClient, plugin: StrangePlugin) -> None:
    """A slow plugin delays no answer, and each pod gets its own state."""
    one, two = await created(client, 2)
    plugin.end(uid_of(one), 3)
    await client.wait_ended(one)
    gate = asyncio.Event()

    async def hang(_: web.Request, __: object) -> None:
        await gate.wait()

    plugin.behaviours["status"] = hang

    async with asyncio.timeout(2):
        first, second = await client.status(one, two)

    assert first["containers"][0]["state"]["terminated"]["exitCode"] == 3
    assert "running" in second["containers"][0]["state"]
    gate.set()


@pytest.mark.parametrize(
    "answer",
    [
        lambda **_: web.json_response([]),
        lambda **_: web.Response(text="null"),
        lambda **_: web.Response(text="not JSON"),
        lambda **_: web.json_response({"error": "x"}),
        lambda **_: web.Response(status=500, text="slurmctld is away"),
        lambda **_: web.Response(status=404, text="?"),
    ],
)
async def test_r7_r10_t11_silence_and_errors_change_nothing(
    client: ServerClient, plugin: StrangePlugin, answer: Callable[..., web.Response]
) -> None:
    """Ten pods stay as they are through an empty, absent or wrong answer, and the doubt is visible."""
    documents = await created(client, 10)
    await rounds(plugin, 2)
    before = await client.status(*documents)

    async def silence(_: web.Request, __: object) -> web.Response:
        return answer()

    plugin.behaviours["status"] = silence
    await rounds(plugin, 7)

    assert await client.status(*documents) == before
    assert await client.ready() != "ok"
    plugin.behaviours.clear()

    async def is_ready() -> bool:
        return await client.ready() == "ok"

    assert await until_async(is_ready, deadline_s=20)
    assert await client.metric("interlink_status_doubted") == 0


@pytest.mark.parametrize("containers", [[], None, [{"name": "c", "state": {}}], [{"name": "c"}]])
async def test_r8_r9_a_status_that_says_nothing_proves_nothing(
    client: ServerClient, plugin: StrangePlugin, containers: list[Any] | None
) -> None:
    """An empty container list, null or an empty state: the pod keeps its state, and never counts as ended."""
    (document,) = await created(client, 1)
    await rounds(plugin, 2)

    async def nothing(_: web.Request, data: list[Document]) -> web.Response:
        return web.json_response([plugin.status(p["metadata"]["uid"], containers=containers) for p in data])

    plugin.behaviours["status"] = nothing
    await rounds(plugin, 10)

    change = await client.change(document)
    assert change is not None
    assert (change["has_ended"], "running" in change["status"]["containers"][0]["state"]) == (False, True)


@pytest.mark.parametrize("told", [1, 0])
async def test_r13_fewer_containers_than_the_pod_has(client: ServerClient, plugin: StrangePlugin, told: int) -> None:
    """The end of some is not the end of the job, and what is known of the others stays."""
    document = pod()
    document["spec"]["containers"].append({"name": "d", "image": "i"})
    await client.create(document)
    names = ["c", "d"][:told]

    async def some(_: web.Request, __: object) -> web.Response:
        containers = [{"name": name, "state": {"terminated": {"exitCode": 0}}} for name in names]
        return web.json_response([plugin.status(uid_of(document), containers=containers)])

    plugin.behaviours["status"] = some
    await rounds(plugin, 3)

    change = await client.change(document)
    assert change is not None
    assert not change["has_ended"]
    names.append("d") if told else names.extend(["c", "d"])
    await client.wait_ended(document)


async def test_job_lost_only_after_proof_and_grace(client: ServerClient, plugin: StrangePlugin) -> None:
    """A job that the plugin denies when it is asked for by itself, for the whole grace period, is lost: never done."""
    lost, alive = await created(client, 2)
    await rounds(plugin, 2)
    del plugin.jobs[uid_of(lost)]
    plugin.asked.clear()

    change = await client.wait_ended(lost)

    terminated = change["status"]["containers"][0]["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("JobLost", 137)
    assert [uid_of(lost)] in plugin.asked
    survivor = await client.change(alive)
    assert survivor is not None
    assert survivor["has_ended"] is False


async def test_job_that_comes_back_in_time_is_not_lost(
    plugin: StrangePlugin, make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """The grace period begins anew after the job was seen."""
    programs = make_server(JobLostGrace=3600)
    programs.start()
    client = ServerClient(session, programs.server_port)
    (document,) = await created(client, 1)
    await rounds(plugin, 2)
    state = plugin.jobs.pop(uid_of(document))
    await rounds(plugin, 6)
    plugin.jobs[uid_of(document)] = state
    await rounds(plugin, 4)

    change = await client.change(document)

    assert change is not None
    assert change["has_ended"] is False
    assert "absent_since" not in (programs.cache / f"{uid_of(document)}.yaml").read_text()


async def test_terminal_never_changes(client: ServerClient, plugin: StrangePlugin, server: Programs) -> None:
    """I6: whatever the plugin says later, and whatever dies: the result stays."""
    (document,) = await created(client, 1)
    plugin.end(uid_of(document), 7)
    ended = await client.wait_ended(document)
    on_disk = (server.cache / f"{uid_of(document)}.yaml").read_text()
    assert '"exitCode": 7' in on_disk

    plugin.run(uid_of(document))
    server.server.restart()
    others = await created(client, 1)
    await rounds(plugin, 2)

    later = await client.change(document)
    assert later is not None
    assert later["status"] == ended["status"]
    assert len(others) == 1


async def test_one_bad_entry_does_not_spoil_the_others(client: ServerClient, plugin: StrangePlugin) -> None:
    """Entries that are no statuses are left out; the good ones count."""
    good, bad = await created(client, 2)

    async def mixed(_: web.Request, data: list[Document]) -> web.Response:
        answers: list[Any] = [plugin.status(p["metadata"]["uid"]) for p in data]
        for answer in answers:
            if answer["UID"] == uid_of(bad):
                answer["containers"] = "what"
        return web.json_response([42, None, *answers, {"UID": ["x"]}])

    plugin.behaviours["status"] = mixed
    plugin.end(uid_of(good))

    assert (await client.wait_ended(good))["has_ended"]


async def test_unknown_fields_survive(client: ServerClient, plugin: StrangePlugin) -> None:
    """What a plugin says of a container reaches the virtual kubelet as it was, known or not."""
    (document,) = await created(client, 1)

    async def rich(_: web.Request, data: list[Document]) -> web.Response:
        answer = plugin.status(uid_of(document))
        answer["containers"][0]["allocatedResources"] = {"cpu": "3"}
        answer["containers"][0]["usage"] = {"cpu_seconds": 1.5}
        return web.json_response([answer for _ in data])

    plugin.behaviours["status"] = rich
    await rounds(plugin, 3)

    (status,) = await client.status(document)

    assert status["containers"][0]["allocatedResources"] == {"cpu": "3"}
    assert status["containers"][0]["usage"] == {"cpu_seconds": 1.5}


async def test_plugin_that_answers_only_for_the_first_pod(client: ServerClient, plugin: StrangePlugin) -> None:
    """The existing Python SDK answers pods[0]: that is found out, and pods are asked one by one."""

    async def first_only(_: web.Request, data: list[Document]) -> web.Response:
        return web.json_response([plugin.status(p["metadata"]["uid"]) for p in data[:1]])

    plugin.behaviours["status"] = first_only
    documents = await created(client, 20)
    for number, document in enumerate(documents):
        plugin.end(uid_of(document), number)

    ended = [await client.wait_ended(document) for document in documents]

    codes = [change["status"]["containers"][0]["state"]["terminated"]["exitCode"] for change in ended]
    assert codes == list(range(20))


async def test_plugin_that_answers_only_for_the_first_of_two(client: ServerClient, plugin: StrangePlugin) -> None:
    """Too few to doubt the answer: the second pod is told when it is asked for by itself, and that counts."""

    async def first_only(_: web.Request, data: list[Document]) -> web.Response:
        return web.json_response([plugin.status(p["metadata"]["uid"]) for p in data[:1]])

    plugin.behaviours["status"] = first_only
    one, two = sorted(await created(client, 2), key=uid_of)
    plugin.end(uid_of(two), 7)

    ended = await client.wait_ended(two)

    assert ended["status"]["containers"][0]["state"]["terminated"]["exitCode"] == 7
    assert not (await client.change(one) or {}).get("has_ended")


async def test_plugin_that_fails_for_a_list_of_several(client: ServerClient, plugin: StrangePlugin) -> None:
    """A 500 for a bulk question and answers for single ones: pods are asked one by one."""

    async def singles_only(_: web.Request, data: list[Document]) -> web.Response | None:
        return web.Response(status=500) if len(data) > 1 else None

    plugin.behaviours["status"] = singles_only
    documents = await created(client, 6)
    for document in documents:
        plugin.end(uid_of(document))

    for document in documents:
        await client.wait_ended(document)


async def test_changes_since_a_revision(client: ServerClient, plugin: StrangePlugin) -> None:
    """A long poll returns with what changed and nothing else; another epoch gets everything."""
    one, two = await created(client, 2)
    await rounds(plugin, 2)
    seen = await client.changes()
    assert (len(seen["changes"]), seen["is_complete"]) == (2, True)
    question = asyncio.create_task(client.changes(epoch=seen["epoch"], since=seen["revision"], wait_s=20))
    plugin.end(uid_of(two))

    news = await question

    assert [change["status"]["UID"] for change in news["changes"]] == [uid_of(two)]
    assert news["is_complete"] is False
    assert len((await client.changes(epoch="another", since=10**6))["changes"]) == 2
    assert uid_of(one) != uid_of(two)


async def test_existing_dialect_with_an_empty_list(client: ServerClient, plugin: StrangePlugin) -> None:
    """An empty or null list asks for all; any method is taken."""
    documents = await created(client, 3)
    await rounds(plugin, 2)

    for method in ("GET", "POST"):
        for body in (b"[]", b"null", b""):
            code, text = await client.ask("/status", body, method=method)
            assert code == 200
            assert all(uid_of(document) in text for document in documents)


async def test_node_that_names_itself_sees_its_own_pods_only(client: ServerClient) -> None:
    """Logs and the empty question; an existing virtual kubelet cannot, and sees its cluster's."""
    own, other = pod(node="vk"), pod(node="vk-2")
    for document in (own, other):
        await client.create(document)
    question = {"PodUID": uid_of(other), "ContainerName": "c"}
    named, unnamed = {"InterLink-Node": "vk"}, dict[str, str]()

    logs = [(await client.ask("/getLogs", question, headers=headers))[0] for headers in (named, unnamed)]
    told = [json.loads((await client.ask("/status", [], headers=headers))[1]) for headers in (named, unnamed)]

    assert logs == [404, 200]
    assert [{status["UID"] for status in found} for found in told] == [{uid_of(own)}, {uid_of(own), uid_of(other)}]
    assert (await client.ask("/getLogs", question | {"PodUID": uid_of(own)}, headers=named))[0] == 200


async def test_both_dialects_at_one_server(
    client: ServerClient, session: aiohttp.ClientSession, server: Programs, plugin: StrangePlugin
) -> None:
    """An existing virtual kubelet and ours side by side: each sees and ends its own pods."""
    ours = ServerClient(session, server.server_port, cluster="blue")
    old, new = pod(node="old"), pod(node="new")
    assert (await client.create(old))[0] == 200
    assert (await ours.create(new))[0] == 200
    await ours.announce({**new, "metadata": {**new["metadata"], "annotations": {"JobID": "j"}}}, node="new")
    plugin.end(uid_of(old), 3)

    await client.until_state(old, "terminated")
    told = await ours.changes(node="new")

    assert [change["status"]["UID"] for change in told["changes"]] == [uid_of(new)]
    assert [status["UID"] for status in await client.status()] == [uid_of(old)]
    assert (await client.ask("/delete", old))[0] == 200
    assert "running" in plugin.jobs[uid_of(new)]
    assert (await ours.announce(node="new"))["deleted"] == 1
    assert await until_async(lambda: _is_ended(plugin, new), deadline_s=20)


async def _is_ended(plugin: StrangePlugin, document: Document) -> bool:
    return "terminated" in plugin.jobs[uid_of(document)]


def is_waiting(plugin: StrangePlugin) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return plugin.is_waiting

    return check


async def test_news_are_told_while_the_question_waits(patient: ServerClient, plugin: StrangePlugin) -> None:
    """A plugin that notices an end by itself need not be asked again: the question that waits is answered."""
    one, two = await created(patient, 2)
    assert await until_async(is_waiting(plugin), deadline_s=20)
    questions = plugin.calls["status"]
    plugin.end(uid_of(one))
    await patient.wait_ended(one)

    assert plugin.calls["status"] == questions
    (status,) = await patient.status(two)
    assert "running" in status["containers"][0]["state"]


async def test_a_waiting_question_is_the_one_of_its_interval(patient: ServerClient, plugin: StrangePlugin) -> None:
    """It is not asked more often, whether there are news or not, and creates do not wait for it."""
    documents = await created(patient, 3)
    began, questions = time.monotonic(), plugin.calls["status"]
    for document in documents:
        assert await until_async(is_waiting(plugin), deadline_s=20)
        await created(patient, 1)
        assert plugin.is_waiting
        plugin.end(uid_of(document))
        await patient.wait_ended(document)

    assert plugin.calls["status"] - questions <= (time.monotonic() - began) / 2 + 1


async def test_a_waiting_question_keeps_nobody_from_being_asked_about(
    patient: ServerClient, plugin: StrangePlugin
) -> None:
    """It is given up for a new pod, however long the plugin would keep it."""
    plugin.overstays = True
    await created(patient, 1)
    assert await until_async(is_waiting(plugin), deadline_s=20)
    (new,) = await created(patient, 1)

    async def is_asked_about() -> bool:
        return uid_of(new) in plugin.asked[-1]

    assert await until_async(is_asked_about, deadline_s=20)
    assert plugin.is_waiting


async def test_a_tag_that_is_refused_says_nothing_of_other_questions(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """It is asked again without, and still about all at once."""
    plugin.notices = True

    async def refuse_tags(request: web.Request, _: object) -> web.Response | None:
        return web.Response(status=412) if "If-None-Match" in request.headers else None

    plugin.behaviours["status"] = refuse_tags
    documents = await created(client, 6)
    await rounds(plugin, 4)
    plugin.asked.clear()
    plugin.end(uid_of(documents[0]))
    await client.wait_ended(documents[0])

    assert min(len(uids) for uids in plugin.asked) >= 5
    assert "could not be asked" not in await client.ready()


async def test_a_plugin_that_waits_too_long_hides_no_end(patient: ServerClient, plugin: StrangePlugin) -> None:
    """It is asked again without waiting."""
    plugin.overstays = True
    (document,) = await created(patient, 1)
    assert await until_async(is_waiting(plugin), deadline_s=20)
    plugin.jobs[uid_of(document)] = {"terminated": {"exitCode": 3}}

    await patient.wait_ended(document, deadline_s=60)


async def test_a_plugin_is_not_believed_for_ever_that_nothing_is_new(
    client: ServerClient, plugin: StrangePlugin
) -> None:
    """That nothing is new: now and then it is asked without the tag, and then its answer counts."""
    (document,) = await created(client, 1)

    async def same_as_ever(request: web.Request, data: Any) -> web.Response:
        tag = request.headers.get("If-None-Match")
        if tag:
            return web.Response(status=304, headers={"ETag": tag})
        return web.json_response([plugin.status(pod["metadata"]["uid"]) for pod in data], headers={"ETag": '"same"'})

    plugin.behaviours["status"] = same_as_ever
    await rounds(plugin, 2)
    plugin.end(uid_of(document), 3)
    await client.wait_ended(document)


async def test_an_answer_of_old_is_no_answer_to_a_new_question(client: ServerClient, plugin: StrangePlugin) -> None:
    """The tag is sent for the same pods only, and after an answer that mentioned all of them."""
    plugin.notices = True
    (one,) = await created(client, 1)
    await rounds(plugin, 2)
    assert plugin.tags[-1]
    (two,) = await created(client, 1)
    plugin.tags.clear()
    plugin.asked.clear()
    await rounds(plugin, 3)
    first = next(at for at, uids in enumerate(plugin.asked) if uid_of(two) in uids)
    assert plugin.tags[first] == ""

    del plugin.jobs[uid_of(one)]
    await rounds(plugin, 1)
    plugin.tags.clear()
    await rounds(plugin, 2)
    assert set(plugin.tags[-2:]) == {""}
