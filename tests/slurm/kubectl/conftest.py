"""Pods of kubectl on a real Slurm, each case without accounting and with it: plugin, server and virtual kubelet are
shared by the tests of a module on one site."""

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlink.testing import Cluster
from interlink.testing.programs import Programs
from interlink.testing.slurm import SlurmSite
from tests.support.pods import Pods
from tests.support.slurm_commands import Commands

Configure = Callable[..., None]
ONCE = pytest.mark.parametrize("slurm", ["accounted_site"], indirect=True, scope="module")
"""Of tests in which nothing depends on accounting."""
PREFIX = "export LD_PRELOAD=libm.so.6 SLURM_MPI_TYPE=pmix FROM_THE_SITE=here"


@pytest.fixture(scope="module", params=["site", "accounted_site"])
def slurm(request: pytest.FixtureRequest) -> SlurmSite:
    """Where the pods run."""
    found: SlurmSite = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(tmp_path_factory.mktemp("slurm") / "commands")


@pytest.fixture(scope="module")
def shared(
    cluster: Cluster, slurm: SlurmSite, commands: Commands, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Programs]:
    """Running programs. Jobs get variables of their host, one of which is on the site's list."""
    slurm.await_idle()
    keys = {"CommandPrefix": PREFIX, "PassEnvironment": ["FROM_THE_SITE"], **commands.keys}
    name = f"slurm-{secrets.token_hex(3)}"
    folder = tmp_path_factory.mktemp("programs")
    with Programs(folder, cluster=cluster, node_name=name, site=slurm, plugin_keys=keys) as programs:
        yield programs
    slurm.cancel_all()
    cluster.kubectl("delete", "node", name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def node_name(shared: Programs) -> str:
    return shared.node_name


@pytest.fixture
def stopped_programs(shared: Programs) -> Programs:
    """They run all the same."""
    return shared


@pytest.fixture
def programs(shared: Programs) -> Programs:
    return shared


@pytest.fixture
def pods(cluster: Cluster, namespace: str, shared: Programs, tmp_path: Path) -> Iterator[Pods]:
    """Pods of this test; they go when it ends, which is not waited for."""
    found = Pods(cluster, namespace, shared.node_name, ledger=tmp_path / "ledger")
    yield found
    found.close()
    found.kubectl("delete", "pods", "--all", "--grace-period=1", "--wait=false")


@pytest.fixture
def configured(shared: Programs) -> Iterator[Configure]:
    """Starts the plugin with other keys for the rest of the test."""
    file = shared.folder / "plugin.yaml"
    before = file.read_text()

    def configure(**keys: object) -> None:
        file.write_text(json.dumps(json.loads(before) | keys))
        shared.plugin.restart()

    yield configure
    file.write_text(before)
    shared.plugin.restart()
