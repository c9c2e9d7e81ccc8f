"""Each check catches the plugin that breaks its promise."""

from pathlib import Path

import pytest

from interlink.sdk import hosting, serving
from interlink.sdk.addresses import Address
from interlink.sdk.conformance import suite
from interlink.sdk.conformance.check import Level
from interlink.sdk.conformance.subject import Options, Subject
from interlink.sdk.conformance.suite import Outcome
from interlink.sdk.transport import Link
from tests.support.bad_plugins import BAD, Bad
from tests.support.jobs import end_jobs


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: kind.__name__)
async def test_a_fault_is_caught_by_the_check_that_is_meant(kind: type[Bad], tmp_path: Path) -> None:
    """And by what it says one knows what is wrong."""
    jobs, was_restarted = tmp_path / "jobs", tmp_path / "restarted"
    jobs.mkdir()
    plugin = kind(jobs, was_restarted)
    check = next(check for check in suite.chosen(()) if check.name == kind.check)
    options = Options(start_s=5, restart=f"touch {was_restarted}")
    app = serving.application(plugin, guard=kind.guard)
    try:
        async with hosting.serving(app, Address("http", "127.0.0.1", 0)) as port:
            link = Link(Address("http", "127.0.0.1", port), peer="plugin")
            result = await suite.run_one(Subject(link, options), check)
            await link.close()
    finally:
        end_jobs(jobs)

    assert kind.says in result.message
    assert result.outcome is (Outcome.FAILED if check.level is Level.MUST else Outcome.WARNING)


def test_every_check_has_a_plugin_that_it_catches() -> None:
    """A new check comes with a fault."""
    assert sorted(kind.check for kind in BAD) == sorted(check.name for check in suite.chosen(()))
