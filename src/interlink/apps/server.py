"""The server, put together: files store, plugin over HTTP, routes, the round of every interval."""

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import structlog

from interlink.aio.supervising import run_repeatedly
from interlink.apps import lifecycle
from interlink.apps.excluding import only_one
from interlink.model.errors import ConfigurationError
from interlink.sdk import hosting, profiles, running
from interlink.sdk.client import PluginClient
from interlink.sdk.transport import Link
from interlink.server import routes
from interlink.server.breaker import Breaker
from interlink.server.creating import Creator, Limits
from interlink.server.deleting import Deleter
from interlink.server.dispatching import Dispatcher
from interlink.server.errors import StoreUnavailable
from interlink.server.jobscript import BuilderService, GoTemplate, NoScripts, ScriptMaker
from interlink.server.ledger import Ledger
from interlink.server.owners import Owners
from interlink.server.polling import Poller
from interlink.server.service import Service
from interlink.server.settings import ServerSettings
from interlink.server.store.files import FilesStore
from interlink.server.sweeping import Sweeper

_RENDERER = "interlink-go-template"

log = structlog.get_logger(__name__)


async def run(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let writes in flight finish. Raises ConfigurationError and NewerFormat."""
    with only_one(settings.directory, kind="server", key="INTERLINK_DIR", lock="server.lock", address=settings.address):
        async with _plugin(settings) as plugin:
            ledger = Ledger(FilesStore(settings.directory))
            limits = Limits(pods=settings.max_pods, waiting_creates=settings.max_waiting_creates)
            creator = Creator(ledger, plugin, _scripts(settings), limits)
            service = _service(settings, ledger, plugin, creator)
            await _restore(service)
            async with creator:
                await _serve(settings, service)


def _scripts(settings: ServerSettings) -> ScriptMaker:
    """A builder that a virtual kubelet names comes before the template."""
    if settings.template:
        return BuilderService(settings.scripts, GoTemplate(_renderer(), settings.template))
    return BuilderService(settings.scripts, NoScripts()) if settings.scripts else NoScripts()


def _renderer() -> Path:
    found = shutil.which(_RENDERER)
    if found is None:
        raise ConfigurationError(
            f"JobScriptTemplate: {_RENDERER} is not on PATH; build it once with Go: cd tools/gotemplate && go build"
            f" -o /usr/local/bin/{_RENDERER} ."
        )
    return Path(found)


def _service(settings: ServerSettings, ledger: Ledger, plugin: Dispatcher, creator: Creator) -> Service:
    owners = Owners(ledger, tombstone_lifetime_s=settings.tombstone_lifetime_s)
    return Service(
        ledger,
        plugin,
        creator,
        Deleter(ledger, plugin, creator),
        Poller(
            ledger,
            plugin,
            creator,
            job_lost_grace_s=settings.job_lost_grace_s,
            interval_s=settings.status_interval_s,
        ),
        Sweeper(ledger, plugin, owners),
        owners,
    )


async def _serve(settings: ServerSettings, service: Service) -> None:
    app = routes.application(service, create_hold_s=settings.create_hold_s, body_limit_bytes=settings.max_body_bytes)
    async with profiles.serving(settings.profiles), hosting.serving(app, settings.address, tls=settings.tls) as port:
        log.info("server.ready", address=str(settings.address), port=port, plugin=str(settings.plugin))
        trouble = lifecycle.log_trouble

        def pause_s() -> float:
            return max(0.0, settings.status_interval_s - service.waited_s)

        await running.until_stopped(
            run_repeatedly("round", service.round, on_failure=trouble, pause_s=pause_s),
            run_repeatedly("sweep", service.sweep, on_failure=trouble, pause_s=settings.sweep_interval_s),
        )


async def _restore(service: Service) -> None:
    try:
        await service.restore()
    except StoreUnavailable as error:
        raise ConfigurationError(f"{error}; set INTERLINK_DIR to a directory that can be written") from error


@contextlib.asynccontextmanager
async def _plugin(settings: ServerSettings) -> AsyncIterator[Dispatcher]:
    link = Link(settings.plugin, peer="plugin", tls=settings.plugin_tls, token_file=settings.plugin_token_file)
    try:
        yield Dispatcher(PluginClient(link, takes_lists=settings.plugin_takes_lists), Breaker())
    finally:
        await link.close()
