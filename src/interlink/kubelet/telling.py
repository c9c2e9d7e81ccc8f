"""The events of a pod as a kubelet tells them, from what changed in its status; pure.

Texts are made of names, reasons and what the site and the pod's own probes said; never of values from Secrets or the
environment.
"""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

import msgspec

from interlink.kube.events import About, Note
from interlink.kubelet.errors import MissingInput
from interlink.kubelet.pods import admission, rejections
from interlink.model.phases import Failing
from interlink.model.pods import Pod
from interlink.model.statuses import ContainerStatus, PodStatus

_SILENT: Failing = MappingProxyType({})
_NOT_TRIED = (*admission.REASONS, rejections.REASON)
_NEVER_RAN = ("StartError", "ContainerCannotRun", "ContainerStatusUnknown")


def about_pod(pod: Pod) -> About:
    meta = pod.metadata
    return About(kind="Pod", name=meta.name, uid=meta.uid, namespace=meta.namespace)


def about_node(name: str) -> About:
    """A kubelet gives the name as UID, and `kubectl describe node` looks for that."""
    return About(kind="Node", name=name, uid=name)


def of_change(pod: Pod, after: PodStatus, failing: Failing = _SILENT) -> list[Note]:
    """What happened between the status that `pod` has and the one that is written now.

    failing: what `of_probes` has words for.
    """
    before = {status.name: status for status in _all(pod.status)}
    notes = [
        note
        for is_init, statuses in ((True, after.init_container_statuses), (False, after.container_statuses))
        for status in statuses or []
        for note in _of_container(pod, before.get(status.name), status, failing, is_init=is_init)
    ]
    return [
        *_of_admission(pod, after),
        *notes,
        *_of_ephemeral(pod, after),
        *_of_remark(pod, after),
        *_of_failure(pod, after),
    ]


def _of_admission(pod: Pod, after: PodStatus) -> Iterator[Note]:
    """A pod that is left pending, or is not tried yet; once, for its status says it from then on."""
    told = {_waits_for(status) for status in _all(pod.status)}
    for waiting in (status.waiting for status in _all(after) if status.waiting is not None):
        reason = waiting.reason or ""
        if reason in _NOT_TRIED and reason not in told:
            yield Note(about_pod(pod), reason, waiting.message or reason, is_warning=True)
            return


def _of_ephemeral(pod: Pod, after: PodStatus) -> Iterator[Note]:
    """What `kubectl debug` has added, and is refused as soon as it is seen."""
    told = {status.name for status in pod.status.ephemeral_container_statuses or []}
    for status in after.ephemeral_container_statuses or []:
        if status.name not in told and status.terminated is not None:
            about = msgspec.structs.replace(about_pod(pod), field_path=f"spec.ephemeralContainers{{{status.name}}}")
            yield Note(about, "Failed", f"Error: {status.terminated.message}", is_warning=True)


def _all(status: PodStatus) -> list[ContainerStatus]:
    return [*(status.init_container_statuses or []), *(status.container_statuses or [])]


def of_probes(pod: Pod, before: Failing, after: Failing) -> list[Note]:
    """What probes say that they did not say before; with a kubelet it is told at each failure."""
    inits = {spec.name for spec in pod.spec.init_containers or []}
    return [
        Note(
            _part(pod, name, is_init=name in inits),
            "Unhealthy",
            f"{kind.capitalize()} probe failed: {text}",
            is_warning=True,
        )
        for name, texts in after.items()
        for kind, text in texts.items()
        if before.get(name, {}).get(kind) != text
    ]


def _of_container(
    pod: Pod, before: ContainerStatus | None, after: ContainerStatus, failing: Failing, *, is_init: bool
) -> Iterator[Note]:
    name = after.name
    about = _part(pod, name, is_init=is_init)
    if _has_started_since(before, after):
        yield Note(about, "Created", f"Created container: {name}")
        yield Note(about, "Started", f"Started container {name}")
    ended = after.terminated
    if ended is not None and ended != (before.terminated if before else None) and ended.reason == "StartError":
        yield Note(about, "Failed", f"Error: {ended.message or 'the program could not be started'}", is_warning=True)
    if _waits_for(after) == "CrashLoopBackOff" and _waits_for(before) != "CrashLoopBackOff":
        meta = pod.metadata
        text = f"Back-off restarting failed container {name} in pod {meta.name}_{meta.namespace}({meta.uid})"
        yield Note(about, "BackOff", text, is_warning=True)
    if _is_no_longer_ready(before, after) and not failing.get(name):
        yield Note(about, "Unhealthy", f"Container {name} is no longer ready", is_warning=True)


def _part(pod: Pod, container: str, *, is_init: bool) -> About:
    field = "initContainers" if is_init else "containers"
    return msgspec.structs.replace(about_pod(pod), field_path=f"spec.{field}{{{container}}}")


def _is_no_longer_ready(before: ContainerStatus | None, after: ContainerStatus) -> bool:
    is_same_run = before is not None and before.running == after.running is not None
    return is_same_run and before is not None and before.ready and not after.ready


def _has_started_since(before: ContainerStatus | None, after: ContainerStatus) -> bool:
    """Also what started and ended between two looks; restarts that nobody saw count as one."""
    has_run = after.running is not None or (after.terminated is not None and after.terminated.reason not in _NEVER_RAN)
    if not has_run:
        return False
    had_run = before is not None and (before.running is not None or before.terminated is not None)
    return not had_run or (before is not None and (after.restart_count or 0) > (before.restart_count or 0))


def _waits_for(status: ContainerStatus | None) -> str | None:
    return status.waiting.reason if status is not None and status.waiting is not None else None


def _of_remark(pod: Pod, after: PodStatus) -> Iterator[Note]:
    """What the site says of a job that runs, when that begins and when it is over."""
    before = pod.status.reason if pod.status.phase == "Running" else None
    if after.phase != "Running" or (before or None) == after.reason:
        return
    if after.reason:
        yield Note(about_pod(pod), after.reason, after.message or after.reason, is_warning=True)
    else:
        yield Note(about_pod(pod), "Resumed", f"The job goes on; it was: {before}")


def _of_failure(pod: Pod, after: PodStatus) -> Iterable[Note]:
    """A submission that was refused, in the words of whoever refused it; a job that was lost or stopped."""
    if after.phase != "Failed" or pod.status.phase == "Failed" or not after.reason:
        return []
    reason = "Failed" if after.reason == "JobRejected" else after.reason
    return [Note(about_pod(pod), reason, after.message or f"The pod failed: {after.reason}", is_warning=True)]


def of_waiting(pod: Pod, reason: str, error: Exception) -> Note:
    """Why a pod has no job yet; told again at each attempt."""
    if isinstance(error, MissingInput):
        is_volume = str(error).startswith("volume ")
        text = f"MountVolume.SetUp failed for {error}" if is_volume else f"Error: {error}"
        return Note(about_pod(pod), "FailedMount" if is_volume else "Failed", text, is_warning=True)
    if reason == "SiteUnreachable":
        return Note(about_pod(pod), "BackOff", f"Back-off submitting the job: {error}", is_warning=True)
    return Note(about_pod(pod), "Failed", f"{reason}: {error}", is_warning=True)


def of_ending(pod: Pod) -> Sequence[Note]:
    """Before the containers of a pod that is deleted are stopped."""
    running = [status.name for status in _all(pod.status) if status.running is not None]
    inits = {spec.name for spec in pod.spec.init_containers or []}
    return [Note(_part(pod, name, is_init=name in inits), "Killing", f"Stopping container {name}") for name in running]


def of_connectivity(node_name: str, before: str, after: str) -> Note | None:
    """`before` and `after`: why the site does not answer, empty when it does."""
    if bool(before) == bool(after):
        return None
    if after:
        return Note(about_node(node_name), "InterlinkConnectivityLost", f"The site is away: {after}", is_warning=True)
    return Note(about_node(node_name), "InterlinkConnectivityRestored", "The site answers again")


def of_start(node_name: str) -> Note:
    return Note(about_node(node_name), "Starting", "Starting the virtual kubelet.")
