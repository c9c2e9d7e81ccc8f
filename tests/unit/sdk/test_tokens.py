"""A bearer token from a file: who does not show it is not served."""

from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from interlink.model.errors import ConfigurationError
from interlink.sdk import hosting, listening, tokens
from interlink.sdk.addresses import Address

LOOPBACK = Address("http", "127.0.0.1", 0)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("s3cr3t\n")
    return file


async def ask(file: Path, headers: Mapping[str, str], path: str = "/x") -> int:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = hosting.application([web.get("/x", answer)], readiness=list, guard=tokens.guard(file))
    async with (
        hosting.serving(app, LOOPBACK) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        session.get(path, headers=headers) as response,
    ):
        return response.status


@pytest.mark.parametrize("shown", ["Bearer s3cr3t", "bearer  s3cr3t "])
async def test_who_shows_the_token_is_served(token_file: Path, shown: str) -> None:
    """Blanks and the case of the scheme do not count, and neither does a newline at the end of the file."""
    assert await ask(token_file, {"Authorization": shown}) == 200


@pytest.mark.parametrize(
    "shown", ["", "s3cr3t", "Bearer", "Bearer s3cr3", "Bearer s3cr3t2", "Basic s3cr3t", "Bearer ä"]
)
async def test_who_does_not_is_refused(token_file: Path, shown: str) -> None:
    """Routes that do not exist and metrics included."""
    headers = {"Authorization": shown} if shown else {}

    assert [await ask(token_file, headers, path) for path in ("/x", "/no", "/metrics")] == [401, 401, 401]


async def test_whether_the_program_lives_may_be_asked_by_everybody(token_file: Path) -> None:
    """A service manager has no token."""
    assert [await ask(token_file, {}, path) for path in ("/healthz", "/readyz")] == [200, 200]


async def test_a_new_token_counts_at_once(token_file: Path) -> None:
    """The file is read for each request."""
    token_file.write_text("new")

    assert await ask(token_file, {"Authorization": "Bearer new"}) == 200
    assert await ask(token_file, {"Authorization": "Bearer s3cr3t"}) == 401


@pytest.mark.parametrize("content", [None, "", "\n"])
async def test_without_a_token_nobody_is_served(token_file: Path, content: str | None) -> None:
    """A file that is gone or empty opens nothing; callers are told to come later."""
    token_file.unlink()
    if content is not None:
        token_file.write_text(content)

    assert await ask(token_file, {"Authorization": "Bearer "}) == 503


def test_a_start_without_a_token_is_a_mistake(tmp_path: Path) -> None:
    """Named by its key."""
    with pytest.raises(ConfigurationError, match=r"TokenFile: cannot read the token file .*: No such file"):
        listening.at("http://127.0.0.1:1", token_file=tmp_path / "no")
