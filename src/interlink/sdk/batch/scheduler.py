"""What a batch system must offer: submit, find by tag, tell, cancel. A new one is one file that implements this."""

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from interlink.model.ids import JobID, Tag
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.wire.messages import Job, PingAnswer


class Life(enum.Enum):
    PENDING = "pending"
    RUNNING = "running"
    GONE = "gone"


class Observation(msgspec.Struct, frozen=True):
    """What the batch system says of one job; `reason` and `message` in its own words."""

    life: Life
    reason: str | None = None
    message: str | None = None


class Scheduler(Protocol):
    async def submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        """Start `directory`'s runner as a job named `tag`. Called only when `find` found nothing.

        Raises Rejected, Unreachable (nothing submitted) or OutcomeUnknown; then the caller looks for the tag.
        """
        ...

    async def find(self, tag: Tag, directory: JobDirectory) -> JobID | None:
        """The job that carries the tag. Raises Unreachable when the batch system cannot be asked."""
        ...

    async def poll(self, jobs: Sequence[tuple[Tag, JobDirectory]]) -> Mapping[Tag, Observation]:
        """One look at all these jobs; those that the batch system does not know are GONE."""
        ...

    async def cancel(self, tag: Tag, directory: JobDirectory) -> None:
        """Ask the job to end (TERM, grace, KILL); idempotent, and harmless when there is none."""
        ...

    async def jobs(self) -> Sequence[Job]:
        """Every job with a tag of ours."""
        ...

    async def capacity(self) -> PingAnswer: ...
