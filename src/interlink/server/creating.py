"""Create, once: durable intent, plugin, durable job id, answer."""

import structlog

from interlink.aio import clock
from interlink.aio.failpoints import step
from interlink.aio.supervising import KeyedLocks, run_to_end
from interlink.model import ids, records
from interlink.model.ids import JobID, Owner, PodUID
from interlink.model.pods import Pod
from interlink.model.records import Decision, Record
from interlink.sdk.client import PluginClient
from interlink.sdk.errors import OutcomeUnknown, Refused, Rejected
from interlink.server import matching
from interlink.server.ledger import Ledger
from interlink.wire.messages import Origin, PodCreateRequest

log = structlog.get_logger(__name__)


class Creator:
    """One submission for a pod UID, however often and from however many callers it is asked for."""

    def __init__(self, ledger: Ledger, plugin: PluginClient) -> None:
        self._ledger = ledger
        self._plugin = plugin
        self._locks = KeyedLocks()

    def is_creating(self, uid: PodUID) -> bool:
        return self._locks.is_held(uid)

    async def create(self, request: PodCreateRequest, pod: Pod, owner: Owner, *, session: str) -> JobID:
        """The job's id, durable here. A submission that has begun is brought to its end even if the caller goes away.

        Raises Rejected and Refused (definitive), Unreachable and OutcomeUnknown (repeat), StoreUnavailable.
        """
        uid = ids.pod_uid(pod.uid)
        async with self._locks.hold(uid):
            return await run_to_end(self._create(request, pod, owner, session))

    async def _create(self, request: PodCreateRequest, pod: Pod, owner: Owner, session: str) -> JobID:
        record = self._ledger.get(PodUID(pod.uid))
        match records.decide_create(record, owner):
            case Decision.ANSWER:
                assert record is not None
                assert record.job_id is not None
                return record.job_id
            case Decision.REJECTED:
                assert record is not None
                raise Rejected(record.rejected or "")
            case Decision.REFUSE_DELETED:
                raise Refused(f"pod {pod.full_name} ({pod.uid}) has been deleted; no job is started for it")
            case Decision.REFUSE_OWNER:
                assert record is not None
                raise Refused(f"pod {pod.uid} belongs to {record.owner}, not to {owner}")
            case Decision.ASK_FIRST:
                assert record is not None
                found = await self._find(record)
                if found is not None:
                    return await self._accept(record, found)
            case Decision.BEGIN:
                record = records.begun(pod, owner, clock.now())
                with step("server.intent"):
                    await self._ledger.commit([record])
        return await self._accept(record, await self._submit(request, pod, record, session))

    async def _submit(self, request: PodCreateRequest, pod: Pod, record: Record, session: str) -> JobID:
        origin = Origin(cluster=record.owner.cluster, node=record.owner.node, attempt=record.attempt)
        try:
            with step("server.forward"):
                return await self._plugin.create(matching.retrieved(request, pod, origin), session=session)
        except Rejected as error:
            await self._ledger.commit([records.rejected(record, str(error), clock.now())])
            raise
        except OutcomeUnknown as error:
            found = await self._find(record)
            if found is None:
                raise
            log.info("job.found", pod_uid=record.pod_uid, job_id=found, after=str(error))
            return found

    async def _find(self, record: Record) -> JobID | None:
        """The id of the job that the plugin already has for this pod. Raises when it cannot be asked."""
        answers, _ = await self._plugin.status([record.pod])
        return next((JobID(a.job_id) for a in answers if a.uid == record.pod_uid and a.job_id), None)

    async def _accept(self, record: Record, job_id: JobID) -> JobID:
        newest = self._ledger.get(record.pod_uid) or record
        with step("server.job-id"):
            await self._ledger.commit([records.accepted(newest, job_id, clock.now())])
        log.info("job.accepted", pod=record.pod.full_name, pod_uid=record.pod_uid, job_id=job_id)
        return job_id
