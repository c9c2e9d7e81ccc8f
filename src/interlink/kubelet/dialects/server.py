"""What the virtual kubelet needs of an interLink server, whichever dialect it speaks."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Raw

from interlink.model.ids import JobID
from interlink.model.pods import Pod
from interlink.wire.messages import AnnouncementAnswer, Changes, ContainerUsage, LogRequest, PodCreateRequest


class Server(Protocol):
    """Errors are those of `interlink.sdk.errors`; every call is bounded in time."""

    async def create(self, request: PodCreateRequest, pod: Pod) -> JobID:
        """Idempotent: repeat it until the answer is definitive."""
        ...

    async def delete(self, pod: Pod) -> None:
        """Idempotent. Returns when the server will see to it; the job may still be ending."""
        ...

    async def announce(self, pods: Sequence[Pod], *, epoch: str, revision: int) -> AnnouncementAnswer:
        """Tell the complete list of the node's pods, made after the changes up to `revision` had been told."""
        ...

    async def changes(self, epoch: str, since: int, *, pods: Sequence[Pod], wait_s: float) -> Changes:
        """What is new since then of these pods' jobs; waits for `wait_s` seconds at most."""
        ...

    async def refresh(self, pod: Pod, projected: list[Raw]) -> None:
        """Give the files of a running pod's projected volumes new content. Idempotent.

        Raises NotFound where that cannot be done.
        """
        ...

    async def usage(self) -> list[ContainerUsage]:
        """What the node's running containers use; empty where it is not known."""
        ...

    def logs(self, request: LogRequest) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The bytes of a log as they come."""
        ...

    async def ping(self) -> bytes:
        """The plugin's own answer, as it came."""
        ...
