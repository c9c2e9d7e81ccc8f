"""Job directories whose files their job's user has replaced: only that job is worse off, never the plugin."""

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from interlink.model.ids import JobID, PodUID, Tag
from interlink.sdk.batch import jobdir
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.batch.scheduler import Life, Observation
from tests.unit.builders import pod
from tests.unit.sdk.batch.test_batch_plugin import Runtime, Scheduler, request, set_state

DEEP = b'{"phase":"ended","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BAD, GOOD = "uid-1", "uid-2"


class Talkative(Scheduler):
    """Remembers what it was given; and may say of each job that it runs, and that there is more to say."""

    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[str] = []
        self.says_more = False

    async def submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        self.submitted.append(tag.pod_uid)
        return await super().submit(tag, directory)

    async def poll(self, jobs: Sequence[tuple[Tag, JobDirectory]]) -> Mapping[Tag, Observation]:
        if self.says_more:
            return {tag: Observation(life=Life.RUNNING, has_more_to_say=True) for tag, _ in jobs}
        return await super().poll(jobs)


class Jobs:
    """Two jobs, of which one has been tampered with."""

    def __init__(self, root: Path) -> None:
        self.scheduler = Talkative()
        self.plugin = BatchPlugin(root, scheduler=self.scheduler, runtime=Runtime(), lost_after_s=0.0)
        self.bad, self.good = (JobDirectory(root / uid) for uid in (BAD, GOOD))

    async def start(self) -> None:
        for directory in (self.bad, self.good):
            await self.plugin.create(request(directory.pod_uid))
            set_state(directory)

    async def seen(self) -> set[str]:
        return {str(job.uid) for job in await self.plugin.status([pod(metadata={"uid": uid}) for uid in (BAD, GOOD)])}


@pytest.fixture
async def jobs(tmp_path: Path) -> Jobs:
    made = Jobs(tmp_path)
    await made.start()
    return made


def link_to_itself(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path)


@pytest.mark.parametrize("name", ["state.json", "pod.json", "ending.json", "job-id", "runner.lock"])
@pytest.mark.parametrize("damage", [DEEP, b"\xff", None], ids=["deep", "no text", "link"])
async def test_a_damaged_file_hides_no_other_job(jobs: Jobs, name: str, damage: bytes | None) -> None:
    """It could not be read, or only with an error that nobody expected."""
    link_to_itself(jobs.bad.path / name) if damage is None else (jobs.bad.path / name).write_bytes(damage)

    assert GOOD in await jobs.seen()
    await jobs.plugin.sweeper.sweep(keep_s=0)
    await jobs.plugin.usage([PodUID(BAD), PodUID(GOOD)])


async def test_a_record_that_is_far_too_long_is_not_taken(jobs: Jobs) -> None:
    """A runner writes none that is; whoever asks for statuses would get all of it, each time."""
    entries = ",".join(f'{{"name":"c{number}"}}' for number in range(400_000))
    (jobs.bad.path / "state.json").write_text(f'{{"phase":"running","containers":[{entries}]}}')

    assert await jobs.seen() == {GOOD}


@pytest.mark.parametrize("moment", ["soon", "2026-01-01T00:00:00", "", "9" * 100])
async def test_a_moment_that_is_none_hides_no_other_job(jobs: Jobs, moment: str) -> None:
    """In the record that the job's user can write."""
    (jobs.bad.path / "state.json").write_text(f'{{"phase":"ended","reason":"Terminated","finished_at":"{moment}"}}')

    jobs.scheduler.says_more = True

    assert GOOD in await jobs.seen()


@pytest.mark.parametrize("name", ["cancelled", "ending.json"])
async def test_a_damaged_directory_keeps_no_other_from_being_verified(jobs: Jobs, name: str) -> None:
    """The first one failed, and each later one was left out, in every round."""
    first, second = jobdir.below(jobs.bad.path.parent)
    link_to_itself(first.path / name)
    jobs.scheduler.lives.clear()

    for _ in range(2):
        with contextlib.suppress(OSError):
            await jobs.plugin.verifier.verify()

    assert jobs.scheduler.submitted.count(second.pod_uid) == 2


@pytest.mark.parametrize("name", ["cancelled", ".cancelled.tmp"])
async def test_nothing_in_the_way_keeps_a_job_from_being_deleted(jobs: Jobs, name: str) -> None:
    """Not even a directory that is not empty."""
    (jobs.bad.path / name / "x").mkdir(parents=True)

    await jobs.plugin.delete(pod(metadata={"uid": BAD, "deletionGracePeriodSeconds": 7}))

    assert (jobs.bad.is_cancelled(), jobs.bad.cancel_grace_s()) == (True, 7)


@pytest.mark.parametrize("name", ["state.json", "job-id", "ending.json"])
async def test_a_record_that_cannot_be_read_keeps_no_deleted_job(jobs: Jobs, name: str) -> None:
    """What it says does not matter any more."""
    for directory in (jobs.bad, jobs.good):
        directory.mark_cancelled(0)
    link_to_itself(jobs.bad.path / name)
    jobs.scheduler.lives.clear()

    assert await jobs.plugin.sweeper.sweep(keep_s=-1) == 2


async def test_directories_as_deep_as_they_may_be_are_swept(jobs: Jobs) -> None:
    """Deeper than Python's own limit; and what is behind them is swept too."""
    for directory in (jobs.bad, jobs.good):
        directory.mark_cancelled(0)
    jobs.scheduler.lives.clear()
    folder = os.open(jobs.bad.path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
    os.close(folder)

    try:
        assert await jobs.plugin.sweeper.sweep(keep_s=-1) == 2
        assert (jobs.bad.path.exists(), jobs.good.path.exists()) == (False, False)
    finally:
        subprocess.run(["rm", "-rf", jobs.bad.path], check=True)  # pytest could not
