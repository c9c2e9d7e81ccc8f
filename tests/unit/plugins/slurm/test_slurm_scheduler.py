"""Slurm's jobs and their directories, which belong to the jobs' users and hold what those like."""

import asyncio
import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from interlink.aio import clock
from interlink.model.ids import JobID, PodUID, Tag
from interlink.plugins.slurm import scheduler as slurm_scheduler
from interlink.plugins.slurm.capacity import Capacity
from interlink.plugins.slurm.commands import Slurm
from interlink.plugins.slurm.parsing import QueuedJob
from interlink.plugins.slurm.scheduler import SlurmScheduler
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.scheduler import Life
from interlink.sdk.errors import OutcomeUnknown, Unreachable
from tests.unit.builders import pod
from tests.unit.plugins.slurm.test_slurm_directives import load

TAGS = [Tag("c", PodUID(f"uid-{number}"), 0) for number in (1, 2)]
SOMEBODY = 4711
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may have jobs of other users")


class Commands:
    """Slurm as far as it is asked here."""

    def __init__(self) -> None:
        self.jobs: list[QueuedJob] = []
        self.accounts: list[QueuedJob] = []
        self.asked: list[list[str]] = []
        self.submitted: list[list[str]] = []
        self.cancelled: list[tuple[str, ...]] = []

    async def queue(self) -> list[QueuedJob]:
        return self.jobs

    async def accounting(self, *, job_ids: Sequence[JobID] = (), tags: Sequence[Tag] = ()) -> list[QueuedJob]:
        self.asked.append([*job_ids, *map(str, tags)])
        await asyncio.sleep(0)
        return self.accounts

    async def submit(self, options: Sequence[str], script: Path) -> JobID:
        self.submitted.append(list(options))
        return JobID(str(len(self.submitted)))

    async def cancel(self, job_ids: Sequence[JobID], *options: str) -> None:
        self.cancelled.append(options)


@pytest.fixture
def slurm() -> Commands:
    return Commands()


def over(slurm: object, *, unknown_for_s: float = 0.0, **keys: Any) -> SlurmScheduler:
    """A scheduler that runs these commands."""
    settings = load(is_root=True, **keys)
    return SlurmScheduler(
        cast("Slurm", slurm),
        policy=settings.policy,
        script=settings.script,
        capacity=Capacity(cast("Slurm", slurm), settings),
        uses_accounting=True,
        memory_is_fatal=True,
        unknown_for_s=unknown_for_s,
        kept_s=300.0,
    )


@pytest.fixture
def scheduler(slurm: Commands) -> SlurmScheduler:
    return over(slurm, DefaultUID=1000)


@pytest.fixture
def directories(tmp_path: Path) -> list[JobDirectory]:
    made = [JobDirectory(tmp_path / tag.pod_uid) for tag in TAGS]
    for directory in made:
        directory.create()
    return made


@pytest.mark.parametrize("name", ["ending.json", ".ending.json.tmp"])
@pytest.mark.parametrize("is_forgotten", [True, False])
async def test_an_end_that_cannot_be_kept_hides_no_other(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory], name: str, *, is_forgotten: bool
) -> None:
    """A directory where the file is to be; of this job alone nothing new is known."""
    (directories[0].path / name).mkdir()
    slurm.jobs = [] if is_forgotten else [QueuedJob(tag=tag, job_id=JobID("7"), state="FAILED") for tag in TAGS]

    seen = await scheduler.poll(list(zip(TAGS, directories, strict=True)))

    assert seen[TAGS[1]].life is (Life.GONE if is_forgotten else Life.ENDED)


@pytest.mark.parametrize("word", ["1;2", "all", "٣", "9" * 100_000])
async def test_a_word_that_is_no_job_id_is_not_asked_for(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory], word: str
) -> None:
    """sacct would refuse the whole question."""
    for directory, job_id in zip(directories, (word, "8"), strict=True):
        (directory.path / "job-id").write_text(job_id)

    await scheduler.poll(list(zip(TAGS, directories, strict=True)))

    assert slurm.asked == [["8"]]


async def test_a_job_that_has_begun_and_is_forgotten_has_an_end(
    scheduler: SlurmScheduler, directories: list[JobDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while, for a controller that has crashed hears of its jobs from the nodes; it is kept, and not guessed
    anew by the next plugin."""
    (directories[0].path / "claim-0").mkdir()
    directories[0].env.mkdir()
    jobs = [(TAGS[0], directories[0])]

    first = (await scheduler.poll(jobs))[TAGS[0]]
    assert (first.life, first.ending) == (Life.ENDED, None)
    assert directories[0].has_secrets()

    monkeypatch.setattr(slurm_scheduler, "_FORGOTTEN_S", 0.0)
    later = (await scheduler.poll(jobs))[TAGS[0]]
    assert (later.life, later.reason) == (Life.ENDED, "ContainerStatusUnknown")
    assert directories[0].ending() == later.ending
    assert not directories[0].has_secrets()
    assert (await scheduler.poll(jobs))[TAGS[0]] == later


async def test_a_job_that_is_seen_again_was_not_forgotten(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time begins anew."""
    (directories[0].path / "claim-0").mkdir()
    jobs = [(TAGS[0], directories[0])]
    await scheduler.poll(jobs)
    slurm.jobs = [QueuedJob(tag=TAGS[0], job_id=JobID("7"), state="RUNNING")]
    await scheduler.poll(jobs)

    assert scheduler._missing_since == {}


async def test_a_job_of_unknown_outcome_is_denied_twice(slurm: Commands, directories: list[JobDirectory]) -> None:
    """So far apart as a message may be on its way, however long ago it was sent: Slurm may have been away since."""
    (directories[0].path / "submitting").touch()
    os.utime(directories[0].path / "submitting", (1, 1))
    scheduler = over(slurm, unknown_for_s=3600.0)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="not known yet"):
            await scheduler.find(TAGS[0], directories[0])

    scheduler._unknown_for_s = 0.0
    assert await scheduler.find(TAGS[0], directories[0]) is None


RAN = QueuedJob(tag=TAGS[0], job_id=JobID("7"), state="COMPLETED")


@pytest.mark.parametrize(
    ("record", "age_s", "expected"),
    [
        (RAN, 301, "7"),
        (RAN, None, "7"),
        (RAN, 100, None),
        (msgspec.structs.replace(RAN, state="PENDING"), 301, None),
        (msgspec.structs.replace(RAN, tag=TAGS[1]), 301, None),
    ],
)
async def test_a_job_that_has_ended_is_found_in_accounting(
    scheduler: SlurmScheduler, slurm: Commands, record: QueuedJob, age_s: float | None, expected: str | None
) -> None:
    """Its directory is lost, and the queue has forgotten it; a pod that is younger than that has none."""
    slurm.accounts = [record]
    made_at = None if age_s is None else clock.now() - timedelta(seconds=age_s)

    assert await scheduler.find_ended(TAGS[0], made_at=made_at) == expected
    assert bool(slurm.asked) is (age_s != 100)


async def test_accounting_is_asked_for_many_at_once(scheduler: SlurmScheduler, slurm: Commands) -> None:
    """As when a site was away, and all of its pods are created together."""
    slurm.accounts = [RAN]
    many = [Tag("c", PodUID(f"uid-{number}"), 0) for number in range(1, 51)]

    found = await asyncio.gather(*(scheduler.find_ended(tag, made_at=None) for tag in many))

    assert found == ["7", *[None] * 49]
    assert len(slurm.asked) <= 2


def given_up() -> QueuedJob:
    at = time.time()
    return QueuedJob(
        tag=TAGS[0],
        job_id=JobID("7"),
        state="CANCELLED",
        restarts=1,
        submitted_at=at,
        started_at=at,
        ended_at=at,
    )


async def test_a_job_that_slurm_gave_up_waits_to_be_submitted_again(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory]
) -> None:
    """For as long as it takes; as itself it is not found any more, and once it has a successor, that one counts."""
    jobs = [(TAGS[0], directories[0])]
    slurm.jobs = [given_up()]
    assert (await scheduler.poll(jobs))[TAGS[0]].is_to_be_repeated
    slurm.jobs = [msgspec.structs.replace(given_up(), submitted_at=0.0)]
    assert (await scheduler.poll(jobs))[TAGS[0]].is_to_be_repeated
    assert await scheduler.find(TAGS[0], directories[0]) is None

    directories[0].remember(JobID("8"))
    assert (await scheduler.poll(jobs))[TAGS[0]].life is Life.GONE


@pytest.mark.parametrize("evidence", ["claim-0", "cancelled"])
async def test_a_job_that_has_begun_or_was_cancelled_is_not_submitted_again(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory], evidence: str
) -> None:
    """Whatever became of its launch."""
    (directories[0].path / evidence).mkdir()
    slurm.jobs = [given_up()]

    seen = (await scheduler.poll([(TAGS[0], directories[0])]))[TAGS[0]]

    assert (seen.life, seen.reason) == (Life.ENDED, "Cancelled")


async def test_accounting_tells_of_a_job_that_was_given_up(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory]
) -> None:
    """The controller has forgotten it."""
    directories[0].remember(JobID("7"))
    slurm.accounts = [given_up()]

    assert (await scheduler.poll([(TAGS[0], directories[0])]))[TAGS[0]].is_to_be_repeated


async def prepared(scheduler: SlurmScheduler, directory: JobDirectory) -> None:
    """With the user that the pod wishes."""
    wish = pod(securityContext={"runAsUser": SOMEBODY}, containers=[{"name": "c"}])
    for path, content in scheduler.prepare(wish, TAGS[0], directory, node="vk").items():
        path.write_bytes(content)


@is_root
async def test_a_job_is_submitted_again_as_the_user_it_was_for(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory]
) -> None:
    """Its directory is that user's by then, what is submitted stays ours."""
    await prepared(scheduler, directories[0])
    for _ in range(2):
        await scheduler.submit(TAGS[0], directories[0])

    assert directories[0].path.stat().st_uid == (directories[0].path / "job.sh").stat().st_uid == SOMEBODY
    assert [f"--uid={SOMEBODY}" in options for options in slurm.submitted] == [True, True]


@is_root
async def test_all_files_may_belong_to_one_user(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory]
) -> None:
    """As on a share that knows no others, which is not us."""
    await prepared(scheduler, directories[0])
    for path in (directories[0].path.parent, directories[0].path / "submission.json"):
        os.chown(path, SOMEBODY + 1, -1)

    await scheduler.submit(TAGS[0], directories[0])

    assert len(slurm.submitted) == 1


@is_root
async def test_a_user_does_not_become_another_one(
    scheduler: SlurmScheduler, slurm: Commands, directories: list[JobDirectory]
) -> None:
    """Who has the directory may replace any file in it: a job that Slurm lost would be submitted as root."""
    await prepared(scheduler, directories[0])
    await scheduler.submit(TAGS[0], directories[0])
    forged = directories[0].path / "submission.json"
    forged.unlink()
    forged.write_text('{"options": ["--uid=0"], "uid": 0}')
    os.chown(forged, SOMEBODY, -1)

    with pytest.raises(Unreachable, match="belongs to somebody else"):
        await scheduler.submit(TAGS[0], directories[0])

    assert len(slurm.submitted) == 1


# --- cancelling ------------------------------------------------------------------------------------------------------

WAITING, TERM = ("--state=PENDING",), ("--state=RUNNING", "--signal=TERM", "--batch")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("PENDING", [()]),
        ("RUNNING", [WAITING, TERM]),
        ("SUSPENDED", [WAITING, ("--state=SUSPENDED",), TERM]),
        ("STOPPED", [WAITING, TERM, ("--state=RUNNING", "--signal=CONT", "--full")]),
        ("COMPLETED", []),
    ],
)
async def test_what_a_cancelled_job_gets(
    scheduler: SlurmScheduler,
    slurm: Commands,
    directories: list[JobDirectory],
    state: str,
    expected: list[tuple[str, ...]],
) -> None:
    """Within its grace period; each command spares a job whose state has changed meanwhile."""
    directories[0].mark_cancelled(30)
    slurm.jobs = [QueuedJob(tag=TAGS[0], job_id=JobID("7"), state=state)]

    await scheduler.cancel(TAGS[0], directories[0])

    assert slurm.cancelled == expected
