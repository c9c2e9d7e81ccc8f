"""What Slurm is asked for, from a pod's resources and from its annotations."""

from typing import Any

import pytest

from interlink.testing.slurm import SlurmSite
from tests.slurm.kubectl.conftest import Configure
from tests.support.pods import Pods
from tests.support.slurm_commands import Commands
from tests.support.slurm_jobs import FLAGS, submitted

pytestmark = pytest.mark.usefixtures("programs")

HELD = {FLAGS: "--hold"}


def options(pods: Pods, commands: Commands) -> list[str]:
    """What sbatch was called with for the pod, once."""
    (call,) = commands.calls("sbatch", about=pods.uid("p"))
    return call.words


def shown(pods: Pods, slurm: SlurmSite) -> dict[str, str]:
    """The job as `scontrol show job` has it."""
    words = slurm.run("scontrol", "show", "job", pods.wait_job_id("p")).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


# --- flags -----------------------------------------------------------------------------------------------------------


def test_flags_reach_slurm_as_written_t19(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """Each once; the pod's own memory option stands in place of the generated one."""
    flags = "-H -p main --gres=gpu:1 --comment='a b' -t 00:10:00 --mem-per-cpu=4G"
    document = pods.pod("p", annotations={FLAGS: flags})
    limits = {"limits": {"cpu": "2", "memory": "1Gi"}}
    document["spec"]["containers"] = [pods.container("c", "true", resources=limits)]
    pods.apply(document)
    job = shown(pods, slurm)

    given = options(pods, commands)
    names = [word.split("=")[0] for word in given]
    for word in ("--partition=main", "--gres=gpu:1", "--comment=a b", "--time=00:10:00", "--mem-per-cpu=4G"):
        assert word in given
        assert names.count(word.split("=")[0]) == 1
    assert "--mem" not in names
    assert (job["Partition"], job["TresPerNode"], job["Comment"]) == ("main", "gres:gpu:1", "a")
    assert (job["TimeLimit"], job["MinMemoryCPU"], job["NumCPUs"]) == ("00:10:00", "4G", "2")


@pytest.mark.parametrize("flags", ["-t 5\n#SBATCH --uid=0", "--wrap='touch /tmp/x'", "--uid=0"])
def test_flags_that_reach_beyond_the_job_are_refused_t19(
    pods: Pods, commands: Commands, slurm: SlurmSite, flags: str
) -> None:
    """With a message on the pod; nothing is submitted."""
    pods.start("p", "true", annotations={FLAGS: flags})
    status = pods.wait("p", "Failed")["status"]

    assert f"annotation {FLAGS}" in status["message"]
    assert commands.calls("sbatch", about=pods.uid("p")) == []
    assert submitted(slurm, pods.uid("p")) == set()
    assert pods.starts() == {}


# --- resources -------------------------------------------------------------------------------------------------------


def amounts(**limits: str) -> dict[str, Any]:
    return {"resources": {"limits": limits}}


def test_parts_of_a_cpu_are_a_whole_one_t20a(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """500m and 100Mi: one CPU, and no less memory."""
    start(pods, pods.container("c", "true", **amounts(cpu="500m", memory="100Mi")))

    job = shown(pods, slurm)

    assert (job["NumCPUs"], job["MinMemoryNode"]) == ("1", "100M")


def test_a_pod_that_asks_for_nothing_t20b(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """The site's defaults, and no zero."""
    start(pods, pods.container("c", "true"))

    job = shown(pods, slurm)

    assert (job["NumCPUs"], job["MinMemoryCPU"]) == ("1", "100M")
    assert not [word for word in options(pods, commands) if word.startswith("--mem") or word.endswith("=0")]


def test_the_larger_of_init_and_the_others_together_t20c(pods: Pods, slurm: SlurmSite) -> None:
    """CPUs of the init container, memory of the others."""
    start(
        pods,
        pods.container("a", "true", **amounts(cpu="1500m", memory="1Gi")),
        pods.container("b", "true", **amounts(cpu="1", memory="2Gi")),
        initContainers=[pods.container("i", "true", **amounts(cpu="4", memory="512Mi"))],
    )

    job = shown(pods, slurm)

    assert (job["NumCPUs"], job["MinMemoryNode"]) == ("4", "3G")


def test_gpus_t20d(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """As many as asked for, and the program is told which."""
    start(pods, pods.container("c", "echo $CUDA_VISIBLE_DEVICES", **amounts(**{"nvidia.com/gpu": "2"})))
    job = shown(pods, slurm)
    slurm.run("scontrol", "release", pods.wait_job_id("p"))
    pods.wait("p", "Succeeded")

    assert job["TresPerNode"] == "gres:gpu:2"
    assert len(set(pods.kubectl("logs", "p").strip().split(","))) == 2


def test_a_site_without_memory_options_t20e(
    pods: Pods, commands: Commands, slurm: SlurmSite, configured: Configure
) -> None:
    """DropOptions: no --mem, whatever the pod says; its CPUs count."""
    configured(DropOptions=["mem"])
    start(pods, pods.container("c", "true", **amounts(cpu="2", memory="1Gi")))
    job = shown(pods, slurm)

    assert job["NumCPUs"] == "2"
    assert not [word for word in options(pods, commands) if word.startswith("--mem")]


def start(pods: Pods, *containers: dict[str, Any], **spec: Any) -> None:
    """A pod whose job is held, so that it can be looked at."""
    pods.start("p", annotations=HELD, containers=list(containers), **spec)
