"""The suite in pytest: `pytest -p interlink.sdk.conformance.pytest_plugin --pyargs interlink.sdk.conformance.tests
--interlink-plugin URL`, or in a project's own tests, which may provide the fixture `interlink_plugin`.
"""

import pytest

from interlink.sdk import addresses
from interlink.sdk.addresses import Address
from interlink.sdk.conformance.subject import Options


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interlink")
    group.addoption("--interlink-plugin", default="", help="URL of the plugin to look at.")
    group.addoption("--interlink-image", default="busybox", help="Image of the jobs.")
    group.addoption("--interlink-restart", default="", help="Shell command that kills the plugin and starts it again.")


@pytest.fixture(scope="session")
def interlink_options(request: pytest.FixtureRequest) -> Options:
    """What the jobs are like; a project may override it."""
    config = request.config
    return Options(image=config.getoption("--interlink-image"), restart=config.getoption("--interlink-restart"))


@pytest.fixture(scope="session")
def interlink_plugin(request: pytest.FixtureRequest) -> Address:
    """Where the plugin is; a project may override it to start its plugin here."""
    url = request.config.getoption("--interlink-plugin")
    if not url:
        pytest.skip("no plugin to look at: give --interlink-plugin URL")
    return addresses.parse(url, None, key="--interlink-plugin")
