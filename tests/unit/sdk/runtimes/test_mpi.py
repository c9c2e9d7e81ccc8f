"""Containers as ranks of an MPI program."""

import msgspec
import pytest

from interlink.model.pods import Container
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.apptainer import Apptainer
from interlink.sdk.runtimes.images import ImageSettings
from interlink.sdk.runtimes.mpi import FLAGS, Ranks
from interlink.sdk.runtimes.none import HostProcesses
from interlink.sdk.runtimes.podman import Podman
from tests.unit.builders import pod
from tests.unit.sdk.runtimes.launching import HERE, launched

HOST = Ranks(HostProcesses())
START = ["mpiexec", "-np", ("SLURM_NTASKS", "1")]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", []),
        ("--mca btl self,tcp", ["--mca", "btl", "self,tcp"]),
        ("-x 'A=b c' -x \"$HOME;`id`\"", ["-x", "A=b c", "-x", "$HOME;`id`"]),
    ],
)
def test_mpiexec_stands_before_the_command(flags: str, words: list[str]) -> None:
    """Outside the container, with as many ranks as the job has tasks; nothing of the flags is expanded."""
    found = launched(HOST, annotations={FLAGS: flags}, command=["sh", "x"])

    assert (found.launcher, found.argv) == ([*START, *words], ["sh", "x"])
    assert found.passed["SLURM_JOB_NODELIST"] == "SLURM_JOB_NODELIST"


def test_without_the_annotation_nothing_changes() -> None:
    """No launcher, and nothing of Slurm in the container."""
    assert launched(HOST) == launched(HostProcesses())


def test_init_containers_run_once() -> None:
    """They prepare for all ranks."""
    container = {"name": "i", "image": "x", "command": ["true"]}
    asking = pod(metadata={"annotations": {FLAGS: "-v"}}, initContainers=[container])
    found = HOST.launch(msgspec.convert(container, Container), [], pod=asking, directory=HERE)

    assert found.launcher == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("evil --x", "'evil' belongs to no option"),
        ("-x 'open", "cannot be read"),
        ("-x \0", "control characters"),
    ],
)
def test_flags_that_are_none_are_refused(flags: str, words: str) -> None:
    """The annotation is named."""
    with pytest.raises(Rejected, match=f"annotation {FLAGS}: {words}"):
        launched(HOST, annotations={FLAGS: flags})


def test_a_rank_in_a_container_keeps_what_mpiexec_tells_it() -> None:
    """Its variables: without them ranks do not find each other."""
    ranks = Ranks(Apptainer(ImageSettings(prefix="/images/")))

    assert "--cleanenv" not in launched(ranks, annotations={FLAGS: "-v"}).argv
    assert "--cleanenv" in launched(ranks).argv


def test_podman_runs_no_ranks() -> None:
    """Several containers of one name would replace each other."""
    with pytest.raises(Rejected, match="Podman runs a container once"):
        launched(Ranks(Podman(ImageSettings())), annotations={FLAGS: "-v"})
