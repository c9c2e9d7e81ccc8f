"""One pod's create: may it run here, what is it given, and what its pod says meanwhile."""

import asyncio
from collections.abc import Callable

import structlog

from interlink.aio.failpoints import step
from interlink.kube.events import Note
from interlink.kubelet import metrics, telling
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.errors import MissingInput, Unsupported, Waits
from interlink.kubelet.inputs import resolving
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.sources import KubeSource
from interlink.kubelet.pods import admission, rejections
from interlink.kubelet.pods.admission import Objection, Verdict
from interlink.kubelet.pods.publishing import Publisher
from interlink.kubelet.pods.rejections import Rejections
from interlink.model.ids import JobID
from interlink.model.phases import JobView
from interlink.model.pods import Pod, Seen
from interlink.model.statuses import Waiting
from interlink.sdk import tracing
from interlink.sdk.errors import Refused, Rejected, SDKError

log = structlog.get_logger(__name__)


class Creator:
    def __init__(
        self,
        server: Server,
        source: KubeSource,
        surroundings: Callable[[], Surroundings],
        publisher: Publisher,
        tell: Callable[[Note], None],
        rejections: Rejections,
    ) -> None:
        self._server = server
        self._source = source
        self._surroundings = surroundings
        self._publisher = publisher
        self._tell = tell
        self._rejections = rejections

    async def create(self, seen: Seen, *, seen_at: float) -> float:
        """Submit the pod and write its job id, or what is in the way. Seconds after which to call again, else 0.

        `seen_at`, of the loop's clock: when the pod was first seen. Raises Waits, KubeError: call again after a pause.
        """
        objection = admission.objection(seen.pod)
        if objection is not None:
            await self._object(seen.pod, objection)
            return 0.0
        later_s = self._rejections.wait_s(seen.pod)
        if later_s:
            message = f"a pod of the same controller has just been rejected; tried again in {later_s:.0f} s"
            await self._say(seen.pod, Waiting(reason=rejections.REASON, message=message))
            return later_s
        await self._submit(seen, seen_at)
        return 0.0

    async def _submit(self, seen: Seen, seen_at: float) -> None:
        try:
            with step("vk.inputs"):
                request = await resolving.resolve(seen, self._source.since(seen_at), self._surroundings())
            with step("vk.create"), tracing.of_pod("interlink-service", "CreatePodVK", seen.pod):
                job_id = await self._server.create(request, seen.pod)
        except (Rejected, Unsupported) as error:
            await self._publisher.publish(seen.pod, JobView(rejected=str(error)), None)
        except MissingInput as error:
            await self._wait(seen.pod, "CreateContainerConfigError", error)
        except Refused as error:
            await self._wait(seen.pod, "JobRefused", error)
        except SDKError as error:
            await self._wait(seen.pod, "SiteUnreachable", error)
        else:
            await self._accepted(seen, job_id)
            metrics.CREATE.observe(asyncio.get_running_loop().time() - seen_at)

    async def _accepted(self, seen: Seen, job_id: JobID) -> None:
        log.info("pod.created", pod=seen.pod.full_name, pod_uid=seen.pod.uid, job_id=job_id)
        self._rejections.forgive(seen.pod)
        await self._publisher.publish(seen.pod, JobView(), job_id)

    async def _object(self, pod: Pod, objection: Objection) -> None:
        if objection.verdict is Verdict.IGNORE:
            view = JobView(waiting=Waiting(reason=objection.reason, message=objection.message))
        else:
            view = JobView(rejected=objection.message, rejection=objection.reason)
        if await self._publisher.publish(pod, view, None) is not None:
            log.info("pod.not-admitted", pod=pod.full_name, pod_uid=pod.uid, reason=objection.reason)

    async def _wait(self, pod: Pod, reason: str, error: Exception) -> None:
        """The pod says why it waits; then it is tried again."""
        self._tell(telling.of_waiting(pod, reason, error))
        await self._say(pod, Waiting(reason=reason, message=str(error)))
        raise Waits(f"{reason}: {error}") from error

    async def _say(self, pod: Pod, waiting: Waiting) -> None:
        await self._publisher.publish(pod, JobView(waiting=waiting), None)
