"""Writing a pod's status and its job id to Kubernetes: one PATCH for both, only when something differs."""

from collections.abc import Callable

import msgspec
import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.aio.supervising import KeyedLocks
from interlink.kube import paths
from interlink.kube.client import KubeClient
from interlink.kube.events import Note
from interlink.kube.reflecting import Reflector
from interlink.kubelet import telling
from interlink.kubelet.pods.rejections import Rejections
from interlink.model import phases, pods
from interlink.model.ids import JobID
from interlink.model.phases import Failing, JobView, Place
from interlink.model.pods import JOB_ID_ANNOTATION, Pod, Seen
from interlink.model.statuses import PodStatus

log = structlog.get_logger(__name__)


class Publisher:
    def __init__(
        self,
        client: KubeClient,
        reflector: Reflector,
        place: Place,
        tell: Callable[[Note], None],
        rejections: Rejections,
    ) -> None:
        self._client = client
        self._reflector = reflector
        self._place = place
        self._tell = tell
        self._rejections = rejections
        self._locks = KeyedLocks()
        self._failing: dict[str, Failing] = {}

    async def publish(self, pod: Pod, job: JobView, job_id: JobID | None) -> Seen | None:
        """Bring Kubernetes up to date; None when it already is.

        The patch names the pod's UID, so a pod made again under the same name is never written to: that raises
        Conflict. Raises NotFound when the pod has gone. Starts from the newest picture of the pod, for another write
        may have come between; of two at the same time the second sees what the first has written.
        """
        async with self._locks.hold(pod.uid):
            written = await self._publish(pod, job, job_id)
            self._tell_of_probes(pod, job.failing)
            return written

    async def _publish(self, pod: Pod, job: JobView, job_id: JobID | None) -> Seen | None:
        newest = self._reflector.pods.get(pod.uid)
        pod = newest.pod if newest else pod
        status = phases.pod_status(pod, job, self._place, clock.now())
        new_id = job_id if job_id is not None and job_id != pod.own_job_id else None
        if status == pod.status and new_id is None:
            return None
        if job.rejected is not None:
            self._rejections.note(pod)  # before the pod is Failed, for then its controller makes the next one
        with step("vk.publish"):
            answer = await self._client.patch(self._path(pod) + "/status", patch(pod, status, new_id))
        written = pods.seen(answer)
        if new_id is not None and written.pod.job_id != new_id:
            written = await self._annotate(pod, new_id)
        self._reflector.note(written)
        _tell_story(pod, status)
        for note in telling.of_change(pod, status, job.failing):
            self._tell(note)
        return written

    def _tell_of_probes(self, pod: Pod, failing: Failing) -> None:
        """What is told already is known here only: after a restart it is told again, once."""
        for note in telling.of_probes(pod, self._failing.get(pod.uid, {}), failing):
            self._tell(note)
        if failing:
            self._failing[pod.uid] = failing
        else:
            self._failing.pop(pod.uid, None)

    def forget(self, uid: str) -> None:
        """The pod has left Kubernetes."""
        self._failing.pop(uid, None)

    async def _annotate(self, pod: Pod, job_id: JobID) -> Seen:
        """For an API server that drops annotations sent to the status subresource."""
        body = {"metadata": {"uid": pod.uid, "annotations": {JOB_ID_ANNOTATION: job_id}}}
        return pods.seen(await self._client.patch(self._path(pod), msgspec.json.encode(body)))

    async def remove(self, pod: Pod) -> None:
        """Take the pod object away, if it is still this pod."""
        with step("vk.remove"):
            await self._client.delete(self._path(pod), uid=pod.uid)
        log.info("pod.removed", pod=pod.full_name, pod_uid=pod.uid)

    def _path(self, pod: Pod) -> str:
        return paths.pod(pod.metadata.namespace, pod.metadata.name)


def patch(pod: Pod, status: PodStatus, job_id: JobID | None) -> bytes:
    """A strategic merge patch; what is no longer true is null, for leaving it out would keep it.

    That goes for a job id, too, that came with a copied manifest.
    """
    written = {"reason": None, "message": None} | msgspec.to_builtins(status)
    metadata: dict[str, object] = {"uid": pod.uid}
    if job_id is not None or pod.job_id != pod.own_job_id:
        metadata["annotations"] = {JOB_ID_ANNOTATION: job_id}
    return msgspec.json.encode({"metadata": metadata, "status": written})


def _tell_story(pod: Pod, status: PodStatus) -> None:
    if status.phase != pod.status.phase:
        log.info("pod.phase", pod=pod.full_name, pod_uid=pod.uid, before=pod.status.phase, phase=status.phase)
