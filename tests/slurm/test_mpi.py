"""Containers as ranks in jobs of a real Slurm. No MPI is needed: mpiexec is a script that says what it was given."""

from pathlib import Path

import pytest

from tests.support.slurm import Bench

MPIEXEC = """#!/bin/sh
printf '%s|' "$@" > "$RECORD"
[ "$1" = -np ] || exit 70
ranks=$2; shift 2
while [ "$1" != sh ]; do shift; done
for rank in $(seq "$ranks"); do PMI_RANK=$rank "$@" & done
wait
"""
FLAGS = "slurm-job.vk.io/flags"
MPI_FLAGS = "slurm-job.vk.io/mpi-flags"


@pytest.fixture
def record(bench: Bench, tmp_path: Path) -> Path:
    """Where mpiexec writes its words; it is on the path of the site's jobs."""
    record = tmp_path / "record"
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mpiexec"
    program.write_text(MPIEXEC.replace("$RECORD", str(record)))
    program.chmod(0o755)
    bench.restart(CommandPrefix=f"export PATH={tmp_path}/bin:$PATH")
    return record


async def test_a_container_runs_behind_mpiexec(bench: Bench, record: Path) -> None:
    """Once for each task; init containers run once, and the flags reach mpiexec as a shell would split them."""
    uid = bench.pod(
        annotations={FLAGS: "--ntasks=2", MPI_FLAGS: "--bind-to 'a core' -x $HOME"},
        containers=[bench.container("c0", "echo rank $PMI_RANK of $SLURM_JOB_ID")],
        initContainers=[bench.container("i0", "exit 0")],
    )
    await bench.create(uid)

    await bench.wait(uid, "0 Completed")

    assert bench.starts() == {"i0": 1, "c0": 2}
    job_id = bench.job_id(uid)
    assert sorted((await bench.logs(uid)).splitlines()) == [f"rank {n} of {job_id}" for n in (1, 2)]
    assert record.read_text().split("|")[:6] == ["-np", "2", "--bind-to", "a core", "-x", "$HOME"]


async def test_a_job_without_tasks_has_one_rank(bench: Bench, record: Path) -> None:
    """As Slurm has it; without flags of its own."""
    uid = await bench.start("exit 0", annotations={MPI_FLAGS: ""})
    await bench.wait(uid, "0 Completed")

    assert record.read_text().split("|")[:3] == ["-np", "1", "sh"]


async def test_a_site_without_mpiexec(bench: Bench) -> None:
    """The container fails, and says why."""
    bench.restart(CommandPrefix="export PATH=/nowhere")
    uid = await bench.start("exit 0", annotations={MPI_FLAGS: "-v"})
    await bench.wait(uid, "128 StartError")

    assert await bench.message(uid) == "cannot start: mpiexec: not found on this machine"
    assert bench.starts() == {}


async def test_a_deleted_pods_ranks_end(bench: Bench, record: Path) -> None:
    """All of them."""
    uid = await bench.start("sleep 600", annotations={FLAGS: "--ntasks=2", MPI_FLAGS: "-v"})
    await bench.until_starts(2)

    await bench.delete(uid, grace_s=5)

    await bench.wait(uid, "143")
    assert record.exists()
