"""A server of the existing kind: it forgets, it repeats what it is told, and it is asked again and again.

Its create is not idempotent and its errors do not say whether anything was done, so before a create the plugin is asked
(through `/status`) whether it has the pod's job, and so it is after an error. A deletion is over when the plugin has
no job any more. Both need a plugin that knows its jobs; then nothing is lost or doubled by a restart of the virtual
kubelet or of this server.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
from msgspec import Raw

from interlink.kubelet.dialects import answers
from interlink.kubelet.pods import views
from interlink.model import pods as pod_model
from interlink.model import statuses
from interlink.model.ids import JobID
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus
from interlink.sdk.client import CALL_TIMEOUT_S
from interlink.sdk.errors import NotFound, OutcomeUnknown, SDKError
from interlink.sdk.transport import Link
from interlink.wire import codec
from interlink.wire.messages import (
    AnnouncementAnswer,
    Change,
    Changes,
    ContainerUsage,
    CreateAnswer,
    JobStatus,
    LogRequest,
    PodCreateRequest,
)

_INTERVAL_S = 3.0


class ExistingServer:
    """Implements `Server`."""

    def __init__(self, link: Link, *, may_act: Callable[[], None]) -> None:
        self._link = link
        self._may_act = may_act
        self._epoch = f"existing-{secrets.token_hex(4)}"
        self._revision = 0
        self._told: dict[str, Change] = {}
        self._deleting: dict[str, Pod] = {}

    async def create(self, request: PodCreateRequest, pod: Pod) -> JobID:
        known = await self._job_of(pod)
        if known is not None:
            return known
        self._may_act()
        try:
            body = await self._link.call("POST", "/create", codec.encode(request), timeout_s=answers.CREATE_WITHIN_S)
            answer = answers.read(body, CreateAnswer)
        except SDKError:
            found = await self._job_of(pod)
            if found is None:
                raise
            return found
        return answers.job_id(answer, pod)

    async def _job_of(self, pod: Pod) -> JobID | None:
        """A plugin of the existing kind answers for an unknown pod with nothing, or with states that say nothing."""
        for status in await self._ask([pod]):
            if status.uid == pod.uid and (status.job_id or _says_something(status)):
                return JobID(status.job_id or pod.uid)
        return None

    async def _ask(self, pods: Sequence[Pod]) -> list[JobStatus]:
        questions = [_question(pod) for pod in pods]
        body = await self._link.call("GET", "/status", codec.encode(questions), timeout_s=CALL_TIMEOUT_S)
        try:
            return codec.decode_each(body, JobStatus)[0]
        except codec.InvalidMessage as error:
            raise OutcomeUnknown(f"the server's answer to /status cannot be read: {error}") from error

    async def delete(self, pod: Pod) -> None:
        self._may_act()
        try:
            await self._link.call("DELETE", "/delete", codec.encode(pod), timeout_s=CALL_TIMEOUT_S)
        except SDKError:
            if await self._job_of(pod) is not None:
                raise
        self._deleting[pod.uid] = pod

    async def announce(self, pods: Sequence[Pod], *, epoch: str, revision: int) -> AnnouncementAnswer:
        """There is nobody to tell; forget what is no longer there."""
        living = {pod.uid for pod in pods}
        self._told = {uid: change for uid, change in self._told.items() if uid in living}
        self._deleting = {uid: pod for uid, pod in self._deleting.items() if uid in living}
        return AnnouncementAnswer(epoch=self._epoch, adopted=0, deleted=0)

    async def changes(self, epoch: str, since: int, *, pods: Sequence[Pod], wait_s: float) -> Changes:
        is_new = epoch != self._epoch
        if not is_new:
            await asyncio.sleep(min(_INTERVAL_S, wait_s))
        asked = [pod for pod in pods if not pod.is_terminal and (pod.own_job_id or pod.uid in self._deleting)]
        answers = {status.uid: status for status in (await self._ask(asked) if asked else [])}
        self._revision += 1
        found = [self._change(pod, answers.get(pod.uid)) for pod in asked]
        news = [change for change in found if change is not None and self._is_news(change)]
        self._told.update((change.status.uid, change) for change in news)
        changes = list(self._told.values()) if is_new else news
        return Changes(epoch=self._epoch, revision=self._revision, changes=changes, is_complete=is_new)

    def _change(self, pod: Pod, status: JobStatus | None) -> Change | None:
        """Nothing said of a job is no news, unless it was to end."""
        is_deleting = pod.uid in self._deleting
        if status is None or not _says_something(status):
            if not is_deleting:
                return None
            status = JobStatus(uid=pod.uid, job_id=pod.own_job_id or "")
            return Change(status=status, revision=self._revision, has_ended=True, is_deleting=True)
        job_id = status.job_id or pod.own_job_id or ""
        return Change(
            status=msgspec.structs.replace(status, job_id=job_id),
            revision=self._revision,
            has_ended=_has_ended(pod, status),
            is_deleting=is_deleting,
        )

    def _is_news(self, change: Change) -> bool:
        before = self._told.get(change.status.uid)
        return before is None or msgspec.structs.replace(before, revision=change.revision) != change

    async def refresh(self, pod: Pod, projected: list[Raw]) -> None:
        raise NotFound("a server of the existing kind cannot replace a pod's files")

    async def usage(self) -> list[ContainerUsage]:
        return []

    @contextlib.asynccontextmanager
    async def logs(self, request: LogRequest) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._link.stream("GET", "/getLogs", codec.encode(request), timeout_s=answers.LOG_WITHIN_S) as log:
            yield log

    async def ping(self) -> bytes:
        return await self._link.call("POST", "/pinglink", None, timeout_s=CALL_TIMEOUT_S)


def _question(pod: Pod) -> Pod:
    """Such a server asks its plugin only about pods whose phase it takes for live."""
    slim = pod_model.skeleton(pod_model.offloaded(pod))
    status = msgspec.structs.replace(slim.status, phase=slim.status.phase or "Pending")
    return msgspec.structs.replace(slim, status=status)


def _containers(status: JobStatus) -> tuple[list[ContainerStatus], list[ContainerStatus]]:
    return views.readable(status.containers, status.uid), views.readable(status.init_containers, status.uid)


def _says_something(status: JobStatus) -> bool:
    main, init = _containers(status)
    return any(container.says_something for container in (*main, *init))


def _has_ended(pod: Pod, status: JobStatus) -> bool:
    main, init = _containers(status)
    expected = len(pod_model.offloaded(pod).spec.containers or [])
    return statuses.have_ended(main, init, expected=expected, restart_policy=pod.spec.restart_policy)
