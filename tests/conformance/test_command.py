"""`interlink conformance` as its user sees it: the report, the machine's form of it, the exit code."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlink.sdk import hosting, serving
from interlink.sdk.addresses import Address
from interlink.sdk.conformance import suite
from interlink.sdk.conformance.check import Level
from tests.support.bad_plugins import BAD, Bad
from tests.support.jobs import end_jobs


def bad(level: Level) -> type[Bad]:
    """A plugin that breaks a promise of this level, and needs no restart for it."""
    levels = {check.name: check.level for check in suite.chosen(())}
    return next(kind for kind in BAD if levels[kind.check] is level and "restart" not in kind.check)


@contextlib.asynccontextmanager
async def served(kind: type[Bad], folder: Path) -> AsyncIterator[str]:
    jobs = folder / "jobs"
    jobs.mkdir()
    try:
        app = serving.application(kind(jobs, folder / "restarted"), guard=kind.guard)
        async with hosting.serving(app, Address("http", "127.0.0.1", 0)) as port:
            yield f"http://127.0.0.1:{port}"
    finally:
        end_jobs(jobs)


async def run(*arguments: str) -> tuple[int | None, str]:
    """The exit code and what was printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "interlink", "conformance", *arguments, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    return process.returncode, output.decode()


@pytest.mark.parametrize(("level", "exit_code", "outcome"), [(Level.MUST, 1, "failed"), (Level.SHOULD, 0, "warning")])
async def test_a_broken_promise_is_reported(tmp_path: Path, level: Level, exit_code: int, outcome: str) -> None:
    """With what was promised and what came instead; only a MUST changes the exit code."""
    kind = bad(level)
    async with served(kind, tmp_path) as url:
        found = await run("--plugin", url, "--output", "json", kind.check)
    code, text = found
    (result,) = [row for row in json.loads(text) if row["check"] == kind.check]

    assert (code, result["outcome"]) == (exit_code, outcome)
    assert kind.says in result["message"]
    assert result["promise"]


async def test_the_report_for_people_says_the_same(tmp_path: Path) -> None:
    """One line for the check, one for the promise, one for what was wrong, and a sum."""
    kind = bad(Level.MUST)
    async with served(kind, tmp_path) as url:
        code, text = await run("--plugin", url, kind.check)

    assert code == 1
    assert kind.says in text
    assert "promise: " in text
    assert text.splitlines()[-1].startswith("1 ")


async def test_the_checks_are_listed_for_machines_too() -> None:
    """Without a plugin that is there."""
    code, text = await run("--plugin", "http://127.0.0.1:9", "--list", "--output", "json")

    assert code == 0
    assert [row["check"] for row in json.loads(text)] == [check.name for check in suite.chosen(())]
