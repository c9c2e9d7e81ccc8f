"""Create: an id for each pod, one job for each pod."""

import asyncio

from interlink.sdk.conformance.check import expect, must, should
from interlink.sdk.conformance.subject import Subject
from interlink.sdk.errors import SDKError

_AT_ONCE = 10


@must
async def it_answers_a_ping(subject: Subject) -> None:
    """An empty status question is answered with 2xx: the site is there."""
    await subject.plugin.ping()


@must
async def a_create_gives_a_job_id(subject: Subject) -> None:
    """The answer to a create names the job."""
    expect(await subject.create(subject.job("exit 0")), "PodJID is empty")


@must
async def a_repeated_create_makes_no_second_job(subject: Subject) -> None:
    """A create that is sent again, because its answer was lost, gives the same id, and the payload runs once."""
    job = subject.job("echo started; sleep 1")
    first, second = await subject.create(job), await subject.create(job)
    expect(first == second, f"the first create gave id {first}, the second {second}")
    await subject.until(job, lambda told: told.has_ended)
    third = await subject.create(job)
    expect(third == first, f"after its end the job's id is {third}, it was {first}")
    text = await subject.log(job)
    expect(text.count(b"started") == 1, f"the payload has started {text.count(b'started')} times")


@must
async def creates_of_one_pod_at_once_make_one_job(subject: Subject) -> None:
    """As after a restart of the server, when its last call is still under way."""
    job = subject.job("echo started; sleep 1")
    found = await asyncio.gather(*(subject.create(job) for _ in range(5)), return_exceptions=True)
    ids = {answer for answer in found if not isinstance(answer, BaseException)}
    expect(len(ids) == 1, f"five creates gave the ids {sorted(ids)}")
    await subject.until(job, lambda told: told.has_ended)
    text = await subject.log(job)
    expect(text.count(b"started") == 1, f"the payload has started {text.count(b'started')} times")


@must
async def many_creates_at_once_make_as_many_jobs(subject: Subject) -> None:
    """Ten pods at once get ten ids, and each its own result."""
    jobs = [subject.job(f"exit {number}") for number in range(_AT_ONCE)]
    ids = await asyncio.gather(*(subject.create(job) for job in jobs))
    expect(len(set(ids)) == _AT_ONCE, f"ten pods got {len(set(ids))} different ids")
    for number, job in enumerate(jobs):
        told = await subject.until(job, lambda told: told.has_ended)
        codes = told.exit_codes if told else None
        expect(codes == {"c0": number}, f"a job that ends with {number} is told as {codes}")


@should
async def a_create_after_a_delete_is_refused(subject: Subject) -> None:
    """A create that was overtaken by the pod's deletion starts nothing."""
    job = await subject.started("sleep 600")
    await subject.delete(job, grace_s=0)
    await subject.until(job, lambda told: told.has_ended)
    try:
        await subject.create(job)
    except SDKError:
        return
    await asyncio.sleep(1)
    expect(await subject.is_gone(job), "the job of a deleted pod has been started again")
