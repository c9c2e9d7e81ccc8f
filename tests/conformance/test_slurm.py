"""The Slurm plugin keeps every promise, on a real Slurm."""

import pytest

from interlink.sdk.addresses import Address
from interlink.sdk.conformance.tests.test_conformance import test_promise
from interlink.testing.errors import UnavailableError
from interlink.testing.programs import Programs
from interlink.testing.slurm import SlurmSite
from tests.conformance.conftest import Conformer

__all__ = ["test_promise"]


@pytest.fixture(scope="module")
def interlink_plugin(conformer: Conformer) -> Address:
    """Two nodes, no accounting."""
    try:
        site = conformer.running.enter_context(SlurmSite(nodes=2))
    except UnavailableError as error:
        pytest.skip(str(error))
    plugin = Programs(conformer.folder, site=site, plugin_keys={"SidecarPort": conformer.address.port}).plugin
    return conformer.start(plugin.argv, plugin.environ)
