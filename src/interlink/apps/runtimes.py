"""The one place that chooses how containers are started."""

from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.runtimes import apptainer, podman
from interlink.sdk.runtimes.apptainer import Apptainer
from interlink.sdk.runtimes.charliecloud import Charliecloud
from interlink.sdk.runtimes.enroot import Enroot
from interlink.sdk.runtimes.none import HostProcesses
from interlink.sdk.runtimes.podman import Podman
from interlink.sdk.runtimes.settings import RuntimeSettings


def make(settings: RuntimeSettings, *, python: str) -> Runtime:
    """python: the interpreter on the machines of the jobs."""
    program, passed, options = settings.program_name, settings.passed, settings.options
    match settings.kind:
        case "apptainer" | "singularity":
            options = options or list(apptainer.DEFAULT_OPTIONS)
            return Apptainer(settings.images, program=program, options=options, passed=passed)
        case "charliecloud":
            return Charliecloud(settings.images, program=program, options=options, python=python, passed=passed)
        case "podman":
            options = options or list(podman.DEFAULT_OPTIONS)
            return Podman(settings.images, program=program, options=options, passed=passed)
        case "enroot":
            return Enroot(settings.images, program=program, options=options, passed=passed)
        case _:
            return HostProcesses(python, passed=passed)
