"""Objects are asked for once by all pods that come together, and never shown older than the pod."""

import asyncio
from typing import Any

import msgspec
import pytest

from interlink.kube.errors import KubeError, NotFound, Refused, Unavailable
from interlink.kubelet.errors import MissingInput
from interlink.kubelet.inputs.sources import DEFAULT_TOKEN_LIFE_S, KubeSource
from interlink.model.pods import ServiceAccountTokenProjection
from tests.unit.builders import pod
from tests.unit.virtual_time import in_virtual_time


class Client:
    """Answers each GET after a second with a number that grows; or raises."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked: list[str] = []

    async def get(self, path: str, **_: str) -> bytes:
        self.asked.append(path)
        number = len(self.asked)
        await asyncio.sleep(1)
        if self.errors:
            raise self.errors.pop(0)
        return str(number).encode()


def source(client: Client) -> KubeSource:
    return KubeSource(client)  # type: ignore[arg-type]


def now() -> float:
    return asyncio.get_running_loop().time()


@in_virtual_time
async def test_pods_that_come_together_ask_once() -> None:
    """For each object."""
    client = Client()
    objects = source(client).since(now())

    found = await asyncio.gather(*(objects.config_map("ns", "a") for _ in range(5)), objects.secret("ns", "a"))

    assert found == [b"1"] * 5 + [b"2"]
    assert len(client.asked) == 2


@in_virtual_time
async def test_a_pod_that_comes_later_is_not_shown_what_was_asked_before() -> None:
    """The object may have been changed for its sake."""
    client = Client()
    known = source(client)
    await known.since(now()).config_map("ns", "a")
    seen_at = now()
    await asyncio.sleep(1)

    assert await known.since(seen_at).config_map("ns", "a") == b"2"
    assert await known.since(seen_at - 1).config_map("ns", "a") == b"2"


@in_virtual_time
async def test_an_answer_is_used_for_ten_seconds() -> None:
    """A pod that is tried again later sees what has been changed meanwhile."""
    client = Client()
    known = source(client)
    seen_at = now()
    await known.since(seen_at).config_map("ns", "a")
    await asyncio.sleep(11)

    assert await known.since(seen_at).config_map("ns", "a") == b"2"


@in_virtual_time
async def test_absence_and_errors_are_not_kept() -> None:
    """What is waited for is asked for each time."""
    client = Client(NotFound("no"), Unavailable("away"))
    objects = source(client).since(now())

    assert await objects.config_map("ns", "a") is None
    with pytest.raises(MissingInput, match="away"):
        await objects.config_map("ns", "a")
    assert await objects.config_map("ns", "a") == b"3"


@in_virtual_time
async def test_one_who_goes_away_does_not_take_the_answer_from_the_others() -> None:
    """Its question is everybody's."""
    client = Client()
    objects = source(client).since(now())
    first = asyncio.create_task(objects.config_map("ns", "a"))
    second = asyncio.create_task(objects.config_map("ns", "a"))
    await asyncio.sleep(0.5)
    first.cancel()

    assert await second == b"1"


# --- tokens ----------------------------------------------------------------------------------------------------------


class Tokens:
    """Answers a TokenRequest, or raises; remembers what was asked."""

    def __init__(self, error: KubeError | None = None) -> None:
        self._error = error
        self.asked: list[tuple[str, Any]] = []

    async def create(self, path: str, body: bytes) -> bytes:
        self.asked.append((path, msgspec.json.decode(body)))
        if self._error is not None:
            raise self._error
        return b'{"status": {"token": "t0ken"}}'


async def asked_for(wanted: ServiceAccountTokenProjection, **spec: Any) -> tuple[str, Any]:
    tokens = Tokens()
    assert await KubeSource(tokens).token(pod(**spec), wanted) == "t0ken"  # type: ignore[arg-type]
    [question] = tokens.asked
    return question


async def test_a_token_is_bound_to_its_pod() -> None:
    """It ends with the pod; audience and lifetime are those that the pod asks for."""
    wanted = ServiceAccountTokenProjection(path="t", audience="vault", expiration_seconds=700)

    path, body = await asked_for(wanted, serviceAccountName="sa")

    assert path == "/api/v1/namespaces/ns/serviceaccounts/sa/token"
    assert (body["kind"], body["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert body["spec"] == {
        "audiences": ["vault"],
        "expirationSeconds": 700,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-1"},
    }


async def test_a_token_without_wishes_is_the_api_servers() -> None:
    """For its own audience, for an hour as a kubelet asks it, of the account `default`."""
    path, body = await asked_for(ServiceAccountTokenProjection(path="t"))

    assert path.endswith("/serviceaccounts/default/token")
    assert (body["spec"]["audiences"], body["spec"]["expirationSeconds"]) == ([], DEFAULT_TOKEN_LIFE_S)


@pytest.mark.parametrize(
    ("error", "text"),
    [(NotFound("no"), "service account 'default' not found in namespace 'ns'"), (Refused("no"), "no")],
)
async def test_a_token_that_cannot_be_had_is_waited_for(error: KubeError, text: str) -> None:
    """The pod asks again."""
    with pytest.raises(MissingInput, match=text):
        await KubeSource(Tokens(error)).token(pod(), ServiceAccountTokenProjection(path="t"))  # type: ignore[arg-type]
