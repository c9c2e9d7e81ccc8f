"""The server, put together: files store, plugin over HTTP, routes, the round of every interval."""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator

import structlog

from interlink.aio import files
from interlink.aio.files import LockedError
from interlink.aio.supervising import run_repeatedly
from interlink.apps import lifecycle
from interlink.model.errors import ConfigurationError
from interlink.sdk import hosting
from interlink.sdk.client import PluginClient
from interlink.sdk.transport import Link
from interlink.server import routes
from interlink.server.errors import StoreUnavailable
from interlink.server.ledger import Ledger
from interlink.server.service import Service
from interlink.server.settings import ServerSettings
from interlink.server.store.files import FilesStore

log = structlog.get_logger(__name__)


async def run(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let writes in flight finish. Raises ConfigurationError."""
    with _only_server(settings):
        async with _plugin(settings) as plugin:
            service = Service(
                Ledger(FilesStore(settings.directory)), plugin, job_lost_grace_s=settings.job_lost_grace_s
            )
            await _restore(service)
            async with hosting.serving(routes.application(service), settings.address) as port:
                log.info("server.ready", address=str(settings.address), port=port, plugin=str(settings.plugin))
                rounds = run_repeatedly(
                    "round", service.round, on_failure=lifecycle.log_failure, pause_s=settings.status_interval_s
                )
                await lifecycle.until_stopped(rounds)


async def _restore(service: Service) -> None:
    try:
        await service.restore()
    except StoreUnavailable as error:
        raise ConfigurationError(f"{error}; set INTERLINK_DIR to a directory that can be written") from error


@contextlib.contextmanager
def _only_server(settings: ServerSettings) -> Iterator[None]:
    """Two servers on one directory would overwrite each other's records."""
    try:
        files.make_directory(settings.directory)
        lock = files.lock_exclusively(
            settings.directory / "server.lock", f"process {os.getpid()} at {settings.address}"
        )
    except OSError as error:
        raise ConfigurationError(f"cannot use INTERLINK_DIR {settings.directory}: {error.strerror}") from error
    except LockedError as error:
        raise ConfigurationError(f"another server uses {settings.directory}: {error.holder}") from error
    with lock:
        yield


@contextlib.asynccontextmanager
async def _plugin(settings: ServerSettings) -> AsyncIterator[PluginClient]:
    link = Link(settings.plugin, peer="plugin")
    try:
        yield PluginClient(link)
    finally:
        await link.close()
