"""Questions about what is not there, and what is no question at all."""

from interlink.sdk.conformance.check import expect, must, should
from interlink.sdk.conformance.subject import Subject
from interlink.sdk.errors import NotFound, SDKError

_GARBAGE = (b"", b"{", b"null", b"[]", b"[[]]", b'"text"', b"\xff\xfe", b'{"pod": 7}', b'{"metadata": []}')


@must
async def a_stranger_has_not_ended(subject: Subject) -> None:
    """Of a pod that it does not know a plugin says nothing, or nothing that could be taken for a result."""
    job = subject.job("exit 0")
    try:
        told = await subject.told(job)
    except NotFound:
        return
    claims = told is not None and any(status.says_something for status in told.main.values())
    expect(not claims, "an unknown pod is told with container states")


@must
async def a_stranger_hides_nobody(subject: Subject) -> None:
    """A question about known and unknown pods is answered for the known ones."""
    known, stranger = await subject.started("sleep 600"), subject.job("exit 0")
    await subject.until(known, lambda told: told.is_running)
    found = await subject.ask(stranger, known)
    expect(known.uid in found, "the known pod is not mentioned beside an unknown one")


@must
async def deleting_a_stranger_does_no_harm(subject: Subject) -> None:
    """It is answered, with 2xx or 404."""
    try:
        await subject.delete(subject.job("exit 0"))
    except NotFound:
        return


@should
async def the_log_of_a_stranger_is_an_error(subject: Subject) -> None:
    """Not an empty log, which would look like a program that says nothing."""
    try:
        text = await subject.log(subject.job("exit 0"))
    except SDKError:
        return
    expect(False, f"the log of an unknown pod is {text[:80]!r}")


@must
async def it_survives_garbage(subject: Subject) -> None:
    """Whatever is sent to a route, the plugin answers the next question."""
    for path in ("/create", "/delete", "/status", "/getLogs"):
        for body in _GARBAGE:
            try:
                await subject.link.call("POST", path, body, timeout_s=30)
            except SDKError:
                continue
    await subject.plugin.ping()


@should
async def garbage_is_refused(subject: Subject) -> None:
    """A create that is no create is answered with an error."""
    for body in (b"{", b'"text"', b"\xff\xfe"):
        try:
            await subject.link.call("POST", "/create", body, timeout_s=30)
        except SDKError:
            continue
        expect(False, f"the body {body!r} is taken for a create")
