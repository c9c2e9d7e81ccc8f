"""Where records are kept. Every implementation passes the same contract tests."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from interlink.model.ids import PodUID
from interlink.model.records import Record


class Damage(msgspec.Struct, frozen=True):
    """A record that was set aside: its name and what is wrong with it."""

    name: str
    reason: str


class Restored(msgspec.Struct, frozen=True):
    records: list[Record]
    damaged: list[Damage]


class Store(Protocol):
    async def restore(self) -> Restored:
        """All records; damaged ones are set aside, kept and reported. Call it once, before anything is saved."""
        ...

    async def save(self, records: Sequence[Record]) -> None:
        """Durable on return; each record is written wholly or not at all. Raises StoreUnavailable."""
        ...

    async def remove(self, uids: Sequence[PodUID]) -> None:
        """Idempotent. Raises StoreUnavailable."""
        ...
