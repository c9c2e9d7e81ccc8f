"""One active instance per name: a coordination Lease that its holder renews and the others watch.

Nobody compares clocks of two machines: a waiting instance takes the Lease when it has seen no renewal for as long as
the Lease says, by its own clock, or when it knows that the holder's process is dead. The holder stops acting earlier:
its right ends a margin before the others may think so, counted from before its last renewal was sent.
"""

import asyncio
from typing import Any

import msgspec
import structlog

from interlink.aio import clock, identity
from interlink.kube.client import KubeClient
from interlink.kube.errors import Conflict, Fenced, KubeError, NotFound, Superseded

log = structlog.get_logger(__name__)

DURATION_S = 8
RENEWAL_S = 2.0
_MARGIN_S = 1.0
_POLL_S = 1.0


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


class Election:
    """`acquire`, then `hold` for as long as the instance is active, with `check` before everything it does to others;
    `release` at the end lets the next one begin at once."""

    def __init__(self, client: KubeClient, leases_path: str, name: str, *, me: str) -> None:
        self._client = client
        self._leases_path = leases_path
        self._name = name
        self._me = me
        self._until = 0.0
        self._last_seen: tuple[str, float] = ("", 0.0)
        self._reported = ""

    async def acquire(self) -> None:
        """Wait until the Lease is ours; never gives up."""
        while True:
            try:
                if await self._try():
                    log.info("lease.acquired", lease=self._name)
                    return
            except Conflict:
                pass
            except KubeError as error:
                self._report(f"cannot ask for the lease: {error}")
            await asyncio.sleep(_POLL_S)

    async def hold(self) -> None:
        """Renew for ever. Raises Superseded when another instance holds the Lease."""
        while True:
            await asyncio.sleep(RENEWAL_S)
            try:
                await self._renew()
            except KubeError as error:
                if isinstance(error, Superseded):
                    raise
                log.warning("lease.not-renewed", lease=self._name, error=str(error))

    def check(self) -> None:
        """Raises Fenced when another instance may have begun to act."""
        if clock.since_boot_s() >= self._until:
            raise Fenced(f"the lease {self._name} has not been renewed in time: another instance may be active")

    async def release(self) -> None:
        """Best effort: without it the next instance waits until the Lease has run out."""
        self._until = 0.0
        try:
            lease = await self._read()
            if lease is not None and lease.spec.holder_identity == self._me:
                await self._write(lease, holder="")
        except KubeError as error:
            log.warning("lease.not-released", lease=self._name, error=str(error))

    async def _try(self) -> bool:
        lease = await self._read()
        if lease is not None and not self._may_take(lease):
            self._report(f"held by {lease.spec.holder_identity}")
            return False
        await self._take(lease)
        return True

    def _may_take(self, lease: _Lease) -> bool:
        holder = lease.spec.holder_identity
        if not holder or holder == self._me or identity.is_surely_dead(holder):
            return True
        version, since = self._last_seen
        if version != lease.metadata.resource_version:
            self._last_seen = lease.metadata.resource_version, clock.since_boot_s()
            return False
        return clock.since_boot_s() - since > (lease.spec.lease_duration_seconds or DURATION_S)

    async def _renew(self) -> None:
        lease = await self._read()
        if lease is not None and lease.spec.holder_identity != self._me:
            raise Superseded(f"another instance is active: {lease.spec.holder_identity or 'nobody holds the lease'}")
        await self._take(lease)

    async def _take(self, lease: _Lease | None) -> None:
        began = clock.since_boot_s()
        if lease is None:
            body = msgspec.json.encode(self._document(None, self._me))
            await self._client.create(self._leases_path, body)
        else:
            await self._write(lease, holder=self._me)
        self._until = began + DURATION_S - _MARGIN_S

    async def _read(self) -> _Lease | None:
        try:
            return msgspec.json.decode(await self._client.get(self._path), type=_Lease)
        except NotFound:
            return None

    async def _write(self, lease: _Lease, *, holder: str) -> None:
        """Raises Conflict when the Lease has changed since it was read."""
        await self._client.replace(self._path, msgspec.json.encode(self._document(lease, holder)))

    def _document(self, lease: _Lease | None, holder: str) -> dict[str, Any]:
        now = clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = lease.spec if lease else _Spec()
        is_renewal = before.holder_identity == holder
        spec = _Spec(
            holder_identity=holder,
            lease_duration_seconds=DURATION_S,
            renew_time=now,
            acquire_time=before.acquire_time if is_renewal else now,
            lease_transitions=(before.lease_transitions or 0) + (not is_renewal),
        )
        metadata = _Metadata(name=self._name, resource_version=lease.metadata.resource_version if lease else "")
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": msgspec.to_builtins(metadata),
            "spec": msgspec.to_builtins(spec),
        }

    def _report(self, why: str) -> None:
        if why != self._reported:
            log.info("lease.waiting", lease=self._name, why=why)
            self._reported = why

    @property
    def _path(self) -> str:
        return f"{self._leases_path}/{self._name}"
