"""What the checks of a site find, one by one; that they work on a real Slurm is tested there."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from interlink.model.ids import JobID, Tag
from interlink.plugins.slurm import checking
from interlink.plugins.slurm.commands import Slurm
from interlink.plugins.slurm.parsing import QueuedJob, SeenNode
from interlink.sdk.errors import Unreachable
from tests.unit.plugins.slurm.test_slurm_directives import load

NODE = SeenNode("n1", "p", is_partition_up=True, state="idle", cpus=4, memory_mb=1000, time_limit=None, gres={})


class Site:
    """A Slurm that answers as it is told; its node runs a job by leaving what `job` says."""

    def __init__(self) -> None:
        self.says = "slurm 23.02.1"
        self.config = {"clustername": "c", "accountingstoragetype": "accounting_storage/slurmdbd"}
        self.has_accounting = True
        self.job = {"python": "3.11", "read": "shared", "runtime": "", "skew_s": "0"}

    async def version(self) -> str:
        return self.says

    async def configuration(self) -> dict[str, str]:
        return self.config

    async def queue(self) -> list[QueuedJob]:
        return []

    async def nodes(self) -> list[SeenNode]:
        return [NODE]

    async def accounting(self, *, job_ids: Sequence[JobID] = (), tags: Sequence[Tag] = ()) -> list[QueuedJob]:
        if not self.has_accounting:
            raise Unreachable("sacct: Connection refused")
        return []

    async def submit(self, options: Sequence[str], script: Path) -> JobID:
        time_s = time.time() + float(self.job["skew_s"])
        for name, text in {**self.job, "time": str(time_s), "done": "n1"}.items():
            (script.parent / name).write_text(text)
        return JobID("1")

    async def cancel(self, job_ids: Sequence[JobID], *options: str) -> None:
        return


async def found(site: Site, folder: Path, **keys: Any) -> dict[str, tuple[str, str]]:
    settings = load(**({"DataRootFolder": str(folder)} | keys))
    checks = await checking.checks(cast("Slurm", site), settings)
    assert all(check.advice for check in checks if check.outcome != "ok"), "each trouble comes with what to do"
    return {check.name: (check.outcome, check.detail) for check in checks}


@pytest.fixture
def site() -> Site:
    return Site()


async def test_a_good_site(site: Site, tmp_path: Path) -> None:
    """All but the commands, which are not on every machine that tests this."""
    checks = await found(site, tmp_path)
    del checks["commands"]

    assert {outcome for outcome, _ in checks.values()} == {"ok"}
    assert checks["accounting"][1] == "sacct answers"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("says", "outcome"), [("slurm 20.02.7", "failed"), ("slurm 20.11.0", "ok")])
async def test_the_version(site: Site, tmp_path: Path, says: str, outcome: str) -> None:
    """Older ones lack what is asked of squeue."""
    site.says = says

    assert (await found(site, tmp_path))["version"] == (outcome, says)


async def test_what_may_rename_jobs(site: Site, tmp_path: Path) -> None:
    """The name is how a job is found again."""
    site.config["jobsubmitplugins"] = "lua"

    assert (await found(site, tmp_path))["controller"] == ("warning", "cluster c, with JobSubmitPlugins=lua")


async def test_accounting_that_does_not_answer(site: Site, tmp_path: Path) -> None:
    """Slurm says that it has some."""
    site.has_accounting = False

    assert (await found(site, tmp_path))["accounting"] == ("failed", "sacct: Connection refused")


async def test_accounting_that_is_not_wanted(site: Site, tmp_path: Path) -> None:
    """Nobody asks it."""
    site.has_accounting = False

    assert (await found(site, tmp_path, UseAccounting=False))["accounting"][0] == "ok"


async def test_a_folder_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    """Then there is no use in a job."""
    (tmp_path / "file").touch()
    checks = await found(site, tmp_path / "file" / "jobs")

    assert checks["folder"][0] == "failed"
    assert "job" not in checks


@pytest.mark.parametrize(
    ("job", "outcome", "words"),
    [
        ({"read": "cat: seen: No such file"}, "failed", "a node cannot read what the plugin writes"),
        ({"python": "bash: python3: command not found"}, "failed", "no Python on node n1"),
        ({"python": "3.5"}, "failed", "no Python on node n1: 3.5"),
        ({"runtime": "missing"}, "failed", "apptainer is not on node n1"),
        ({"runtime": "/usr/bin/apptainer"}, "ok", "ran on n1"),
        ({"skew_s": "-60"}, "warning", "the clock of n1 differs by 60 s"),
        ({"skew_s": "60"}, "warning", "the clock of n1 differs by 60 s"),
        ({"skew_s": "1"}, "ok", "the clock is right"),
    ],
)
async def test_what_a_node_has(site: Site, tmp_path: Path, job: dict[str, str], outcome: str, words: str) -> None:
    """The tiny job tells it."""
    site.job |= job
    seen, detail = (await found(site, tmp_path, ContainerRuntime="apptainer"))["job"]

    assert seen == outcome
    assert words in detail


async def test_a_job_that_never_comes_back(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken out of the queue again."""
    monkeypatch.setattr(checking, "_JOB_WITHIN_S", 0.0)
    cancelled: list[JobID] = []

    async def submit(options: Sequence[str], script: Path) -> JobID:
        return JobID("7")

    async def cancel(job_ids: Sequence[JobID], *options: str) -> None:
        cancelled.extend(job_ids)

    monkeypatch.setattr(site, "submit", submit)
    monkeypatch.setattr(site, "cancel", cancel)

    outcome, detail = (await found(site, tmp_path))["job"]

    assert (outcome, cancelled) == ("failed", [JobID("7")])
    assert "left nothing" in detail
