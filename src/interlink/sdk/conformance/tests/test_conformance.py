"""Each promise of the contract, kept by the plugin of fixture `interlink_plugin`."""

import asyncio

import pytest

from interlink.sdk.addresses import Address
from interlink.sdk.conformance import suite
from interlink.sdk.conformance.check import Check
from interlink.sdk.conformance.subject import Options, Subject
from interlink.sdk.conformance.suite import Outcome, Result
from interlink.sdk.transport import Link


@pytest.mark.parametrize("check", suite.chosen(()), ids=lambda check: check.name)
def test_promise(check: Check, interlink_plugin: Address, interlink_options: Options) -> None:
    """MUST and SHOULD alike: who does without a SHOULD deselects it by name."""
    result = asyncio.run(_result(check, interlink_plugin, interlink_options))

    if result.outcome is Outcome.SKIPPED:
        pytest.skip(result.message)
    assert result.outcome is Outcome.PASSED, f"{result.promise}\n{result.message}"


async def _result(check: Check, address: Address, options: Options) -> Result:
    link = Link(address, peer="plugin")
    try:
        return await suite.run_one(Subject(link, options), check)
    finally:
        await link.close()
