"""What the end of scancel means."""

from pathlib import Path

import pytest

from interlink.model.ids import JobID
from interlink.plugins.slurm.commands import Programs, Slurm
from interlink.sdk.errors import Unreachable


def slurm(folder: Path, script: str) -> Slurm:
    scancel = folder / "scancel"
    scancel.write_text(f"#!/bin/sh\n{script}\n")
    scancel.chmod(0o755)
    return Slurm(Programs(scancel=str(scancel)), {"PATH": "/usr/bin:/bin"}, user="")


@pytest.mark.parametrize(
    "script",
    [
        "exit 0",
        "exit 229",
        "exit 225",
        "echo 'scancel: error: Kill job error on job id 7: Invalid job id specified' >&2; exit 1",
        "echo 'scancel: error: Job/step already completing or completed' >&2; exit 1",
    ],
)
async def test_a_job_that_has_ended_meanwhile_needs_no_cancel(tmp_path: Path, script: str) -> None:
    """It may end between two calls, and scancel may say so with its exit code only."""
    await slurm(tmp_path, script).cancel([JobID("7")])


@pytest.mark.parametrize(
    "script",
    ["exit 1", "exit 228", "echo 'scancel: error: Unable to contact slurm controller (connect failure)' >&2; exit 1"],
)
async def test_all_else_is_tried_again(tmp_path: Path, script: str) -> None:
    """The job may live on."""
    with pytest.raises(Unreachable, match="scancel"):
        await slurm(tmp_path, script).cancel([JobID("7")])
