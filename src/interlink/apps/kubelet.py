"""The virtual kubelet, put together: Kubernetes on one side, the interLink server on the other."""

import asyncio

import msgspec
import structlog

from interlink.aio import identity
from interlink.aio.backoff import Backoff
from interlink.aio.supervising import run_repeatedly
from interlink.apps import lifecycle
from interlink.apps.endpoint import Endpoint
from interlink.kube import credentials, paths
from interlink.kube.client import KubeClient
from interlink.kube.errors import KubeError, Unavailable
from interlink.kube.events import Events
from interlink.kube.leases import Election
from interlink.kubelet import telling
from interlink.kubelet.dialects.either import EitherDialect
from interlink.kubelet.dialects.existing import ExistingServer
from interlink.kubelet.dialects.own import Remote
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.inputs.fields import Surroundings
from interlink.kubelet.inputs.sources import KubeSource
from interlink.kubelet.node import keeping as nodekeeping
from interlink.kubelet.node.heart import Heart
from interlink.kubelet.node.keeping import NodeKeeper
from interlink.kubelet.pods.podloop import PodLoop
from interlink.kubelet.pods.renewing import Renewer
from interlink.kubelet.settings import KubeletSettings
from interlink.model import ids
from interlink.model.errors import ConfigurationError
from interlink.model.ids import Owner
from interlink.model.phases import Place
from interlink.sdk import hosting, profiles, running
from interlink.sdk.transport import Link
from interlink.wire import messages

log = structlog.get_logger(__name__)

_ANNOUNCE_S = 60.0
_PING_S = 10.0
_RENEW_S = 30.0
_CREATE_HOLD_S = 5


async def run(settings: KubeletSettings) -> None:
    """Be the node until SIGTERM or SIGINT, as soon as no other instance is. Raises ConfigurationError, and
    Superseded when another instance has taken over."""
    stopped = hosting.stop_signal()
    async with KubeClient(credentials.load(settings.kubeconfig)) as client:
        election = Election(client, paths.NODE_LEASES, f"interlink-{settings.node_name}", me=identity.of_this_process())
        try:
            owner = await running.unless_stopped(_elected(settings, client, election), stopped)
            if owner is not None:
                await _be_active(settings, client.guarded(election.check), owner, election, stopped)
        finally:
            await election.release()


async def _elected(settings: KubeletSettings, client: KubeClient, election: Election) -> Owner:
    """Who we are, once we may act."""
    owner = ids.owner(await _cluster_id(client, settings), settings.node_name)
    await election.acquire()
    return owner


async def _be_active(
    settings: KubeletSettings, client: KubeClient, owner: Owner, election: Election, stopped: asyncio.Event
) -> None:
    link = Link(
        settings.server,
        peer="interLink server",
        tls=settings.server_tls,
        token_file=settings.token_file,
        headers={
            messages.CLUSTER_HEADER: owner.cluster,
            messages.NODE_HEADER: owner.node,
            messages.HOLD_HEADER: str(_CREATE_HOLD_S),
        },
    )
    try:
        server = EitherDialect(
            Remote(link, owner, may_act=election.check),
            ExistingServer(link, may_act=election.check),
            asyncio.get_running_loop().time,
        )
        await _run(settings, client, server, election, stopped)
    finally:
        await link.close()


async def _run(
    settings: KubeletSettings, client: KubeClient, server: Server, election: Election, stopped: asyncio.Event
) -> None:
    events = Events(client, component="virtual-kubelet", host=settings.node_name)
    events.tell(telling.of_start(settings.node_name))
    heart = Heart(NodeKeeper(client, settings), server, events, settings.node_name)

    def surroundings() -> Surroundings:
        return Surroundings(
            host_ip=settings.node_ip,
            pod_ip=settings.node_ip,
            allocatable={**settings.resources, **heart.site.resources},
            kubernetes=settings.kubernetes_for_pods,
            ca_certificate=settings.ca_for_pods,
            has_projected_volumes=settings.has_projected_volumes,
            job_script_builder_url=settings.job_script_builder_url,
        )

    source = KubeSource(client)
    loop = PodLoop(
        client,
        server,
        source,
        surroundings,
        place=Place(host_ip=settings.node_ip, pod_ip=settings.node_ip),
        pods_path=paths.PODS,
        pods_params={"fieldSelector": f"spec.nodeName={settings.node_name}"},
        concurrent_creates=settings.concurrent_creates,
        tell=events.tell,
    )

    def problems() -> list[str]:
        waiting = [] if loop.reflector.synced.is_set() else ["the pod list has not been read yet"]
        return waiting + ([heart.site.trouble] if heart.site.trouble else [])

    async def drain() -> None:
        await heart.drain(loop.pods, within_s=settings.drain_s)

    renewer = Renewer(server, source, surroundings, lambda: [seen.pod for seen in loop.pods()])
    endpoint = Endpoint(settings, client, server, loop.pods, problems)
    async with profiles.serving(settings.profiles), endpoint.serving():
        log.info("kubelet.ready", node=settings.node_name, server=str(settings.server), port=settings.listen_port)
        await running.until_stopped(
            election.hold(),
            loop.reflector.run(),
            loop.run(),
            events.run(),
            *endpoint.loops(),
            run_repeatedly("jobs", loop.follow_jobs, on_failure=lifecycle.log_trouble),
            run_repeatedly("announce", loop.jobs.announce, on_failure=lifecycle.log_trouble, pause_s=_ANNOUNCE_S),
            run_repeatedly("tokens", renewer.renew, on_failure=lifecycle.log_trouble, pause_s=_RENEW_S),
            run_repeatedly("node", heart.beat, on_failure=lifecycle.log_trouble, pause_s=_PING_S),
            run_repeatedly("lease", heart.renew, on_failure=lifecycle.log_trouble, pause_s=nodekeeping.LEASE_RENEWAL_S),
            stopped=stopped,
            before_end=drain if settings.drain_s else None,
        )


class _Meta(msgspec.Struct):
    uid: str


class _Namespace(msgspec.Struct):
    metadata: _Meta


async def _cluster_id(client: KubeClient, settings: KubeletSettings) -> str:
    """The configured name, else the UID of the namespace kube-system, which lives as long as the cluster.

    Waits for an API server that is away. Raises ConfigurationError when the namespace may not be read.
    """
    if settings.cluster_id:
        return settings.cluster_id
    delays = Backoff()
    while True:
        try:
            answer = await client.get(paths.namespace("kube-system"))
            break
        except Unavailable as error:
            log.warning("kubernetes.away", error=str(error))
            await asyncio.sleep(delays.next_s())
        except KubeError as error:
            raise ConfigurationError(f"cannot learn the cluster's identity: {error}; set ClusterID instead") from error
    return msgspec.json.decode(answer, type=_Namespace).metadata.uid.split("-", maxsplit=1)[0]
