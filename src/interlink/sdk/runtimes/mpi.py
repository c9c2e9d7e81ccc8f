"""MPI: a container's command behind `mpiexec`, which runs it once for each task of the job; pure.

`mpiexec` is the machine's own and stands outside the container: it starts the runtime as often as there are tasks.
"""

from collections.abc import Sequence

import msgspec

from interlink.model.pods import Container, Pod
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount, Runtime
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import common

FLAGS = "slurm-job.vk.io/mpi-flags"
_OF_THE_JOB = (
    "SLURM_CLUSTER_NAME", "SLURM_CONF", "SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_DISTRIBUTION",
    "SLURM_JOBID", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES", "SLURM_NODEID", "SLURM_NODELIST", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE", "SLURMD_NODENAME",
)  # fmt: skip
"""By these an mpiexec knows the nodes of its job."""


def is_wanted(container: Container, pod: Pod) -> bool:
    """Init containers prepare for all ranks, so they run once."""
    is_init = any(container.name == other.name for other in pod.spec.init_containers or [])
    return FLAGS in (pod.metadata.annotations or {}) and not is_init


class Ranks:
    """A runtime whose containers run as ranks where their pod says so."""

    def __init__(self, inner: Runtime) -> None:
        self._inner = inner

    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        launch = self._inner.launch(container, mounts, pod=pod, directory=directory, logins=logins)
        if not is_wanted(container, pod):
            return launch
        flags = _words((pod.metadata.annotations or {})[FLAGS])
        return msgspec.structs.replace(
            launch,
            launcher=["mpiexec", "-np", ("SLURM_NTASKS", "1"), *flags],
            passed={name: name for name in _OF_THE_JOB} | launch.passed,
        )


def _words(text: str) -> list[str]:
    """As a shell would split them. Raises Rejected.

    What begins with no option would be the program to run, in place of the container.
    """
    found = common.shell_words(text, place=f"annotation {FLAGS}")
    if found and not found[0].startswith("-"):
        raise Rejected(f"annotation {FLAGS}: {found[0][:60]!r} belongs to no option")
    return found
