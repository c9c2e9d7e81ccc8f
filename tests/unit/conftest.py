"""What every unit test stands on."""

import asyncio

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_loop_of_nobody() -> None:
    """pytest-asyncio asks for the current event loop; without this asyncio makes one that nobody closes."""
    asyncio.set_event_loop(None)
