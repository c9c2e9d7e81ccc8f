"""What a plugin's author imports, from one place.

    from interlink import sdk

    class MyPlugin: ...                                   # the coroutines of sdk.Plugin

    sdk.serve(MyPlugin(), "http://127.0.0.1:4000")

A batch system needs less than a whole plugin: an `sdk.Scheduler`, given to `sdk.BatchPlugin` together with a
`sdk.Runtime` such as `sdk.HostProcesses`.
"""

from interlink.aio.processes import Finished
from interlink.aio.processes import run as run_program
from interlink.model.errors import ConfigurationError
from interlink.model.ids import JobID, PodUID, Tag, parse_tag
from interlink.model.pods import Container, Pod
from interlink.model.statuses import ContainerState, ContainerStatus, Running, Terminated, Waiting
from interlink.sdk.batch.jobdir import Ending, JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.batch.runtime import Launch, Login, Mount, Pull, Runtime
from interlink.sdk.batch.scheduler import Life, Observation, Recalled, Scheduler
from interlink.sdk.errors import NotFound, OutcomeUnknown, Overloaded, Refused, Rejected, SDKError, Unreachable
from interlink.sdk.plugin import Chore, Metered, Noticing, Plugin, Recurring, Refreshing
from interlink.sdk.runtimes.apptainer import Apptainer
from interlink.sdk.runtimes.charliecloud import Charliecloud
from interlink.sdk.runtimes.enroot import Enroot
from interlink.sdk.runtimes.images import ImageSettings
from interlink.sdk.runtimes.none import HostProcesses
from interlink.sdk.runtimes.podman import Podman
from interlink.sdk.serving import run, serve
from interlink.sdk.tls import TLSFile
from interlink.wire.messages import (
    Accelerator,
    ContainerUsage,
    Job,
    JobStatus,
    LogOptions,
    LogRequest,
    Origin,
    PingAnswer,
    Refresh,
    Resources,
    RetrievedPodData,
    Taint,
)

__all__ = [
    "Accelerator",
    "Apptainer",
    "BatchPlugin",
    "Charliecloud",
    "Chore",
    "ConfigurationError",
    "Container",
    "ContainerState",
    "ContainerStatus",
    "ContainerUsage",
    "Ending",
    "Enroot",
    "Finished",
    "HostProcesses",
    "ImageSettings",
    "Job",
    "JobDirectory",
    "JobID",
    "JobStatus",
    "Launch",
    "Life",
    "LogOptions",
    "LogRequest",
    "Login",
    "Metered",
    "Mount",
    "NotFound",
    "Noticing",
    "Observation",
    "Origin",
    "OutcomeUnknown",
    "Overloaded",
    "PingAnswer",
    "Plugin",
    "Pod",
    "PodUID",
    "Podman",
    "Pull",
    "Recalled",
    "Recurring",
    "Refresh",
    "Refreshing",
    "Refused",
    "Rejected",
    "Resources",
    "RetrievedPodData",
    "Running",
    "Runtime",
    "SDKError",
    "Scheduler",
    "TLSFile",
    "Tag",
    "Taint",
    "Terminated",
    "Unreachable",
    "Waiting",
    "parse_tag",
    "run",
    "run_program",
    "serve",
]
