"""How many commands a question about states costs, whatever has happened to the jobs."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from interlink.model.ids import JobID, PodUID, Tag
from interlink.model.pods import JOB_ID_ANNOTATION, Pod
from interlink.plugins.slurm.parsing import QueuedJob
from interlink.sdk.batch.jobdir import Intention, JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.runtimes.none import HostProcesses
from tests.unit.builders import pod
from tests.unit.plugins.slurm.test_slurm_scheduler import over


class Counted:
    """A Slurm that has forgotten every job, and counts what it is asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def queue(self) -> list[QueuedJob]:
        self.calls.append("squeue")
        return []

    async def accounting(self, *, job_ids: Sequence[JobID] = (), tag: Tag | None = None) -> list[QueuedJob]:
        self.calls.append("sacct")
        return []


@pytest.fixture
def slurm() -> Counted:
    return Counted()


@pytest.fixture
def plugin(tmp_path: Path, slurm: Counted) -> BatchPlugin:
    return BatchPlugin(tmp_path, scheduler=over(slurm), runtime=HostProcesses())


def known(root: Path, number: int, *, is_begun: bool) -> Pod:
    """A job with a directory, and with a record of its runner if it has begun."""
    found = pod(metadata={"name": "p", "namespace": "ns", "uid": f"uid-{number}"})
    directory = JobDirectory(root / found.uid)
    directory.create()
    directory.intend(Intention(cluster="c", node="vk", attempt=0, pod=found))
    directory.remember(JobID(str(number)))
    if is_begun:
        (directory.path / "claim-0").mkdir()
        state = {"name": "c", "state": {"running": {}}}
        (directory.path / "state.json").write_bytes(msgspec.json.encode({"phase": "running", "containers": [state]}))
    return found


def lost(number: int) -> Pod:
    """A job whose directory is gone; Kubernetes knows its id."""
    return pod(
        metadata={
            "name": "p",
            "namespace": "ns",
            "uid": str(PodUID(f"uid-{number}")),
            "annotations": {JOB_ID_ANNOTATION: str(number)},
        }
    )


async def test_two_commands_tell_the_state_of_all_jobs_t23(plugin: BatchPlugin, slurm: Counted, tmp_path: Path) -> None:
    """Waiting ones, begun ones that are gone from the queue, and ones without a directory, in one question."""
    pods = [
        known(tmp_path, 1, is_begun=False),
        known(tmp_path, 2, is_begun=True),
        known(tmp_path, 3, is_begun=True),
        lost(4),
        lost(5),
    ]
    for _ in range(3):
        slurm.calls.clear()
        await plugin.status(pods)

        assert slurm.calls.count("squeue") == 1
        assert slurm.calls.count("sacct") <= 1


async def test_no_command_is_run_for_no_jobs(plugin: BatchPlugin, slurm: Counted) -> None:
    """As when nothing lives."""
    await plugin.status([])

    assert slurm.calls == []
