"""A serving certificate from the cluster: asked for by a CertificateSigningRequest, which somebody approves or denies.

Requests that this node made before are removed, so that restarts leave no growing list.
"""

import asyncio
import base64
import enum
import secrets
from typing import TypeVar

import msgspec
import structlog

from interlink.aio.backoff import Backoff
from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError, Refused, Unavailable
from interlink.kubelet.certificates import making
from interlink.kubelet.certificates.making import Pair

log = structlog.get_logger(__name__)

T = TypeVar("T")

_USAGES = ["digital signature", "server auth"]
_LONGEST_PAUSE_S = 10.0


class Verdict(enum.Enum):
    PENDING = "pending"
    ISSUED = "issued"
    DENIED = "denied"


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    reason: str = ""
    message: str = ""


class _Spec(msgspec.Struct, frozen=True):
    request: bytes = b""


class _Status(msgspec.Struct, frozen=True):
    certificate: bytes = b""
    conditions: list[_Condition] | None = None


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class SigningRequest(msgspec.Struct, frozen=True):
    """What we read of a CertificateSigningRequest."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def verdict(self) -> Verdict:
        if self.refusal is not None:
            return Verdict.DENIED
        return Verdict.ISSUED if self.status.certificate else Verdict.PENDING

    @property
    def refusal(self) -> str | None:
        """Why there will be no certificate, in the words of whoever decided."""
        for condition in self.status.conditions or []:
            if condition.type in ("Denied", "Failed"):
                why = " ".join(part for part in (condition.reason, condition.message) if part)
                return f"{condition.type.lower()}: {why or 'no reason given'}"
        return None


class _List(msgspec.Struct, frozen=True):
    items: list[SigningRequest] | None = None


def document(name: str, signer: str, request: bytes) -> bytes:
    spec = {"signerName": signer, "usages": _USAGES, "request": base64.b64encode(request).decode()}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return msgspec.json.encode(kind | {"metadata": {"name": name}, "spec": spec})


class Requester:
    """Raises KubeError; ask again later."""

    def __init__(self, client: KubeClient, *, node_name: str, node_ip: str, signer: str) -> None:
        self._client = client
        self._node_name = node_name
        self._node_ip = node_ip
        self._signer = signer
        self._prefix = f"interlink-{node_name}"[:200]

    async def obtain(self) -> Pair:
        """A new key with a certificate for it. Waits for a decision as long as it takes; raises Refused when denied."""
        await self._remove_old()
        request, key = making.signing_request(self._node_name, self._node_ip)
        name = f"{self._prefix}-{secrets.token_hex(4)}"
        await self._client.create(paths.SIGNING_REQUESTS, document(name, self._signer, request))
        log.info("certificate.requested", request=name, signer=self._signer)
        return Pair(certificate=await self._decision(name), key=key)

    async def _decision(self, name: str) -> bytes:
        """Raises NotFound when the request was removed undecided."""
        pauses = Backoff(base_s=1.0, cap_s=_LONGEST_PAUSE_S)
        while True:
            found = await self._look(name)
            if found.verdict is Verdict.ISSUED:
                return found.status.certificate
            if found.verdict is Verdict.DENIED:
                raise Refused(f"the certificate request {name} was {found.refusal}")
            await asyncio.sleep(pauses.next_s())

    async def _look(self, name: str) -> SigningRequest:
        try:
            return _read(await self._client.get(paths.signing_request(name)), SigningRequest)
        except Unavailable as error:
            log.warning("certificate.decision-unknown", request=name, error=str(error))
            return SigningRequest()

    async def _remove_old(self) -> None:
        """Without the rights for it they stay; the cluster removes them in time."""
        try:
            answer = await self._client.get(paths.SIGNING_REQUESTS, fieldSelector=f"spec.signerName={self._signer}")
            for found in _read(answer, _List).items or []:
                if self._is_ours(found):
                    await self._client.delete(paths.signing_request(found.metadata.name), uid=found.metadata.uid)
        except KubeError as error:
            log.warning("certificate.old-requests-stay", error=str(error))

    def _is_ours(self, found: SigningRequest) -> bool:
        is_named_ours = found.metadata.name.startswith(f"{self._prefix}-")
        return is_named_ours and making.requested_name(found.spec.request) == making.common_name(self._node_name)


def _read(answer: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"a certificate request cannot be read: {error}") from error
