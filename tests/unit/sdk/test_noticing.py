"""The status question that may wait for news, over real HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web

from interlink.model.pods import Pod
from interlink.sdk import addresses, noticing, serving
from interlink.sdk.client import PluginClient, Statuses
from interlink.sdk.errors import OutcomeUnknown, SDKError
from interlink.sdk.transport import Link
from interlink.wire.messages import JobStatus
from tests.unit.builders import pod
from tests.unit.small_server import serving as serving_handler


class Deaf:
    """A plugin that notices nothing by itself."""

    def __init__(self) -> None:
        self.job_id = "1"
        self.looks = 0

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        self.looks += 1
        return [JobStatus(uid=pod.uid, job_id=self.job_id) for pod in pods]


class Attentive(Deaf):
    """Has news whenever a test rings, whether the jobs look another way or not."""

    def __init__(self) -> None:
        super().__init__()
        self.mark = 1
        self.rung = asyncio.Condition()
        self.waiting = asyncio.Event()

    async def news(self, since: str, within_s: float) -> str:
        async with self.rung:
            if within_s:
                self.waiting.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self.rung.wait_for(lambda: str(self.mark) != since)
            return str(self.mark)

    async def ring(self, job_id: str) -> None:
        async with self.rung:
            self.job_id = job_id
            self.mark += 1
            self.rung.notify_all()


@contextlib.asynccontextmanager
async def asking(plugin: Any) -> AsyncIterator[PluginClient]:
    runner = web.AppRunner(serving.application(plugin))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = PluginClient(Link(addresses.parse(f"http://127.0.0.1:{runner.addresses[0][1]}", None, key="t"), peer="p"))
    try:
        yield client
    finally:
        async with asyncio.timeout(5):
            await runner.cleanup()
        await client.close()


@pytest.mark.parametrize(
    ("values", "wait_s"),
    [
        ([], 0),
        (["wait=2"], 2),
        (["respond-async, wait=10"], 10),
        (["respond-async", "wait=10"], 10),
        (['WAIT = "3"; x=1'], 3),
        (["wait=99999"], noticing.LONGEST_WAIT_S),
        (["wait=-1"], 0),
        (["wait=1.5"], 0),
        (["wait=ten"], 0),
        (["await=5"], 0),
        (["wait"], 0),
    ],
)
def test_how_long_an_asker_would_wait(values: list[str], wait_s: float) -> None:
    """RFC 7240: whole seconds, among other preferences; what cannot be read is ignored."""
    assert noticing.wait_asked_s(values) == wait_s


async def test_the_first_answer_comes_at_once() -> None:
    """Without a tag there is nothing to wait for."""
    async with asking(Attentive()) as client:
        first = await client.status([pod("a")], wait_s=60)

    assert [answer.uid for answer in first.answers] == ["a"]
    assert first.tag
    assert not first.has_waited


async def test_news_end_the_wait() -> None:
    """The answer is looked up after the news, once."""
    plugin = Attentive()
    async with asking(plugin) as client:
        first = await client.status([pod("a")])
        question = asyncio.create_task(client.status([pod("a")], tag=first.tag, wait_s=60))
        async with asyncio.timeout(10):
            await plugin.waiting.wait()
            assert plugin.looks == 1
            await plugin.ring("2")
            second = await question

    assert [answer.job_id for answer in second.answers] == ["2"]
    assert (second.has_waited, second.is_unchanged, plugin.looks) == (True, False, 2)
    assert second.tag != first.tag


async def test_nothing_new_is_not_repeated() -> None:
    """After the time, and after news that change no answer."""
    plugin = Attentive()
    async with asking(plugin) as client:
        first = await client.status([pod("a")])
        same = await client.status([pod("a")], tag=first.tag, wait_s=1)
        assert same == Statuses(tag=first.tag, has_waited=True, is_unchanged=True)

        await plugin.ring("1")
        rung = await client.status([pod("a")], tag=same.tag, wait_s=60)

    assert (rung.is_unchanged, rung.has_waited) == (True, True)
    assert rung.tag != first.tag


async def test_another_question_has_another_answer() -> None:
    """The tag of an answer about other pods does not hide these."""
    plugin = Attentive()
    async with asking(plugin) as client:
        first = await client.status([pod("a")])
        await plugin.ring("1")
        other = await client.status([pod("b")], tag=first.tag, wait_s=60)

    assert [answer.uid for answer in other.answers] == ["b"]


@pytest.mark.parametrize("tag", ['"someone-elses"', "*", 'W/"1.0123456789abcdef"', '""', '".0123456789abcdef"'])
async def test_a_tag_of_somebody_else_is_no_tag(tag: str) -> None:
    """Nobody waits for it, and it is answered in full."""
    async with asking(Attentive()) as client:
        answer = await client.status([pod("a")], tag=tag, wait_s=60)

    assert [status.uid for status in answer.answers] == ["a"]


async def test_a_plugin_that_notices_nothing_is_asked_as_ever() -> None:
    """No tag, no wait, whatever is asked."""
    async with asking(Deaf()) as client:
        answer = await client.status([pod("a")], tag='"1.0123456789abcdef"', wait_s=60)

    assert [status.uid for status in answer.answers] == ["a"]
    assert (answer.tag, answer.has_waited) == ("", False)


async def test_a_waiting_question_does_not_delay_the_end() -> None:
    """Of the plugin: the question is ended, not waited for."""
    plugin = Attentive()
    async with asyncio.timeout(20), asking(plugin) as client:
        first = await client.status([pod("a")])
        question = asyncio.create_task(client.status([pod("a")], tag=first.tag, wait_s=60))
        await plugin.waiting.wait()

    with pytest.raises(SDKError):
        await question


async def test_unchanged_is_no_answer_to_a_question_without_a_tag() -> None:
    """304 to somebody who has nothing: an unknown outcome, which changes no pod."""

    async def unchanged(_: web.Request) -> web.Response:
        return web.Response(status=304)

    async with serving_handler(unchanged) as url:
        client = PluginClient(Link(addresses.parse(url, None, key="t"), peer="plugin"))
        with pytest.raises(OutcomeUnknown, match="304"):
            await client.status([pod("a")])
        await client.close()
