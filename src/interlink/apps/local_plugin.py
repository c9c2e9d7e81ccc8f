"""The local plugin, put together: job directories, host processes, HTTP."""

import sys

import structlog

from interlink.aio import files
from interlink.aio.supervising import run_repeatedly
from interlink.apps import lifecycle, runtimes
from interlink.model.errors import ConfigurationError
from interlink.plugins.local.scheduler import HostScheduler
from interlink.plugins.local.settings import LocalSettings
from interlink.sdk import hosting, serving
from interlink.sdk.batch.plugin import BatchPlugin

_SWEEP_S = 60.0

log = structlog.get_logger(__name__)


async def run(settings: LocalSettings) -> None:
    """Serve until SIGTERM or SIGINT; the jobs go on. Raises ConfigurationError."""
    try:
        files.make_directory(settings.root)
    except OSError as error:
        raise ConfigurationError(f"DataRootFolder: cannot use {settings.root}: {error.strerror}") from error
    scheduler = HostScheduler(settings.root, max_pods=settings.max_pods)
    runtime = runtimes.make(settings.runtime, python=sys.executable)
    plugin = BatchPlugin(settings.root, scheduler=scheduler, runtime=runtime)

    async def sweep() -> None:
        removed = await plugin.sweep(keep_s=settings.keep_deleted_jobs_s)
        if removed:
            log.info("plugin.swept", removed=removed)

    async with hosting.serving(serving.application(plugin), settings.address) as port:
        log.info("plugin.ready", address=str(settings.address), port=port, jobs=str(settings.root))
        await lifecycle.until_stopped(
            run_repeatedly("sweep", sweep, on_failure=lifecycle.log_failure, pause_s=_SWEEP_S),
        )
