"""The local plugin keeps every promise."""

import pytest

from interlink.sdk.addresses import Address
from interlink.sdk.conformance.tests.test_conformance import test_promise
from interlink.testing.programs import Programs
from tests.conformance.conftest import Conformer

__all__ = ["test_promise"]


@pytest.fixture(scope="module")
def interlink_plugin(conformer: Conformer) -> Address:
    plugin = Programs(conformer.folder, plugin_keys={"SidecarPort": conformer.address.port}).plugin
    return conformer.start(plugin.argv, plugin.environ)
