"""A create that the plugin does not take: it goes on, however long that is."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from interlink.model.ids import JobID, owner
from interlink.sdk.client import Statuses
from interlink.sdk.errors import Unreachable
from interlink.server.creating import Creator, Limits
from interlink.server.jobscript import NoScripts
from interlink.server.ledger import Ledger
from interlink.server.store.memory import MemoryStore
from interlink.wire import codec
from interlink.wire.messages import PodCreateRequest
from tests.unit.builders import pod
from tests.unit.virtual_time import in_virtual_time

AWAY_S = 6 * 3600.0


class Away:
    """A plugin that cannot be reached for six hours."""

    speaks_our_dialect = True

    def __init__(self) -> None:
        self.tries: list[float] = []

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        self.tries.append(now)
        if now - self.tries[0] < AWAY_S:
            raise Unreachable("no route to host")

    async def create(self, *_: object, **__: object) -> JobID:
        self._check()
        return JobID("j1")

    async def status(self, _: object) -> Statuses:
        self._check()
        return Statuses()


@in_virtual_time
async def test_a_create_is_repeated_until_it_is_answered() -> None:
    """With pauses that grow to half a minute and are never the same, also when its caller has long given up."""
    plugin, ledger = Away(), Ledger(MemoryStore())
    dispatcher: Any = plugin
    async with Creator(ledger, dispatcher, NoScripts(), Limits(pods=1, waiting_creates=1)) as creator:
        creator.reconciled.set()
        request = PodCreateRequest(pod=Raw(codec.encode(pod())))
        with pytest.raises(Unreachable, match="goes on trying: no route to host"):
            await creator.create(request, pod(), owner("c", "vk"), session="", hold_s=5)

        await asyncio.sleep(AWAY_S + 60)

        answer = await creator.create(request, pod(), owner("c", "vk"), session="", hold_s=0)
    assert answer == "j1"
    pauses = [later - earlier for earlier, later in zip(plugin.tries, plugin.tries[1:], strict=False)]
    assert max(pauses) <= 30
    assert min(pauses[20:-1]) >= 15
    assert len({round(pause, 3) for pause in pauses}) > 100
