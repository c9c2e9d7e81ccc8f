"""Logs: whole, in part, and as they come."""

import asyncio
import re

from interlink.sdk.conformance.check import expect, must, should
from interlink.sdk.conformance.subject import Job, Subject
from interlink.sdk.errors import SDKError

_OLD_S = 2.0
_COUNT = "i=1; while [ $i -le 50 ]; do echo line $i; i=$((i+1)); done"
_LINES = b"".join(b"line %d\n" % number for number in range(1, 51))
_TIMES = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d) line \d+\n)+")


async def counted(subject: Subject) -> Job:
    job = await subject.started(_COUNT)
    await subject.until(job, lambda told: told.has_ended)
    return job


@must
async def a_log_is_complete(subject: Subject) -> None:
    """Every byte that the program wrote, and no others, also after its end."""
    text = await subject.log(await counted(subject))
    expect(text == _LINES, f"fifty lines came as {len(text.splitlines())} lines, {len(text)} bytes: {text[:60]!r}…")


@must
async def each_container_has_its_log(subject: Subject) -> None:
    """Not mixed with another one's."""
    job = await subject.started("echo first", "echo second")
    await subject.until(job, lambda told: told.has_ended)
    for container, text in (("c0", b"first\n"), ("c1", b"second\n")):
        found = await subject.log(job, container)
        expect(found == text, f"the log of {container} is {found[:80]!r}")


@should
async def the_last_lines_can_be_asked_for(subject: Subject) -> None:
    """`Tail`: as many lines as were asked for."""
    job = await counted(subject)
    for count in (1, 5, 50, 100):
        text = await subject.log(job, tail=count)
        wanted = b"".join(_LINES.splitlines(keepends=True)[-count:])
        expect(text == wanted, f"Tail {count} gave {len(text.splitlines())} lines: {text[:60]!r}…")


@should
async def the_bytes_can_be_limited(subject: Subject) -> None:
    """`Bytes`: the first so many."""
    text = await subject.log(await counted(subject), limit_bytes=20)
    expect(text == _LINES[:20], f"Bytes 20 gave {text[:80]!r}")


@should
async def lines_can_have_times(subject: Subject) -> None:
    """`Timestamps`: RFC 3339 before each line."""
    text = await subject.log(await counted(subject), timestamps=True)
    expect(_TIMES.fullmatch(text), f"the log begins with {text[:80]!r}")


@should
async def recent_lines_can_be_asked_for(subject: Subject) -> None:
    """`SinceTime` leaves out what is older."""
    text = await subject.log(await counted(subject), since_time="2100-01-01T00:00:00Z")
    expect(text == b"", f"lines of the future: {text[:80]!r}")


@should
async def the_last_seconds_can_be_asked_for(subject: Subject) -> None:
    """`SinceSeconds` leaves out what is older, and nothing else."""
    job = await counted(subject)
    await asyncio.sleep(_OLD_S)
    for seconds, wanted in ((1, b""), (3600, _LINES)):
        text = await subject.log(job, since_seconds=seconds)
        expect(text == wanted, f"SinceSeconds {seconds} gave {len(text.splitlines())} lines: {text[:60]!r}…")


@should
async def a_previous_run_is_not_the_present_one(subject: Subject) -> None:
    """`Previous`, of a container that was never started again: there is none, which an error says."""
    job = await counted(subject)
    try:
        text = await subject.log(job, previous=True)
    except SDKError:
        return
    expect(text == b"", f"there was one run, and Previous gave {text[:80]!r}")


@should
async def a_log_can_be_followed(subject: Subject) -> None:
    """`Follow`: lines come as they are written, and the log ends with the program."""
    job = await subject.started("echo one; sleep 2; echo two")
    await subject.until(job, lambda told: told.is_running or told.has_ended)
    try:
        async with asyncio.timeout(subject.options.start_s):
            text = await subject.log(job, follow=True)
    except TimeoutError:
        text = b"a log that does not end"
    expect(text == b"one\ntwo\n", f"a followed log is {text[:80]!r}")
