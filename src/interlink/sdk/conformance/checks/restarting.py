"""A plugin that was killed and started again knows its jobs."""

import asyncio

from interlink.aio import processes
from interlink.sdk.conformance.check import Broken, NotApplicable, expect, must
from interlink.sdk.conformance.subject import Subject
from interlink.sdk.errors import SDKError

_RESTART_S = 120.0
_UP_AGAIN_S = 60.0


async def restart(subject: Subject) -> None:
    if not subject.options.restart:
        raise NotApplicable("say how the plugin is killed and started again: --restart COMMAND")
    done = await processes.run(["sh", "-c", subject.options.restart], timeout_s=_RESTART_S)
    if done.exit_code:
        raise Broken(f"the restart command ended with {done.exit_code}: {done.stderr[-300:].decode(errors='replace')}")
    for _ in range(int(_UP_AGAIN_S / 0.5)):
        try:
            await subject.plugin.ping()
        except SDKError:
            await asyncio.sleep(0.5)
        else:
            return
    raise Broken(f"the plugin did not answer within {_UP_AGAIN_S:.0f} s after its restart")


@must
async def a_restart_loses_no_job(subject: Subject) -> None:
    """A running job goes on under the same id, is told, has its log, and can be deleted."""
    job = subject.job("echo started; sleep 600")
    before = await subject.create(job)
    await subject.until(job, lambda told: told.is_running)
    await restart(subject)
    told = await subject.until(job, lambda told: told.is_running)
    expect(told is not None and told.is_running, "the job is not told as running any more")
    after = await subject.create(job)
    expect(after == before, f"a create that is repeated gives id {after}, it was {before}")
    expect((await subject.log(job)).count(b"started") == 1, "the payload has started again")
    await subject.delete(job)
    await subject.until(job, lambda told: told.has_ended)
    expect(await subject.is_gone(job), "the job still runs after its deletion")


@must
async def a_result_survives_a_restart(subject: Subject) -> None:
    """A job that ended while the plugin was away, and one that had ended before."""
    ended, ends = await subject.started("exit 5"), await subject.started("sleep 2; exit 6")
    await subject.until(ended, lambda told: told.has_ended)
    await restart(subject)
    for job, code in ((ended, 5), (ends, 6)):
        told = await subject.until(job, lambda told: told.has_ended)
        codes = told.exit_codes if told else None
        expect(codes == {"c0": code}, f"a job that ended with {code} is told as {codes}")
