"""Plugins as processes for the conformance suite, each on a folder of its own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from interlink.sdk.addresses import Address
from interlink.sdk.conformance.subject import Options
from interlink.testing import ports
from interlink.testing.waiting import until
from tests.support.jobs import end_jobs
from tests.support.kept_plugin import kept, restarting


class Conformer:
    """A plugin that is about to be looked at; its jobs are in `jobs`."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self.folder = folder
        self.jobs = folder / "jobs"
        self.address = Address("http", "127.0.0.1", ports.free())
        self.options = Options()
        self.running = running

    def start(self, argv: Sequence[str], environ: Mapping[str, str]) -> Address:
        """Where it listens, once it does."""
        pid_file = self.running.enter_context(kept(argv, self.folder, environ))
        log = self.folder / "plugin.log"
        assert until(lambda: not ports.is_free(self.address.port), deadline_s=30), log.read_text()
        self.options = Options(restart=restarting(pid_file))
        return self.address


@pytest.fixture(scope="module")
def conformer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conformer]:
    with ExitStack() as running:
        found = Conformer(tmp_path_factory.mktemp("conformance"), running)
        running.callback(end_jobs, found.jobs)
        yield found


@pytest.fixture(scope="module")
def interlink_options(conformer: Conformer, interlink_plugin: Address) -> Options:
    return conformer.options
