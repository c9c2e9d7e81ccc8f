"""How often Kubernetes is asked about callers, and what happens when it cannot be asked."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from interlink.kube.client import KubeClient
from interlink.kube.credentials import Credentials
from interlink.kube.errors import Unavailable
from interlink.kubelet.endpoint import guarding
from interlink.kubelet.endpoint.authenticating import User
from interlink.kubelet.endpoint.authorising import Demand
from interlink.kubelet.endpoint.remembering import Memory
from interlink.kubelet.endpoint.reviewing import Reviewer
from interlink.sdk import hosting
from tests.unit.small_server import serving

METRICS = Demand(verb="get", subresources=("metrics",))
PODS = Demand(verb="get", subresources=("pods", "proxy"))
USER = User(name="u")


class Kubernetes:
    """Knows the token `good`; allows the subresources in `allowed`; answers `status` to everything if it is set."""

    def __init__(self) -> None:
        self.allowed = {"metrics"}
        self.asked: list[str] = []
        self.status = 0
        self.body: bytes = b""

    async def __call__(self, request: web.Request) -> web.Response:
        spec = json.loads(await request.read())["spec"]
        self.asked.append(spec.get("token") or spec["resourceAttributes"]["subresource"])
        if self.status:
            return web.Response(status=self.status, body=self.body)
        if "token" in spec:
            return web.json_response({"status": {"authenticated": spec["token"] == "good", "user": {"username": "u"}}})
        return web.json_response({"status": {"allowed": self.asked[-1] in self.allowed}})


@asynccontextmanager
async def reviewing(kubernetes: Kubernetes) -> AsyncIterator[Reviewer]:
    async with serving(kubernetes) as url, KubeClient(Credentials(url, None, None)) as client:
        yield Reviewer(client, "vk")


async def test_a_token_is_asked_about_once() -> None:
    """Good and bad ones alike, for two minutes."""
    kubernetes = Kubernetes()
    async with reviewing(kubernetes) as reviewer:
        found = [await reviewer.user_of(token) for token in ("good", "good", "bad", "bad")]

    assert found == [USER, USER, None, None]
    assert kubernetes.asked == ["good", "bad"]


async def test_a_right_is_asked_about_once_and_proxy_comes_last() -> None:
    """The finer right is tried first; the answers are kept."""
    kubernetes = Kubernetes()
    kubernetes.allowed = {"proxy"}
    async with reviewing(kubernetes) as reviewer:
        found = [await reviewer.may(USER, PODS), await reviewer.may(USER, PODS), await reviewer.may(USER, METRICS)]

    assert found == [True, True, False]
    assert kubernetes.asked == ["pods", "proxy", "metrics"]


@pytest.mark.parametrize(("status", "body"), [(500, b""), (200, b"words")])
async def test_no_answer_is_no_answer(status: int, body: bytes) -> None:
    """It is neither yes nor no, and is not kept."""
    kubernetes = Kubernetes()
    kubernetes.status, kubernetes.body = status, body
    async with reviewing(kubernetes) as reviewer:
        with pytest.raises(Unavailable):
            await reviewer.user_of("good")
        kubernetes.status = 0
        assert await reviewer.user_of("good") == USER


@pytest.mark.parametrize(
    ("path", "token", "away", "answer"),
    [
        ("/metrics", "good", False, 200),
        ("/metrics", "", False, 401),
        ("/metrics", "bad", False, 401),
        ("/healthz", "good", False, 403),
        ("/nothing", "", False, 401),
        ("/metrics", "good", True, 401),
    ],
)
async def test_the_guard_answers(path: str, token: str, away: bool, answer: int) -> None:
    """401 for who is not known, 403 for who may not; a token that cannot be checked is not known."""
    kubernetes = Kubernetes()
    kubernetes.status = 503 if away else 0
    async with reviewing(kubernetes) as reviewer:
        assert await asked(reviewer, path, token) == answer


async def test_rights_that_cannot_be_asked_for_are_an_error() -> None:
    """500: the caller is known, and may come again."""
    kubernetes = Kubernetes()
    async with reviewing(kubernetes) as reviewer:
        await reviewer.user_of("good")
        kubernetes.status = 503
        assert await asked(reviewer, "/metrics", "good") == 500


async def asked(reviewer: Reviewer, path: str, token: str) -> int:
    app = hosting.application([], readiness=list, guard=guarding.guard(reviewer))
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
            return response.status
    finally:
        await runner.cleanup()


def test_an_answer_is_forgotten_in_time() -> None:
    """And the oldest when there are too many."""
    now = [0.0]
    memory: Memory[str, int | None] = Memory(size=2, now=lambda: now[0])
    memory.keep("a", None, for_s=5)
    assert memory.recall("a") == (None,)
    now[0] = 5.0
    assert memory.recall("a") is None

    for key in "bcd":
        memory.keep(key, 1, for_s=5)
    assert [memory.recall(key) for key in "bcd"] == [None, (1,), (1,)]
