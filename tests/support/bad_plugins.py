"""Plugins with one fault each, made of a sound one: what the conformance suite is for.

Each says which check is meant to catch it, and what that check says then.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Raw

from interlink.plugins.local.scheduler import HostScheduler
from interlink.sdk import (
    BatchPlugin,
    HostProcesses,
    Job,
    JobID,
    JobStatus,
    LogRequest,
    NotFound,
    OutcomeUnknown,
    PingAnswer,
    Pod,
    Refused,
    RetrievedPodData,
    SDKError,
)

Document = dict[str, Any]
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
OK = {"terminated": {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}}


class Bad(BatchPlugin):
    """`was_restarted` is the file that the restart command makes."""

    check: ClassVar[str]
    says: ClassVar[str]
    guard: ClassVar[Any] = None

    def __init__(self, root: Path, was_restarted: Path) -> None:
        super().__init__(root, scheduler=HostScheduler(root, max_pods=100), runtime=HostProcesses())
        self.was_restarted = was_restarted
        self.seen: list[str] = []

    async def whole_log(self, request: LogRequest) -> bytes:
        async with contextlib.aclosing(super().logs(request)) as chunks:
            return b"".join([chunk async for chunk in chunks])


def uid_of(request: RetrievedPodData) -> str:
    return str(json.loads(bytes(request.pod))["metadata"]["uid"])


def edited(request: RetrievedPodData, edit: Callable[[Document], None]) -> RetrievedPodData:
    pod = json.loads(bytes(request.pod))
    edit(pod)
    return msgspec.structs.replace(request, pod=Raw(json.dumps(pod).encode()))


def told(status: JobStatus, state: Document, *, init: bool = False) -> JobStatus:
    """All containers of the job, or all init containers, in this state."""
    raws = (status.init_containers if init else status.containers) or []
    changed = [Raw(json.dumps({**json.loads(bytes(raw)), "state": state}).encode()) for raw in raws]
    field = "init_containers" if init else "containers"
    return msgspec.structs.replace(status, **{field: changed})


def has_ended(status: JobStatus) -> bool:
    return all(b"terminated" in bytes(raw) for raw in status.containers or [])


def claimed(pod: Pod, state: Document) -> JobStatus:
    """A status of a pod that nothing is known of."""
    containers = [Raw(json.dumps({"name": c.name, "state": state}).encode()) for c in pod.spec.containers or []]
    return JobStatus(name=pod.metadata.name, uid=pod.uid, namespace="conformance", containers=containers)


# --- create ----------------------------------------------------------------------------------------------------------


class Silent(Bad):
    check, says = "it-answers-a-ping", "list index out of range"

    async def capacity(self) -> PingAnswer:
        raise OutcomeUnknown("list index out of range")


class Nameless(Bad):
    check, says = "a-create-gives-a-job-id", "without a job id"

    async def create(self, request: RetrievedPodData) -> JobID:
        await super().create(request)
        return JobID("")


class Doubling(Bad):
    """A repeated create starts another job."""

    check, says = "a-repeated-create-makes-no-second-job", "the second"

    async def create(self, request: RetrievedPodData) -> JobID:
        job_id = await super().create(request)
        self.seen.append(uid_of(request))
        return JobID(f"{job_id}-{self.seen.count(uid_of(request))}")


class Racing(Doubling):
    check, says = "creates-of-one-pod-at-once-make-one-job", "five creates gave the ids"


class Confusing(Bad):
    """Every job has the id of the first."""

    check, says = "many-creates-at-once-make-as-many-jobs", "1 different ids"

    async def create(self, request: RetrievedPodData) -> JobID:
        self.seen.append(await super().create(request))
        return JobID(self.seen[0])


class Undead(Bad):
    check, says = "a-create-after-a-delete-is-refused", "started again"

    async def create(self, request: RetrievedPodData) -> JobID:
        try:
            return await super().create(request)
        except Refused:
            self.seen.append(uid_of(request))
            return JobID("again")

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        return [told(s, RUNNING) if s.uid in self.seen else s for s in await super().status(pods)]


# --- delete ----------------------------------------------------------------------------------------------------------


class Immortal(Bad):
    check, says = "a-deleted-job-ends", "the job still runs"

    async def delete(self, pod: Pod) -> None:
        if pod.grace_s:
            return
        await super().delete(pod)


class Once(Bad):
    check, says = "a-delete-may-be-repeated", "KeyError"

    async def delete(self, pod: Pod) -> None:
        if pod.uid in self.seen and pod.grace_s:
            raise OutcomeUnknown("KeyError")
        self.seen.append(pod.uid)
        await super().delete(pod)


class Fragile(Bad):
    check, says = "a-job-that-has-ended-can-be-deleted", "Invalid job id"

    async def delete(self, pod: Pod) -> None:
        if has_ended((await self.status([pod]))[0]):
            raise OutcomeUnknown("Invalid job id")
        await super().delete(pod)


class Brutal(Bad):
    check, says = "a-deleted-job-gets-its-grace", "the program was killed"

    async def delete(self, pod: Pod) -> None:
        metadata = msgspec.structs.replace(pod.metadata, deletion_grace_period_seconds=0)
        await super().delete(msgspec.structs.replace(pod, metadata=metadata))


class Jumpy(Bad):
    check, says = "deleting-a-stranger-does-no-harm", "nil dereference"

    async def delete(self, pod: Pod) -> None:
        try:
            await super().delete(pod)
        except NotFound as error:
            raise OutcomeUnknown("nil dereference") from error


# --- inputs ----------------------------------------------------------------------------------------------------------


class Trimming(Bad):
    check, says = "the-environment-is-exact", "BLANKS"

    async def create(self, request: RetrievedPodData) -> JobID:
        def edit(pod: Document) -> None:
            for variable in pod["spec"]["containers"][0].get("env") or []:
                variable["value"] = variable["value"].strip()

        return await super().create(edited(request, edit))


class Splitting(Bad):
    check, says = "arguments-are-exact", "came"

    async def create(self, request: RetrievedPodData) -> JobID:
        def edit(pod: Document) -> None:
            container = pod["spec"]["containers"][0]
            container["args"] = " ".join(container.get("args") or []).split() or None

        return await super().create(edited(request, edit))


class Templating(Bad):
    """Files lose the newline at their end."""

    check, says = "files-are-exact", "files are exact"

    async def create(self, request: RetrievedPodData) -> JobID:
        def cut(raw: Raw) -> Raw:
            item = json.loads(bytes(raw))
            return Raw(json.dumps({**item, "data": {k: v.rstrip("\n") for k, v in item["data"].items()}}).encode())

        containers = [
            msgspec.structs.replace(c, config_maps=[cut(raw) for raw in c.config_maps or []])
            for c in request.container or []
        ]
        return await super().create(msgspec.structs.replace(request, container=containers))


# --- logs ------------------------------------------------------------------------------------------------------------


class Rewriting(Bad):
    """A log whose bytes, or whose question, is changed."""

    def ask(self, request: LogRequest) -> LogRequest:
        return request

    def answer(self, text: bytes) -> bytes:
        return text

    async def logs(self, request: LogRequest) -> AsyncGenerator[bytes]:
        yield self.answer(await self.whole_log(self.ask(request)))


class Prefixing(Rewriting):
    """The batch system's own output comes first."""

    check, says = "a-log-is-complete", "fifty lines came as 51"

    def answer(self, text: bytes) -> bytes:
        return b"slurmstepd: hello\n" + text


class Mixing(Rewriting):
    check, says = "each-container-has-its-log", "the log of c1 is b'first"

    def ask(self, request: LogRequest) -> LogRequest:
        return msgspec.structs.replace(request, container="c0")


class Deaf(Rewriting):
    """Ignores one option of a question for logs."""

    ignored: ClassVar[Document]

    def ask(self, request: LogRequest) -> LogRequest:
        return msgspec.structs.replace(request, options=msgspec.structs.replace(request.options, **self.ignored))


class Tailless(Deaf):
    check, says, ignored = "the-last-lines-can-be-asked-for", "Tail 1 gave 50 lines", {"tail": 0}


class Boundless(Deaf):
    check, says, ignored = "the-bytes-can-be-limited", "Bytes 20 gave", {"limit_bytes": 0}


class Timeless(Deaf):
    check, says, ignored = "lines-can-have-times", "the log begins with b'line 1", {"timestamps": False}


class Nostalgic(Deaf):
    check, says = "recent-lines-can-be-asked-for", "lines of the future"
    ignored: ClassVar[Document] = {"since_time": "0001-01-01T00:00:00Z"}


class Hoarding(Deaf):
    check, says, ignored = "the-last-seconds-can-be-asked-for", "SinceSeconds 1 gave 50 lines", {"since_seconds": 0}


class Repeating(Deaf):
    check, says = "a-previous-run-is-not-the-present-one", "there was one run, and Previous gave b'line 1"
    ignored: ClassVar[Document] = {"previous": False}


class Impatient(Deaf):
    check, says, ignored = "a-log-can-be-followed", "a followed log is b'one", {"follow": False}


class Chatty(Bad):
    check, says = "the-log-of-a-stranger-is-an-error", "the log of an unknown pod is b''"

    async def logs(self, request: LogRequest) -> AsyncGenerator[bytes]:
        try:
            yield await self.whole_log(request)
        except SDKError:
            yield b""


# --- status ----------------------------------------------------------------------------------------------------------


class Judging(Bad):
    """Something is wrong with what is told of jobs."""

    def judge(self, status: JobStatus) -> JobStatus | None:
        return status

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        return [judged for s in await super().status(pods) if (judged := self.judge(s)) is not None]


class Hasty(Judging):
    """What it does not understand it takes for a success."""

    check, says = "a-job-that-runs-is-told-so", "a job that sleeps is told as"

    def judge(self, status: JobStatus) -> JobStatus | None:
        return told(status, OK)


class Blind(Judging):
    """An end is never seen."""

    check, says = "a-job-that-succeeds-is-told-so", "a job that ends with 0 is told as"

    def judge(self, status: JobStatus) -> JobStatus | None:
        return told(status, RUNNING)


class Optimistic(Judging):
    check, says = "an-exit-code-is-told", "a job that ends with 42 is told as"

    def judge(self, status: JobStatus) -> JobStatus | None:
        return told(status, OK) if has_ended(status) else status


class Purging(Judging):
    """What has ended is told once."""

    check, says = "a-result-does-not-change", "an ended job is later told as nothing"

    def judge(self, status: JobStatus) -> JobStatus | None:
        has_been_told = status.uid in self.seen
        if has_ended(status):
            self.seen.append(status.uid)
        return None if has_been_told else status


class Single(Judging):
    check, says = "every-container-is-told", "containers 3 and 0 are told as"

    def judge(self, status: JobStatus) -> JobStatus | None:
        return msgspec.structs.replace(status, containers=(status.containers or [])[:1])


@web.middleware
async def nothing_new(request: web.Request, handler: Handler) -> web.StreamResponse:
    """To everybody who has an answer."""
    tag = request.headers.get("If-None-Match")
    return web.Response(status=304, headers={"ETag": tag}) if tag else await handler(request)


class Stubborn(Bad):
    check, says = "a-tag-hides-no-news", "who asks with a tag is told that nothing is new, who asks without is told"
    guard = nothing_new


class First(Bad):
    """As the existing Python SDK: the first pod of a question is answered."""

    check, says = "many-are-told-at-once", "of five jobs 4 are not mentioned"

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        return await super().status(pods[:1])


class Careless(Judging):
    check, says = "init-containers-run-first-and-in-order", "is not told so"

    def judge(self, status: JobStatus) -> JobStatus | None:
        return told(status, OK, init=True)


class Listless(Bad):
    check, says = "all-jobs-can-be-listed", "listed 0 times"

    async def jobs(self) -> Sequence[Job]:
        return []


class Forgetful(Bad):
    """Jobs are known in memory only."""

    check, says = "a-restart-loses-no-job", "not told as running any more"

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        return [] if self.was_restarted.exists() else await super().status(pods)


class Ungrateful(Bad):
    check, says = "a-result-survives-a-restart", "a job that ended with 5 is told as {'c0': 0}"

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        found = await super().status(pods)
        return [told(status, OK) for status in found] if self.was_restarted.exists() else found


# --- strangers -------------------------------------------------------------------------------------------------------


class Presumptuous(Bad):
    """Absent is taken for finished."""

    check, says = "a-stranger-has-not-ended", "an unknown pod is told with container states"

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        found = await super().status(pods)
        known = {status.uid for status in found}
        return [*found, *(claimed(pod, OK) for pod in pods if pod.uid not in known)]


class Fussy(Bad):
    """One unknown pod fails the whole question."""

    check, says = "a-stranger-hides-nobody", "unknown"

    async def status(self, pods: Sequence[Pod]) -> list[JobStatus]:
        found = await super().status(pods)
        if len(found) < len(pods):
            raise OutcomeUnknown("unknown pod")
        return found


def is_json_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict | list)
    except ValueError:
        return False


has_crashed = asyncio.Event()


@web.middleware
async def crashing(request: web.Request, handler: Handler) -> web.StreamResponse:
    if has_crashed.is_set() or not is_json_object(await request.read()):
        has_crashed.set()
        return web.Response(status=502)
    return await handler(request)


@web.middleware
async def nodding(request: web.Request, handler: Handler) -> web.StreamResponse:
    return await handler(request) if is_json_object(await request.read()) else web.Response()


class Crashing(Bad):
    check, says, guard = "it-survives-garbage", "502", crashing


class Nodding(Bad):
    check, says, guard = "garbage-is-refused", "is taken for a create", nodding


BAD = [
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Bad) and hasattr(kind, "check")
]
