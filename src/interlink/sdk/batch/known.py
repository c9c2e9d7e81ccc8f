"""Jobs as their directories tell them, and what the batch system says of them."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import structlog

from interlink.model.ids import JobID, Tag
from interlink.model.pods import Pod
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.scheduler import Life, Observation, Scheduler
from interlink.sdk.errors import OutcomeUnknown

log = structlog.get_logger(__name__)

GONE = Observation(life=Life.GONE)


class KnownJob(msgspec.Struct, frozen=True):
    """has_begun: its runner had told a state when the directory was read."""

    pod: Pod
    tag: Tag
    directory: JobDirectory
    job_id: JobID | None
    has_begun: bool


def intended(directories: Sequence[JobDirectory]) -> list[KnownJob]:
    """The jobs among these directories; one that only holds a tombstone is none.

    A directory that cannot be read is left out of many; asked for by itself it raises OutcomeUnknown, because what
    cannot be read is not absent.
    """
    found = []
    for directory in directories:
        with reading(directory, is_alone=len(directories) == 1):
            intention = directory.intention()
            if intention is not None:
                directory.runner_process()
                found.append(
                    KnownJob(
                        pod=intention.pod,
                        tag=directory.tag_of(intention),
                        directory=directory,
                        job_id=directory.job_id(),
                        has_begun=directory.state() is not None,
                    )
                )
    return found


@contextlib.contextmanager
def reading(directory: JobDirectory, *, is_alone: bool) -> Iterator[None]:
    """What cannot be read is left out, with a line in the log; alone, it raises OutcomeUnknown."""
    try:
        yield
    except (OSError, ValueError) as error:
        log.warning("job.unreadable", pod_uid=directory.pod_uid, error=str(error))
        if is_alone:
            raise OutcomeUnknown(f"the directory of job {directory.pod_uid} cannot be read: {error}") from error


def each(directories: Iterable[JobDirectory]) -> Iterator[KnownJob]:
    """As `intended`, without those that cannot be read."""
    for directory in directories:
        with contextlib.suppress(OutcomeUnknown):
            yield from intended([directory])


async def poll(scheduler: Scheduler, jobs: Sequence[KnownJob]) -> dict[Tag, Observation]:
    """One question for all. Raises what the scheduler raises."""
    return dict(await scheduler.poll([(job.tag, job.directory) for job in jobs]))
