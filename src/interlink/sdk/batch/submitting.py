"""Handing a prepared job to the batch system: whatever comes of it, what is known afterwards is true."""

import asyncio
import contextlib

from interlink.aio import clock
from interlink.aio.beneath import Beneath
from interlink.aio.failpoints import step
from interlink.model.ids import JobID, Tag
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.scheduler import Scheduler
from interlink.sdk.errors import OutcomeUnknown, Rejected


async def submit(scheduler: Scheduler, tag: Tag, directory: JobDirectory) -> JobID:
    """Whatever a failed submission says, the job may be there: look before the error is passed on."""
    try:
        with step("plugin.submit"):
            return await scheduler.submit(tag, directory)
    except Rejected as error:
        with contextlib.suppress(OSError, ValueError):  # as where the disk is full: the refusal is told anyway
            await asyncio.to_thread(_leave_only_words, directory, str(error))
        raise
    except OutcomeUnknown:
        found = await scheduler.find(tag, directory)
        if found is None:
            raise
        return found


def _leave_only_words(directory: JobDirectory, text: str) -> None:
    """A refused job keeps no secrets, and has a log all the same: the batch system's words, where `kubectl logs` finds
    them."""
    directory.remove_secrets()
    intention = directory.intention()
    moment = clock.rfc3339(clock.now())
    for container in intention.pod.spec.containers or [] if intention else []:
        line = f"{moment} stderr F {' '.join(text.split())}\n"
        Beneath(directory.path).write(directory.log(container.name, 0), line.encode(), mode=0o600)
