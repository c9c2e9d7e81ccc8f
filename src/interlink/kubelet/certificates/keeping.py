"""Keeping the endpoint's certificate good: from files that may change, from the cluster, or made by ourselves.

And keeping the authority of client certificates current: from a file, else where the API server publishes it.
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from interlink.aio import clock, files
from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kubelet.certificates import making
from interlink.kubelet.certificates.contexts import ServingTLS
from interlink.kubelet.certificates.making import Pair
from interlink.kubelet.certificates.requesting import Requester
from interlink.model.errors import ConfigurationError

log = structlog.get_logger(__name__)

_FILE_S = 10.0
_PUBLISHED_S = 60.0
_UNUSABLE = (OSError, ValueError)


class Source(Protocol):
    def first(self) -> Pair:
        """The certificate to begin with. Raises ConfigurationError."""

    async def renew(self, tls: ServingTLS) -> None:
        """One round: return after `tls` has been given a new certificate, or after a look that found none."""


class Files:
    """Looks at its files again and again; what cannot be used, as a certificate whose key is not there yet, waits."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._shown: Pair | None = None

    def first(self) -> Pair:
        try:
            self._shown = self._read()
            ServingTLS(self._shown)
        except _UNUSABLE as error:
            raise ConfigurationError(
                f"KubeletCertFile {self._certificate}, KubeletKeyFile {self._key}: {error}"
            ) from error
        return self._shown

    async def renew(self, tls: ServingTLS) -> None:
        await asyncio.sleep(_FILE_S)
        try:
            found = self._read()
            if found == self._shown:
                return
            tls.show(found)
        except _UNUSABLE as error:
            log.warning("certificate.unusable", file=str(self._certificate), error=str(error))
            return
        self._shown = found
        log.info("certificate.reloaded", file=str(self._certificate))

    def _read(self) -> Pair:
        return Pair(certificate=self._certificate.read_bytes(), key=self._key.read_bytes())


class SelfSigned:
    def __init__(self, node_name: str, node_ip: str) -> None:
        self._make: Callable[[], Pair] = lambda: making.self_signed(node_name, node_ip)
        self._shown = self._make()

    def first(self) -> Pair:
        return self._shown

    async def renew(self, tls: ServingTLS) -> None:
        await until_renewal(self._shown)
        self._shown = self._make()
        tls.show(self._shown)


class Shelf:
    """A file that keeps an issued certificate with its key, so that a restart needs no new approval."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, node_name: str, node_ip: str) -> Pair | None:
        """None for what is not there, has expired, is another node's, or cannot be used."""
        try:
            data = files.read_regular(self._path)
            pair = Pair(certificate=data, key=data)
            ServingTLS(pair)
            return pair if making.is_for(data, node_name, node_ip) else None
        except FileNotFoundError:
            return None
        except _UNUSABLE as error:
            log.warning("certificate.unusable", file=str(self._path), error=str(error))
            return None

    async def put(self, pair: Pair) -> None:
        """Readable by its owner only. What cannot be kept is asked for again after a restart."""
        try:
            await asyncio.to_thread(files.make_directory, self._path.parent)
            await asyncio.to_thread(files.write_durably, self._path, pair.certificate + b"\n" + pair.key)
        except OSError as error:
            log.warning("certificate.not-kept", file=str(self._path), error=str(error))


class FromCluster:
    """Shows one of our own making until the cluster has decided. Raises KubeError from `renew`."""

    def __init__(self, requester: Requester, node_name: str, node_ip: str, shelf: Shelf | None = None) -> None:
        self._requester = requester
        self._shelf = shelf
        self._issued = shelf.take(node_name, node_ip) if shelf is not None else None
        self._provisional = self._issued or making.self_signed(node_name, node_ip)

    def first(self) -> Pair:
        return self._provisional

    async def renew(self, tls: ServingTLS) -> None:
        if self._issued is not None:
            await until_renewal(self._issued)
        found = await self._requester.obtain()
        tls.show(found)
        self._issued = found
        if self._shelf is not None:
            await self._shelf.put(found)
        log.info("certificate.issued", expires=clock.rfc3339(making.expiry(found.certificate)))


async def until_renewal(pair: Pair) -> None:
    """Return when the certificate should be renewed, by the wall clock: a suspended machine does not miss it."""
    due = making.renewal(pair.certificate, rng=random.Random())  # noqa: S311 -- spreads renewals
    while (left_s := (due - clock.now()).total_seconds()) > 0:  # noqa: ASYNC110 -- time passes, nobody tells us
        await asyncio.sleep(min(left_s, 3600.0))


# --- the authority of clients ----------------------------------------------------------------------------------------


class Authority(Protocol):
    pause_s: float

    async def read(self) -> bytes:
        """The PEM text. Raises KubeError or ConfigurationError."""


class AuthorityFile:
    pause_s = _FILE_S

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self) -> bytes:
        try:
            found = self._path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"KubeletClientCAFile {self._path}: {error.strerror}") from error
        if not found.strip():
            raise ConfigurationError(f"KubeletClientCAFile {self._path}: is empty")
        return found


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class PublishedAuthority:
    """Where the API server publishes the authority that signs the certificates of clients, its own among them."""

    pause_s = _PUBLISHED_S

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def read(self) -> bytes:
        answer = await self._client.get(paths.config_map("kube-system", "extension-apiserver-authentication"))
        data = msgspec.json.decode(answer, type=_ConfigMap).data or {}
        return data.get("client-ca-file", "").encode()


async def follow_authority(authority: Authority, tls: ServingTLS) -> None:
    """One round. Raises what `read` raises, and ConfigurationError for what is no certificate; the old one stays."""
    found = await authority.read()
    try:
        tls.trust(found)
    except _UNUSABLE as error:
        raise ConfigurationError(f"the authority of client certificates cannot be used: {error}") from error
