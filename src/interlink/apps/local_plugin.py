"""The local plugin, put together: job directories, host processes, HTTP."""

import sys

from interlink.aio import files
from interlink.apps import runtimes
from interlink.model.errors import ConfigurationError
from interlink.plugins.local.scheduler import HostScheduler
from interlink.plugins.local.settings import LocalSettings
from interlink.sdk import serving
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.runtimes import common


async def run(settings: LocalSettings) -> None:
    """Serve until SIGTERM or SIGINT; the jobs go on. Raises ConfigurationError."""
    try:
        files.make_directory(settings.root)
    except OSError as error:
        raise ConfigurationError(f"DataRootFolder: cannot use {settings.root}: {error.strerror}") from error
    plugin = BatchPlugin(
        settings.root,
        scheduler=HostScheduler(settings.root, max_pods=settings.max_pods),
        runtime=runtimes.make(settings.runtime, python=sys.executable),
        keep_deleted_s=settings.keep_deleted_jobs_s,
        log_limits=settings.log_limits,
        # The job's environment is the plugin's own here, in which there may be what is not for pods.
        script_variables=[*common.OF_THE_MACHINE, *common.GPU_VARIABLES, *settings.runtime.passed],
    )
    await serving.run(plugin, settings.listening)
