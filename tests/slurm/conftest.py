"""A real Slurm for the whole run, and a plugin of its own for each test."""

import contextlib
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from interlink.testing import Cluster
from interlink.testing.errors import UnavailableError
from interlink.testing.programs import Programs
from interlink.testing.slurm import SlurmSite
from tests.support.slurm import Bench


@pytest.fixture(scope="session")
def site() -> Iterator[SlurmSite]:
    """Two nodes, no accounting; tests may kill its parts and start them again."""
    with _open(nodes=2, options={"MinJobAge": 300}) as found:
        yield found


@pytest.fixture(scope="session")
def accounted_site() -> Iterator[SlurmSite]:
    """Two nodes, with slurmdbd, and a controller that forgets ended jobs after two seconds."""
    with _open(nodes=2, has_accounting=True, options={"MinJobAge": 2}) as found:
        yield found


@contextlib.contextmanager
def _open(**arguments: object) -> Iterator[SlurmSite]:
    try:
        with SlurmSite(**arguments) as found:  # type: ignore[arg-type]  # passed on as they are
            yield found
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def stopped_programs(tmp_path: Path, cluster: Cluster, node_name: str, site: SlurmSite) -> Iterator[Programs]:
    """The Slurm plugin, server and virtual kubelet, for a test that starts them in its own way."""
    site.await_idle()
    programs = Programs(tmp_path, cluster=cluster, node_name=node_name, site=site)
    yield programs
    programs.stop()
    site.cancel_all()
    cluster.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


@pytest.fixture
async def bench(site: SlurmSite) -> AsyncIterator[Bench]:
    """The plugin in this process, on a folder of its own, with shortened waits."""
    folder = Path(site.folder) / f"jobs-{secrets.token_hex(4)}"
    site.await_idle()
    found = Bench(site, folder)
    yield found
    await found.end()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def accounted(accounted_site: SlurmSite) -> AsyncIterator[Bench]:
    folder = Path(accounted_site.folder) / f"jobs-{secrets.token_hex(4)}"
    found = Bench(accounted_site, folder, UseAccounting=True)
    yield found
    await found.end()
    shutil.rmtree(folder, ignore_errors=True)
