"""The node's HTTPS endpoint, put together: its certificate, who may call it, and what it shows."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

from interlink.aio.backoff import Backoff
from interlink.aio.supervising import run_repeatedly
from interlink.apps import lifecycle
from interlink.kube.client import KubeClient
from interlink.kubelet.certificates import keeping
from interlink.kubelet.certificates.contexts import ServingTLS
from interlink.kubelet.certificates.keeping import Authority, AuthorityFile, PublishedAuthority, Source
from interlink.kubelet.certificates.requesting import Requester
from interlink.kubelet.dialects.server import Server
from interlink.kubelet.endpoint import configuration, guarding, routes, usage
from interlink.kubelet.endpoint.reviewing import Reviewer
from interlink.kubelet.endpoint.usage import Usages
from interlink.kubelet.settings import KubeletSettings
from interlink.model.pods import Seen
from interlink.sdk import hosting
from interlink.sdk.addresses import Address


class Endpoint:
    """Raises ConfigurationError for certificate files that cannot be used."""

    def __init__(
        self,
        settings: KubeletSettings,
        client: KubeClient,
        server: Server,
        pods: Callable[[], Sequence[Seen]],
        readiness: hosting.Readiness,
    ) -> None:
        self._settings = settings
        self._source = _source(settings, client)
        self._tls = ServingTLS(self._source.first())
        self._authority = _authority(settings, client)

        async def usages() -> Usages:
            return usage.by_container(await server.usage())

        node = routes.Node(
            name=settings.node_name,
            configuration=configuration.document(settings),
            pods=pods,
            open_log=server.logs,
            usages=usages,
        )
        guard = guarding.guard(Reviewer(client, settings.node_name)) if settings.is_authenticating else None
        self._app = routes.application(node, readiness, guard)

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        address = Address(scheme="https", host=self._settings.listen_host, port=self._settings.listen_port)
        async with hosting.serving(self._app, address, tls=self._tls):
            yield

    def loops(self) -> Iterator[Coroutine[None, None, None]]:
        """What runs beside it, for ever."""
        yield run_repeatedly(
            "certificate",
            lambda: self._source.renew(self._tls),
            on_failure=lifecycle.log_trouble,
            backoff=Backoff(base_s=10.0, cap_s=600.0),
        )
        if self._settings.is_authenticating:
            yield run_repeatedly(
                "client-authority",
                lambda: keeping.follow_authority(self._authority, self._tls),
                on_failure=lifecycle.log_trouble,
                pause_s=self._authority.pause_s,
                backoff=Backoff(base_s=1.0, cap_s=self._authority.pause_s),
            )


def _source(settings: KubeletSettings, client: KubeClient) -> Source:
    if settings.certificate is not None:
        return keeping.Files(*settings.certificate)
    if settings.csr_signer is None:
        return keeping.SelfSigned(settings.node_name, settings.node_ip)
    requester = Requester(client, node_name=settings.node_name, node_ip=settings.node_ip, signer=settings.csr_signer)
    directory = settings.certificate_directory
    shelf = keeping.Shelf(directory / f"{settings.node_name}.pem") if directory else None
    return keeping.FromCluster(requester, settings.node_name, settings.node_ip, shelf)


def _authority(settings: KubeletSettings, client: KubeClient) -> Authority:
    return AuthorityFile(settings.client_authority) if settings.client_authority else PublishedAuthority(client)
