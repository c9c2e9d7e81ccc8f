"""Service account tokens of running pods, renewed before they expire, where the site can replace a job's files."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import structlog
from msgspec import Raw

from interlink.aio import clock
from interlink.kube.errors import KubeError
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.errors import KubeletError
from interlink.kubelet.inputs import projections
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.objects import Objects
from interlink.kubelet.inputs.sources import DEFAULT_TOKEN_LIFE_S, KubeSource
from interlink.model.pods import Pod, Volume
from interlink.sdk.errors import SDKError

log = structlog.get_logger(__name__)

_SHARE_OF_LIFE = 0.8
_AGAIN = timedelta(minutes=5)
_AT_ONCE = 4


class Renewer:
    """Remembers nothing that it needs: after a restart the tokens of every pod that is old enough are renewed."""

    def __init__(
        self,
        server: Server,
        source: KubeSource,
        surroundings: Callable[[], Surroundings],
        pods: Callable[[], Iterable[Pod]],
    ) -> None:
        self._server = server
        self._source = source
        self._surroundings = surroundings
        self._pods = pods
        self._renewed: dict[str, datetime] = {}
        self._not_before: dict[str, datetime] = {}

    async def renew(self) -> None:
        """One round over all pods; what fails is tried again in five minutes."""
        now = clock.now()
        living = {pod.uid: pod for pod in self._pods()}
        for table in (self._renewed, self._not_before):
            for uid in table.keys() - living.keys():
                del table[uid]
        due = [pod for uid, pod in living.items() if self._is_due(uid, pod, now)]
        waiting = iter(due)

        async def work() -> None:
            for pod in waiting:
                await self._renew(pod)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(due))):
                group.create_task(work())

    def _is_due(self, uid: str, pod: Pod, now: datetime) -> bool:
        not_before = self._not_before.get(uid)
        return is_due(pod, self._renewed.get(uid), now) and (not_before is None or now >= not_before)

    async def _renew(self, pod: Pod) -> None:
        began = clock.now()
        objects = Objects(self._source.since(asyncio.get_running_loop().time()), pod)
        try:
            contents = [
                Raw(await projections.projected(volume, pod, objects, self._surroundings()))
                for volume in _with_tokens(pod)
            ]
            await self._server.refresh(pod, contents)
        except (KubeletError, KubeError, SDKError) as error:
            log.warning("token.not-renewed", pod=pod.full_name, pod_uid=pod.uid, error=str(error))
            self._not_before[pod.uid] = began + _AGAIN
        else:
            log.info("token.renewed", pod=pod.full_name, pod_uid=pod.uid)
            self._renewed[pod.uid] = began


def is_due(pod: Pod, renewed_at: datetime | None, now: datetime) -> bool:
    """Whether a token of the pod has lived for 80 % of its life; pure. The first ones are as old as the pod."""
    lives_s = [
        source.service_account_token.expiration_seconds or DEFAULT_TOKEN_LIFE_S
        for volume in _with_tokens(pod)
        for source in (volume.projected.sources or [] if volume.projected else [])
        if source.service_account_token is not None
    ]
    start = pod.status.start_time
    if not lives_s or pod.status.phase != "Running" or pod.is_deleting or start is None:
        return False
    since = renewed_at or datetime.fromisoformat(start)
    return (now - since).total_seconds() >= _SHARE_OF_LIFE * min(lives_s)


def _with_tokens(pod: Pod) -> list[Volume]:
    return [
        volume
        for volume in pod.spec.volumes or []
        if volume.projected and any(source.service_account_token for source in volume.projected.sources or [])
    ]
