"""The local plugin, put together: job directories, host processes, HTTP."""

import sys

from interlink.apps import runtimes
from interlink.apps.excluding import only_one
from interlink.plugins.local.scheduler import HostScheduler
from interlink.plugins.local.settings import LocalSettings
from interlink.sdk import serving
from interlink.sdk.batch.jobdir import LOCK
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.runtimes import common


async def run(settings: LocalSettings) -> None:
    """Serve until SIGTERM or SIGINT; the jobs go on. Raises ConfigurationError."""
    root, address = settings.root, settings.listening.address
    with only_one(root, kind="plugin", key="DataRootFolder", lock=LOCK, address=address):
        await serving.run(_plugin(settings), settings.listening)


def _plugin(settings: LocalSettings) -> BatchPlugin:
    return BatchPlugin(
        settings.root,
        scheduler=HostScheduler(settings.root, max_pods=settings.max_pods),
        runtime=runtimes.make(settings.runtime, python=sys.executable),
        keep_deleted_s=settings.keep_deleted_jobs_s,
        log_limits=settings.log_limits,
        # The job's environment is the plugin's own here, in which there may be what is not for pods.
        script_variables=[*common.OF_THE_MACHINE, *common.GPU_VARIABLES, *settings.runtime.passed],
    )
