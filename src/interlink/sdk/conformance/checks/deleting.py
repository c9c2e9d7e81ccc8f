"""Delete: the job ends, once and for good."""

import asyncio

from interlink.sdk.conformance.check import expect, must, should
from interlink.sdk.conformance.subject import Job, Subject
from interlink.sdk.errors import NotFound


async def wait_gone(subject: Subject, job: Job) -> bool:
    await subject.until(job, lambda told: told.has_ended or not any(s.says_something for s in told.main.values()))
    return await subject.is_gone(job)


@must
async def a_deleted_job_ends(subject: Subject) -> None:
    """It is told as ended, or not any more."""
    job = await subject.started("sleep 600")
    await subject.until(job, lambda told: told.is_running)
    await subject.delete(job)
    expect(await wait_gone(subject, job), "the job still runs")


@must
async def a_delete_may_be_repeated(subject: Subject) -> None:
    """While the job ends, and after its end: 2xx or 404."""
    job = await subject.started("sleep 600")
    await subject.until(job, lambda told: told.is_running)
    for _ in range(2):
        try:
            await subject.delete(job)
        except NotFound:
            break
    expect(await wait_gone(subject, job), "the job still runs")
    try:
        await subject.delete(job)
    except NotFound:
        return


@must
async def a_job_that_has_ended_can_be_deleted(subject: Subject) -> None:
    """2xx or 404."""
    job = await subject.started("exit 0")
    await subject.until(job, lambda told: told.has_ended)
    try:
        await subject.delete(job)
    except NotFound:
        return


@should
async def a_deleted_job_gets_its_grace(subject: Subject) -> None:
    """TERM reaches the program, which has time to end by itself."""
    job = await subject.started("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    await subject.until(job, lambda told: told.is_running)
    for _ in range(50):
        if b"ready" in await subject.log(job):
            break
        await asyncio.sleep(0.1)
    await subject.delete(job, grace_s=10)
    told = await subject.until(job, lambda told: told.has_ended)
    expect(
        told is None or told.exit_codes.get("c0") in (5, None), f"the program was killed: {told and told.exit_codes}"
    )
    expect(b"bye" in await subject.log(job), "what the program wrote after TERM is not in its log")
