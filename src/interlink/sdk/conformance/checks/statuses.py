"""Status: what is told of jobs is true, for one and for many."""

import asyncio
import time

from interlink.sdk.conformance.check import NotApplicable, expect, must, should
from interlink.sdk.conformance.subject import Subject, Told
from interlink.sdk.errors import NotFound, Rejected


def shown(told: Told | None) -> str:
    return "nothing" if told is None else str({name: status.state for name, status in told.main.items()})


@must
async def a_job_that_runs_is_told_so(subject: Subject) -> None:
    """With the time it started."""
    job = await subject.started("sleep 600")
    told = await subject.until(job, lambda told: told.is_running)
    expect(told is not None and told.is_running, f"a job that sleeps is told as {shown(told)}")
    running = told.main["c0"].running if told else None
    expect(running and running.started_at, "startedAt is empty")


@must
async def a_job_that_succeeds_is_told_so(subject: Subject) -> None:
    """Exit code 0, when it has ended and not before."""
    job = await subject.started("sleep 1")
    told = await subject.until(job, lambda told: told.has_ended)
    expect(told is not None and told.exit_codes == {"c0": 0}, f"a job that ends with 0 is told as {shown(told)}")


@must
async def an_exit_code_is_told(subject: Subject) -> None:
    """As the program gave it."""
    job = await subject.started("exit 42")
    told = await subject.until(job, lambda told: told.has_ended)
    expect(told is not None and told.exit_codes == {"c0": 42}, f"a job that ends with 42 is told as {shown(told)}")


@must
async def a_result_does_not_change(subject: Subject) -> None:
    """Asked again, an ended job has ended in the same way."""
    job = await subject.started("exit 3")
    await subject.until(job, lambda told: told.has_ended)
    for _ in range(3):
        told = await subject.told(job)
        expect(told is not None and told.exit_codes == {"c0": 3}, f"an ended job is later told as {shown(told)}")


@must
async def every_container_is_told(subject: Subject) -> None:
    """Each under its name, each with its own result; they run at the same time."""
    first = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; done; exit 3"
    job = await subject.started(first, "exit 0")
    told = await subject.until(job, lambda told: told.has_ended)
    expect(told is not None and told.exit_codes == {"c0": 3, "c1": 0}, f"containers 3 and 0 are told as {shown(told)}")


@must
async def many_are_told_at_once(subject: Subject) -> None:
    """One question about many jobs is answered for all of them."""
    jobs = [await subject.started("sleep 600") for _ in range(5)]
    for job in jobs:
        await subject.until(job, lambda told: told.is_running)
    found = await subject.ask(*jobs)
    missing = [job.uid for job in jobs if job.uid not in found]
    expect(not missing, f"of five jobs {len(missing)} are not mentioned")


@must
async def a_tag_hides_no_news(subject: Subject) -> None:
    """Where answers have a tag: who asks with the tag of the last answer still hears of the end."""
    job = await subject.started("sleep 2")
    heard = await subject.hear(job)
    if not heard.tag:
        raise NotApplicable("answers have no tag; then every question is answered at once and in full")
    tag, deadline = heard.tag, time.monotonic() + subject.options.start_s
    while time.monotonic() < deadline:
        heard = await subject.hear(job, tag=tag)
        if heard.told is not None and heard.told.has_ended:
            return
        tag = heard.tag or tag
        await asyncio.sleep(0.1)
    told = await subject.told(job)
    expect(False, f"who asks with a tag is told that nothing is new, who asks without is told {shown(told)}")


@should
async def init_containers_run_first_and_in_order(subject: Subject) -> None:
    """And one that fails keeps the others from running."""
    good = await subject.started("exit 0", init=("sleep 1", "exit 0"))
    told = await subject.until(good, lambda told: told.has_ended)
    codes = {name: s.terminated.exit_code if s.terminated else None for name, s in (told.init if told else {}).items()}
    expect(codes == {"i0": 0, "i1": 0}, f"init containers that succeed are told as {codes}")
    bad = await subject.started("echo never", init=("exit 7",))
    told = await subject.until(bad, lambda told: (s := told.init.get("i0")) and s.terminated)
    failed = told.init["i0"].terminated if told and "i0" in told.init else None
    expect(failed is not None and failed.exit_code == 7, "an init container that fails with 7 is not told so")
    never = told.main.get("c0") if told else None
    expect(never is None or not (never.running or (never.terminated and never.terminated.exit_code == 0)), "c0 has run")


@should
async def all_jobs_can_be_listed(subject: Subject) -> None:
    """/interlink/v1/jobs: with the tag, the id, and whether it is alive; orphans are found by it."""
    job = subject.job("sleep 600")
    job_id = await subject.create(job)
    await subject.until(job, lambda told: told.is_running)
    try:
        listed = await subject.plugin.jobs()
    except (NotFound, Rejected) as error:
        raise NotApplicable("the plugin has no list of all jobs; then jobs without a pod are not found") from error
    mine = [one for one in listed if job.uid in one.tag]
    expect(len(mine) == 1, f"the job is listed {len(mine)} times")
    expect(mine[0].job_id == job_id and mine[0].is_alive, f"a job with id {job_id} that runs is listed as {mine[0]}")
