"""What a batch system must offer: submit, find by tag, tell, cancel. A new one is one file that implements this.

A class that inherits from `Scheduler` has what not every batch system needs.
"""

import enum
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from interlink.model.ids import JobID, PodUID, Tag
from interlink.model.pods import Pod
from interlink.sdk.batch.jobdir import Ending, JobDirectory
from interlink.wire.messages import Job, PingAnswer


class Life(enum.Enum):
    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    """It was there and is over, for certain."""
    GONE = "gone"
    """The batch system does not have it, which by itself proves nothing."""


class Observation(msgspec.Struct, frozen=True):
    """What the batch system says of one job; `reason` and `message` in its own words.

    ending: of an ENDED job. is_to_be_repeated: of a PENDING one that the batch system has given up before it began; it
    waits to be submitted again. has_more_to_say: it may still overrule the success that a job's own record tells,
    which waits for that for a moment; so does the record of one that was stopped from outside, as long as it is alive.
    """

    life: Life
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    ending: Ending | None = None
    has_more_to_say: bool = False
    is_to_be_repeated: bool = False

    @property
    def is_alive(self) -> bool:
        return self.life in (Life.PENDING, Life.RUNNING)


class Recalled(msgspec.Struct, frozen=True):
    """A job that was found without its directory."""

    tag: Tag
    job_id: JobID
    seen: Observation


class Scheduler(Protocol):
    def prepare(self, pod: Pod, tag: Tag, directory: JobDirectory, *, node: str) -> Mapping[Path, bytes]:
        """The files that `submit` needs, to be written into the job's directory. Pure.

        Raises Rejected for what the pod may not ask of this batch system.
        """
        return {}

    def user(self, pod: Pod) -> int:
        """The id of the user whom the pod's job will run as: our own, unless the batch system can change it."""
        return os.geteuid()

    @abstractmethod
    async def submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        """Start `directory`'s runner as a job named `tag`. Called only when `find` found nothing.

        Raises Rejected, Unreachable (nothing submitted) or OutcomeUnknown; then the caller looks for the tag.
        """
        ...

    @abstractmethod
    async def find(self, tag: Tag, directory: JobDirectory) -> JobID | None:
        """The job that carries the tag. Raises Unreachable when the batch system cannot be asked."""
        ...

    async def find_ended(self, tag: Tag, *, made_at: datetime | None) -> JobID | None:
        """The job that carried the tag, has ended, and is known elsewhere only than where `find` looks.

        Called before the first submission of a pod without a directory, which may have been lost. made_at: of the pod.
        Raises Unreachable.
        """
        return None

    @abstractmethod
    async def poll(self, jobs: Sequence[tuple[Tag, JobDirectory]]) -> Mapping[Tag, Observation]:
        """One look at all these jobs; those that the batch system does not know are GONE."""
        ...

    @abstractmethod
    async def cancel(self, tag: Tag, directory: JobDirectory) -> None:
        """Ask the job to end (TERM, grace, KILL); idempotent, and harmless when there is none."""
        ...

    async def recall(self, pods: Sequence[Pod]) -> Mapping[PodUID, Recalled]:
        """The jobs of pods whose directories are lost, as far as the batch system alone knows them."""
        return {}

    async def tidy(self, tags: Sequence[Tag]) -> None:
        """End what is there twice under one tag and has not started; needed where the same tag can be there twice."""
        return

    @abstractmethod
    async def jobs(self) -> Sequence[Job]:
        """Every job with a tag of ours."""
        ...

    @abstractmethod
    async def capacity(self) -> PingAnswer: ...
