"""What a plugin is: six coroutines on plain types, no HTTP in sight.

A plugin keeps nothing that it could not find again at its batch system or in its jobs' directories. It raises the
errors of `interlink.sdk.errors`; anything else counts as OutcomeUnknown.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from interlink.model.ids import JobID, PodUID
from interlink.model.pods import Pod
from interlink.wire.messages import ContainerUsage, Job, JobStatus, LogRequest, PingAnswer, Refresh, RetrievedPodData


class Plugin(Protocol):
    async def create(self, request: RetrievedPodData) -> JobID:
        """Submit a job for the pod, once: a repeated call for a pod UID answers with the job that is there.

        Raises Rejected (never repeated), Unreachable (nothing was submitted) or OutcomeUnknown.
        """
        ...

    async def delete(self, pod: Pod) -> None:
        """Ask the pod's job to end: TERM, its grace period, KILL. Idempotent; returns before the job has ended.

        From then on no job may start for this pod UID. Raises NotFound when there never was a job.
        """
        ...

    async def status(self, pods: Sequence[Pod]) -> Sequence[JobStatus]:
        """The container states of those pods that the plugin knows, in any order; unknown ones are left out."""
        ...

    def logs(self, request: LogRequest) -> AsyncGenerator[bytes]:
        """The log's bytes as they come; with `Follow` until the container has ended. Raises NotFound or Rejected.

        Yields `b""` as soon as it is clear that there is a log, so that the caller can answer.
        """
        ...

    async def jobs(self) -> Sequence[Job]:
        """Everything at the batch system that carries our tag."""
        ...

    async def capacity(self) -> PingAnswer:
        """What the site offers, and that it answers."""
        ...


@runtime_checkable
class Refreshing(Protocol):
    """A plugin that can give the files of a running job new content; optional."""

    async def refresh(self, message: Refresh) -> None:
        """Replace the files of these volumes, each at once and as a whole. Idempotent; raises NotFound for no job."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A plugin that knows what running containers use; optional."""

    async def usage(self, pods: Sequence[PodUID]) -> Sequence[ContainerUsage]:
        """Of the running containers of these pods that something is known of; never a guess."""
        ...


@runtime_checkable
class Noticing(Protocol):
    """A plugin that notices by itself when a job has news; optional. Status questions may then wait for them."""

    async def news(self, since: str, within_s: float) -> str:
        """A mark of the latest news of any job, without quotes: at once where it is not `since`, else with the next
        news, at the latest after `within_s` seconds. Cancellable; a missed one costs that time, one too many a look.
        """
        ...


class Chore(msgspec.Struct, frozen=True):
    """Work that is done again and again, `pause_s` seconds apart; a failure is logged and does not end it."""

    name: str
    run: Callable[[], Awaitable[None]]
    pause_s: float


@runtime_checkable
class Recurring(Protocol):
    """A plugin with work of its own to do while it is served; optional."""

    def chores(self) -> Sequence[Chore]: ...
