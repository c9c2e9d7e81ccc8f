"""What this life of the server has heard of the owners, and which of their tombstones may go.

An owner that announces settles its tombstones so. An existing virtual kubelet deletes, forgets, and cannot confirm: its
silence about a pod, while it goes on asking about others, is its confirmation.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from interlink.aio import clock
from interlink.model import reconciling
from interlink.model.ids import Owner, PodUID
from interlink.model.records import Intent, Record
from interlink.server.ledger import Ledger


class Owners:
    def __init__(self, ledger: Ledger, *, tombstone_lifetime_s: float) -> None:
        self.announced: dict[Owner, frozenset[PodUID]] = {}
        self._ledger = ledger
        self._lifetime = timedelta(seconds=tombstone_lifetime_s)
        self._began_at = clock.now()
        self._heard: dict[Owner, datetime] = {}
        self._mentioned: dict[PodUID, datetime] = {}

    def has_announced(self, owner: Owner, pods: Iterable[PodUID]) -> None:
        """`announced` holds the latest list of each."""
        self.announced[owner] = frozenset(pods)
        self._heard.pop(owner, None)

    def has_asked(self, records: Iterable[Record]) -> None:
        """Somebody who does not announce has asked about these, its own."""
        now = clock.now()
        for record in records:
            if record.owner in self.announced:
                continue
            self._heard[record.owner] = now
            if record.intent is Intent.DELETE:
                self._mentioned[record.pod_uid] = now

    def given_up_before(self) -> datetime:
        """The deletion of a job that had ended by then is not repeated any more, once its pod has left Kubernetes."""
        return clock.now() - self._lifetime

    def expired(self) -> list[PodUID]:
        known = self._ledger.newest()
        self._mentioned = {uid: at for uid, at in self._mentioned.items() if uid in known}
        return reconciling.expired(
            known, heard=self._heard, mentioned=self._mentioned, began_at=self._began_at, lifetime=self._lifetime
        )
