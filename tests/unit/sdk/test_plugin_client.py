"""The server's side of a plugin in any language: its answers, whole and broken."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from msgspec import Raw

from interlink.sdk import addresses, client
from interlink.sdk.client import PluginClient, Statuses
from interlink.sdk.errors import NotFound, OutcomeUnknown, SDKError
from interlink.sdk.transport import Link
from interlink.wire.messages import Job, LogRequest, RetrievedPodData
from tests.unit.builders import pod
from tests.unit.small_server import serving

REQUEST = RetrievedPodData(pod=Raw(b"{}"))


class Plugin:
    """Answers everything with one body; remembers what was asked."""

    def __init__(self, body: bytes | str, status: int = 200) -> None:
        self._body = body.encode() if isinstance(body, str) else body
        self._status = status
        self.asked: list[tuple[str, str, bytes]] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.asked.append((request.method, request.path, await request.read()))
        return web.Response(status=self._status, body=self._body)


@contextlib.asynccontextmanager
async def client_of(plugin: Plugin) -> AsyncIterator[PluginClient]:
    async with serving(plugin) as url:
        found = PluginClient(Link(addresses.parse(url, None, key="test"), peer="plugin"))
        try:
            yield found
        finally:
            await found.close()


@pytest.mark.parametrize(
    "body", ['{"PodUID": "u", "PodJID": "42"}', '[{"PodUID": "u", "PodJID": "42"}]', '{"PodJID": "42", "more": 1}']
)
async def test_a_create_answers_with_the_job_id(body: str) -> None:
    """As an object or a list of one."""
    async with client_of(Plugin(body)) as found:
        assert await found.create(REQUEST) == "42"


@pytest.mark.parametrize("body", ["", "ok", "{}", "[]", '{"PodUID": "u"}', '{"PodJID": ""}', "null", b"\xff"])
async def test_a_create_without_a_job_id_has_an_unknown_outcome(body: str | bytes) -> None:
    """The plugin said yes, so there may be a job: it is asked before anything is sent again."""
    async with client_of(Plugin(body)) as found:
        with pytest.raises(OutcomeUnknown, match="/create"):
            await found.create(REQUEST)


async def test_a_status_asks_for_many_pods_at_once() -> None:
    """One GET with the pods in its body, as the contract has it."""
    plugin = Plugin("[]")
    async with client_of(plugin) as found:
        await found.status([pod("a"), pod("b")])

    method, path, body = plugin.asked[0]
    assert (method, path, [p["metadata"]["uid"] for p in json.loads(body)]) == ("GET", "/status", ["a", "b"])


async def test_a_status_is_read_entry_by_entry() -> None:
    """A broken entry costs no other pod its news."""
    async with client_of(Plugin('[{"UID": "a", "JID": "1"}, 7, {"UID": []}]')) as found:
        statuses = await found.status([pod("a")])
        good, bad = statuses.answers, statuses.unreadable

    assert [status.job_id for status in good] == ["1"]
    assert len(bad) == 2


@pytest.mark.parametrize("body", ["null", "", "[]"])
async def test_a_status_may_be_empty(body: str) -> None:
    """It mentions no pod, which proves nothing."""
    async with client_of(Plugin(body)) as found:
        assert await found.status([pod()]) == Statuses()


@pytest.mark.parametrize("body", ["ok", "{}", '{"UID": "a"}', "[", b"\xff"])
async def test_a_status_that_is_no_list_says_nothing(body: str | bytes) -> None:
    """About no pod at all, so it is an error."""
    async with client_of(Plugin(body)) as found:
        with pytest.raises(OutcomeUnknown, match="/status"):
            await found.status([pod()])


async def test_jobs_are_asked_in_our_own_dialect() -> None:
    """Every job that carries our tag."""
    async with client_of(Plugin('[{"tag": "t", "job_id": "1", "node": "n", "is_alive": true}]')) as found:
        assert await found.jobs() == [Job("t", "1", "n", True)]


async def test_an_existing_plugin_does_not_know_the_question() -> None:
    """Which is an answer as well."""
    async with client_of(Plugin("404 page not found", 404)) as found:
        with pytest.raises(NotFound):
            await found.jobs()


@pytest.mark.parametrize("body", ["ok", "{}", "[7]"])
async def test_jobs_that_cannot_be_read_are_an_error_of_the_sdk(body: str) -> None:
    """An existing plugin may answer any path with 200 and a text."""
    async with client_of(Plugin(body)) as found:
        with pytest.raises(SDKError):
            await found.jobs()


async def test_a_log_comes_as_it_is() -> None:
    """Byte by byte."""
    async with client_of(Plugin(b"a\n\xff")) as found, found.logs(LogRequest(pod_uid="u")) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"a\n\xff"


async def test_a_log_that_does_not_begin_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that takes the question and is silent holds nobody for ever."""

    class Silent(Plugin):
        async def __call__(self, request: web.Request) -> web.Response:
            await asyncio.Event().wait()
            return await super().__call__(request)

    monkeypatch.setattr(client, "LOG_TIMEOUT_S", 0.05)
    async with client_of(Silent("")) as found:
        with pytest.raises(OutcomeUnknown, match="did not answer /getLogs in time"):
            async with found.logs(LogRequest(pod_uid="u", container="c")):
                pass
