"""Slurm forgets, repeats and stays silent; a pod's programs start once all the same. Each test is one experiment."""

import asyncio
import collections
import contextlib
import json
import time
from pathlib import Path

import pytest

from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, SDKError
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until, until_async
from tests.support.slurm import Bench, command

HELD = {"slurm-job.vk.io/flags": "--hold"}


async def repeated(bench: Bench, uid: str) -> str:
    """Create, again and again as a server does, until there is an id."""
    found = ""

    async def is_created() -> bool:
        nonlocal found
        with contextlib.suppress(SDKError):
            found = await bench.create(uid)
        return bool(found)

    assert await until_async(is_created, deadline_s=60, interval_s=0.3)
    return found


async def test_a_controller_killed_at_the_acknowledgement(bench: Bench, site: SlurmSite) -> None:
    """kill -9 within a second of it: the job may be lost or have started; it runs at most once, and ends."""
    uids = [await bench.start("sleep 1") for _ in range(3)]
    site.kill_controller()
    site.start_controller()

    async def are_over() -> bool:
        with contextlib.suppress(SDKError):
            await bench.plugin.verifier.verify()
        return all([(await bench.word(uid))[:1].isdigit() for uid in uids])

    assert await until_async(are_over, deadline_s=60, interval_s=0.3), [await bench.word(uid) for uid in uids]
    assert all(count <= 3 for count in bench.starts().values())


async def test_a_controller_killed_in_the_middle_of_many_submissions(bench: Bench, site: SlurmSite) -> None:
    """Slurm forgets nearly all that it has acknowledged in these seconds: each is there again, once."""
    acknowledged: list[str] = []
    until_s = time.monotonic() + 2

    async def submit() -> None:
        while time.monotonic() < until_s:
            acknowledged.append(await bench.start("true", annotations=HELD))

    await asyncio.gather(*(submit() for _ in range(4)))
    site.kill_controller()
    site.start_controller()

    def are_all_there() -> bool:
        names = collections.Counter(site.run("squeue", "--noheader", "--format=%j").split())
        return all(names[str(bench.tag(uid))] == 1 for uid in acknowledged)

    await bench.until_verified(are_all_there)
    assert len(acknowledged) > 20


async def test_a_job_that_ends_while_the_controller_is_away(bench: Bench, site: SlurmSite) -> None:
    """Its exit code is the program's, and nothing of it runs again."""
    go = bench.folder.with_suffix(".go")
    uid = await bench.start(f"until [ -f {go} ]; do sleep 0.1; done; exit 5")
    await bench.wait(uid, "running")
    site.await_saved()
    site.kill_controller()
    go.touch()

    def has_ended() -> bool:
        state = bench.directory(uid).state()
        return state is not None and state.has_ended

    assert until(has_ended, deadline_s=20)
    site.start_controller()

    await bench.wait(uid, "5 Error")
    assert bench.starts() == {"c0": 1}


async def test_a_forgotten_job_is_submitted_again(bench: Bench, site: SlurmSite) -> None:
    """Acknowledged, never started, and gone after a crash: verified, it is submitted again under its tag, and runs."""
    saved = site.save_state()
    uid = await bench.start("exit 3", annotations=HELD)
    site.crash_controller(saved)
    assert bench.jobs(uid) == []

    await bench.until_verified(lambda: len(bench.alive(uid)) == 1)
    bench.release(uid)

    await bench.wait(uid, "3 Error")
    assert bench.starts() == {"c0": 1}


async def test_an_id_that_was_given_to_somebody_else(bench: Bench, site: SlurmSite) -> None:
    """After a crash the id belongs to another job: neither is its state ours, nor is it cancelled with our pod."""
    saved = site.save_state()
    uid = bench.pod("exit 0", annotations=HELD)
    job_id = await bench.create(uid)
    site.crash_controller(saved)
    stranger = site.run("sbatch", "--parsable", "--output=/dev/null", "--wrap", "sleep 600").strip()
    assert stranger == job_id

    assert await bench.word(uid) == ""
    await bench.delete(uid)
    await bench.plugin.verifier.verify()

    assert site.state(stranger) in ("PENDING", "RUNNING")
    site.cancel([stranger])


async def test_a_controller_that_stands_still_during_sbatch(bench: Bench, site: SlurmSite) -> None:
    """sbatch ends with a time-out although the job arrives: it is looked for, and there is one."""
    uid = bench.pod("exit 0")
    site.pause_controller()
    with pytest.raises(SDKError):
        await bench.create(uid)
    site.resume_controller()

    await repeated(bench, uid)

    await bench.wait(uid, "0 Completed")
    assert bench.starts() == {"c0": 1}


async def test_a_submission_of_unknown_outcome_is_not_repeated_at_once(bench: Bench, site: SlurmSite) -> None:
    """Slurm, asked right after it, does not have the job: it may still arrive, so nothing is sent for a while."""
    uid = bench.pod("exit 0")
    bench.restart(
        SbatchPath=command(bench, "echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
    )
    with pytest.raises(OutcomeUnknown):
        await bench.create(uid)

    bench.restart(SbatchPath="sbatch")
    with pytest.raises(OutcomeUnknown, match="not known yet"):
        await bench.create(uid)
    await repeated(bench, uid)

    assert len(bench.jobs(uid)) == 1


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 20, 40, 80])
async def test_a_killed_sbatch_t05(bench: Bench, milliseconds: int) -> None:
    """Nobody knows whether the job is there: it is no refusal, and in the end there is one."""
    uid = bench.pod("exit 0", annotations=HELD)
    script = f'sbatch "$@" & child=$!; sleep {milliseconds / 1000}; kill -9 $child $$'
    bench.restart(SbatchPath=command(bench, script))
    with contextlib.suppress(OutcomeUnknown):
        await bench.create(uid)

    bench.restart(SbatchPath="sbatch")
    await repeated(bench, uid)

    assert len(bench.jobs(uid)) == 1


async def test_a_submission_that_says_it_failed_and_did_not_t05(bench: Bench) -> None:
    """The job is in the queue, the command ends with 1: it is adopted."""
    uid = bench.pod("exit 0")
    text = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    bench.restart(SbatchPath=command(bench, f'sbatch "$@" >/dev/null; echo "{text}" >&2; exit 1'))

    job_id = await bench.create(uid)

    assert [line.split()[0] for line in bench.jobs(uid)] == [job_id]


async def test_a_plugin_that_was_killed_before_it_noted_the_id_t04(bench: Bench) -> None:
    """The next one finds the job by its tag."""
    uid = await bench.start("sleep 600")
    job_id = bench.directory(uid).job_id()
    (bench.directory(uid).path / "job-id").unlink()

    bench.restart()

    assert await bench.create(uid) == job_id
    assert len(bench.jobs(uid)) == 1


async def test_a_plugin_on_an_empty_machine_t03(bench: Bench, tmp_path: Path) -> None:
    """Its directories are lost: Slurm alone gives it status, id and deletion back, and nothing is submitted."""
    uid = await bench.start("sleep 600")
    job_id = bench.directory(uid).job_id()
    await bench.wait(uid, "running")

    bench.restart(DataRootFolder=str(tmp_path / "empty"))

    await bench.wait(uid, "running")
    assert await bench.create(uid) == job_id
    (job,) = [job for job in await bench.plugin.jobs() if job.job_id == job_id]
    assert (job.node, job.is_alive) == ("vk", True)
    await bench.delete(uid, grace_s=1)
    assert await until_async(lambda: is_over(bench, uid), deadline_s=20)


async def is_over(bench: Bench, uid: str) -> bool:
    await bench.plugin.verifier.verify()
    return bench.alive(uid) == []


async def test_a_cancel_that_was_undone(bench: Bench, site: SlurmSite) -> None:
    """After a crash a cancelled job waits in the queue again: it is cancelled again."""
    uid = await bench.start("exit 0", annotations=HELD)
    saved = site.save_state(holding=str(bench.tag(uid)))
    await bench.delete(uid)
    assert bench.alive(uid) == []
    site.crash_controller(saved)
    assert bench.alive(uid) != []

    await bench.until_verified(lambda: bench.alive(uid) == [])

    assert bench.starts() == {}


async def test_a_second_launch_after_a_crash(bench: Bench, site: SlurmSite) -> None:
    """The controller forgets that the job runs and launches it again: nothing starts twice, and it is no success."""
    uid = await bench.start("sleep 600", annotations=HELD)
    saved = site.save_state(holding=str(bench.tag(uid)))
    bench.release(uid)
    await bench.until_starts(1)
    site.crash_controller(saved)
    assert until(lambda: bench.alive(uid) != [], deadline_s=10)
    bench.release(uid)

    assert await until_async(lambda: has_failed(bench, uid), deadline_s=40, interval_s=0.3)
    assert bench.starts() == {"c0": 1}


async def has_failed(bench: Bench, uid: str) -> bool:
    word = await bench.word(uid)
    assert not word.startswith("0"), word
    return word[:1].isdigit()


NODE2 = {"slurm-job.vk.io/flags": "--hold -w node2"}


async def test_a_launch_that_slurm_could_not_confirm(bench: Bench, site: SlurmSite) -> None:
    """The node answers too late: Slurm cancels the job, which has not begun. It is submitted again, and runs once."""
    uid = await bench.start("exit 3", annotations=NODE2)
    first = bench.job_id(uid)
    launch_late(bench, site, uid)

    assert until(lambda: site.state(first) == "CANCELLED", deadline_s=30), site.state(first)
    assert bench.starts() == {}
    await bench.wait(uid, "waiting LaunchFailed")
    await bench.until_verified(lambda: bench.alive(uid) != [])
    assert len(bench.jobs(uid)) == 2
    assert bench.job_id(uid) == bench.directory(uid).job_id() != first
    bench.release(uid)
    await bench.wait(uid, "3 Error")
    assert bench.starts() == {"c0": 1}


def launch_late(bench: Bench, site: SlurmSite, uid: str) -> None:
    """Let a held job start on a node that does not answer, until Slurm has given its launch up."""
    site.pause_node("node2")
    try:
        bench.release(uid)
        assert until(lambda: site.state(bench.job_id(uid)) == "COMPLETING", deadline_s=30)
    finally:
        site.resume_node("node2")


async def test_launches_that_slurm_gives_up_again_and_again(
    bench: Bench, site: SlurmSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one fails the pod, and says why."""
    monkeypatch.setattr("interlink.plugins.slurm.scheduler._LAUNCHES", 2)
    uid = await bench.start("true", annotations=NODE2)
    launch_late(bench, site, uid)
    await bench.until_verified(lambda: len(bench.jobs(uid)) == 2)
    launch_late(bench, site, uid)

    await bench.wait(uid, "137 LaunchFailed")
    await bench.plugin.verifier.verify()
    assert bench.alive(uid) == []
    assert bench.starts() == {}


async def test_a_cancel_in_the_middle_of_a_launch(bench: Bench, site: SlurmSite) -> None:
    """Somebody's wish stays: the job is not submitted again, though nothing of it has begun."""
    uid = await bench.start("true", annotations=NODE2)
    site.pause_node("node2")
    try:
        bench.release(uid)
        assert until(lambda: site.state(bench.job_id(uid)) == "RUNNING", deadline_s=10)
        site.run("scancel", bench.job_id(uid))
    finally:
        site.resume_node("node2")

    async def is_cancelled() -> bool:
        return (await bench.word(uid)).endswith(" Cancelled")  # its code depends on what its node hears first

    assert await until_async(is_cancelled, deadline_s=30)
    await bench.plugin.verifier.verify()
    assert len(bench.jobs(uid)) == 1
    assert bench.starts() == {}


async def test_a_requeued_job(bench: Bench, site: SlurmSite) -> None:
    """An administrator puts it back into the queue, against our wish: its programs do not start again."""
    uid = await bench.start("sleep 600")
    await bench.until_starts(1)
    site.run("scontrol", "update", f"jobid={bench.job_id(uid)}", "requeue=1")
    site.run("scontrol", "requeue", bench.job_id(uid))

    assert await until_async(lambda: has_failed(bench, uid), deadline_s=60, interval_s=0.3)
    assert bench.starts() == {"c0": 1}


async def test_a_preempted_job(bench: Bench, site: SlurmSite) -> None:
    """It makes room for a job of more weight: the pod fails, and says so."""
    flags = {"slurm-job.vk.io/flags": "-p low -N 2 --exclusive"}
    uid = await bench.start("sleep 600", annotations=flags)
    await bench.until_starts(1)
    other = site.run("sbatch", "--parsable", "-pmain", "-N2", "--exclusive", "--output=/dev/null", "--wrap", "sleep 60")

    assert await until_async(lambda: has_failed(bench, uid), deadline_s=40, interval_s=0.3)

    assert await bench.word(uid) == "143 Preempted"
    assert "make room" in await bench.message(uid)
    site.cancel([other.strip()])


async def test_two_jobs_of_one_tag(bench: Bench) -> None:
    """However they came about: one that waits is taken out, the other one runs the pod, once."""
    uid = await bench.start("exit 0", annotations=HELD)
    directory = bench.directory(uid)
    submission = await asyncio.to_thread((directory.path / "submission.json").read_bytes)
    options = json.loads(submission)["options"]
    bench.site.run("sbatch", "--parsable", *options, str(directory.path / "job.sh"))
    assert len(bench.alive(uid)) == 2

    await bench.until_verified(lambda: len(bench.alive(uid)) == 1)
    bench.release(uid)

    await bench.wait(uid, "0 Completed")
    assert bench.starts() == {"c0": 1}


async def test_a_deletion_beats_a_late_create(bench: Bench) -> None:
    """A create that comes after the deletion submits nothing."""
    uid = bench.pod("exit 0")
    with pytest.raises(NotFound):
        await bench.delete(uid)

    with pytest.raises(Refused):
        await bench.create(uid)
    assert bench.jobs(uid) == []
