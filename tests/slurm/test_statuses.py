"""What a pod's status says of what happens to its job."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from interlink.aio.clock import now
from interlink.plugins.slurm import parsing, scheduler
from interlink.plugins.slurm.commands import COMMANDS
from interlink.sdk.batch.jobdir import Ending, JobDirectory
from interlink.sdk.errors import Rejected, Unreachable
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until, until_async
from tests.support.slurm import Bench, command

FLAGS = "slurm-job.vk.io/flags"


async def test_a_waiting_job_says_why_and_until_when(bench: Bench, site: SlurmSite) -> None:
    """Slurm's reason and its estimate."""
    first = await bench.start("sleep 600", annotations={FLAGS: "-N 2 --exclusive -t 5"})
    await bench.until_starts(1)
    second = await bench.start("true", annotations={FLAGS: "-N 2 --exclusive -t 5"})

    async def is_estimated() -> bool:
        return "estimated start" in await bench.message(second)

    await bench.wait(second, "waiting Resources")
    assert await until_async(is_estimated, deadline_s=40)
    await bench.wait(first, "running")


async def test_a_held_job_says_so(bench: Bench) -> None:
    """In Slurm's words."""
    uid = await bench.start("true", annotations={FLAGS: "--hold"})

    await bench.wait(uid, "waiting JobHeld")


async def test_a_job_that_was_cancelled_at_slurm(bench: Bench, site: SlurmSite) -> None:
    """Waiting or running: the pod fails and says why."""
    waiting = await bench.start("true", annotations={FLAGS: "--hold"})
    running = await bench.start("sleep 600")
    await bench.until_starts(1)
    site.run("scancel", bench.job_id(waiting), bench.job_id(running))

    await bench.wait(waiting, "137 Cancelled")
    await bench.wait(running, "143 Cancelled")
    assert await bench.message(running) == "the job was cancelled at Slurm"


async def test_a_node_that_fails(bench: Bench, site: SlurmSite) -> None:
    """Power cut: the runner could not write an end."""
    uid = await bench.start("sleep 600", annotations={FLAGS: "-w node2"})
    await bench.until_starts(1)
    try:
        site.kill_node("node2")
        site.run("scontrol", "update", "nodename=node2", "state=down", "reason=test")

        await bench.wait(uid, "137 NodeFail")
    finally:
        site.start_node("node2")
        site.await_idle()


async def test_a_time_limit_t09a(bench: Bench, site: SlurmSite) -> None:
    """The pod fails, and its reason is the time limit."""
    uid = await bench.start("sleep 600")
    await bench.until_starts(1)
    site.run("scontrol", "update", f"jobid={bench.job_id(uid)}", "EndTime=now")

    await bench.wait(uid, "143 DeadlineExceeded", deadline_s=120)  # Slurm rounds up to a whole minute
    assert "time limit" in await bench.message(uid)


@pytest.mark.parametrize(("is_ignored", "word"), [(False, "137 OOMKilled"), (True, "0 Completed")])
async def test_out_of_memory_with_a_success_t09c(bench: Bench, is_ignored: bool, word: str) -> None:
    """Not a success, unless the site says so."""
    bench.restart(
        SqueuePath=command(bench, 'squeue "$@" | sed "s/COMPLETED    /OUT_OF_MEMORY/"'), IgnoreOutOfMemory=is_ignored
    )
    uid = await bench.start("exit 0")

    await bench.wait(uid, word)


async def test_out_of_memory_without_a_result_t09b(bench: Bench) -> None:
    """The kernel has killed the runner, and Slurm says why: OOMKilled, 137."""
    uid = await bench.start("sleep 600")
    await bench.until_starts(1)
    await bench.wait(uid, "running")
    bench.restart(SqueuePath=command(bench, 'squeue "$@" | sed "s/FAILED       /OUT_OF_MEMORY/"'))
    runner = bench.directory(uid).runner_process()
    assert runner is not None
    os.kill(runner, signal.SIGKILL)

    await bench.wait(uid, "137 OOMKilled")


AWAY = {
    "refused": "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
    "silent": "echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 0",
}


@pytest.mark.parametrize("kind", AWAY)
async def test_slurm_is_away_t11(bench: Bench, kind: str) -> None:
    """A command that fails says nothing about any job: the question fails, and no state is told."""
    uid = await bench.start("sleep 600")
    await bench.wait(uid, "running")

    bench.restart(SqueuePath=command(bench, AWAY[kind]))
    with pytest.raises(Unreachable, match="slurm_load_jobs error"):
        await bench.status(uid)
    bench.restart(SqueuePath="squeue")

    assert await bench.word(uid) == "running"


async def test_a_command_that_hangs_is_ended_t11(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its time limit."""
    monkeypatch.setattr("interlink.plugins.slurm.commands.QUESTION_TIMEOUT_S", 0.5)
    uid = await bench.start("sleep 600")
    bench.restart(SqueuePath=command(bench, "exec sleep 60"))

    async with asyncio.timeout(5):
        with pytest.raises(Unreachable, match="did not end within"):
            await bench.status(uid)


async def test_the_controller_is_killed_t11(bench: Bench, site: SlurmSite) -> None:
    """The pod stays as it was, and goes on when the controller is back."""
    uid = await bench.start("sleep 600")
    await bench.wait(uid, "running")
    await asyncio.to_thread(site.await_saved)
    site.kill_controller()
    with pytest.raises(Unreachable):
        await bench.status(uid)
    site.start_controller()

    await bench.wait(uid, "running")


async def test_a_refused_submission_t13(bench: Bench) -> None:
    """Slurm's own words, in the error and in the log; nothing is submitted."""
    uid = bench.pod("true", annotations={FLAGS: "-p nosuch"})

    with pytest.raises(Rejected, match="invalid partition specified: nosuch"):
        await bench.create(uid)

    assert "invalid partition specified: nosuch" in await bench.logs(uid)
    assert bench.jobs(uid) == []


@pytest.mark.parametrize("flags", ["--comment='x\n#SBATCH --uid=0'", "-t 5\n#SBATCH --uid=0", "--wrap=id", "/bin/id"])
async def test_injection_is_refused_t19(bench: Bench, flags: str) -> None:
    """Nothing is submitted."""
    uid = bench.pod("true", annotations={FLAGS: flags})

    with pytest.raises(Rejected, match="flags"):
        await bench.create(uid)

    assert bench.jobs(uid) == []


async def test_flags_reach_slurm_as_written_t19(bench: Bench) -> None:
    """Each once; the pod's memory option replaces the generated one."""
    resources = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
    flags = "--hold --gres=gpu:1 --comment='a b $(id)' -t 00:10:00 --mem-per-cpu=50M"
    uid = bench.pod(annotations={FLAGS: flags}, containers=[bench.container("c", "true", **resources)])
    await bench.create(uid)

    shown = bench.shown(uid)

    for part in ("Comment=a b $(id)", "TimeLimit=00:10:00", "MinMemoryCPU=50M", "NumCPUs=2", "TresPerNode=gres:gpu:1"):
        assert part in shown, (part, shown)


async def test_resources_reach_slurm_t20(bench: Bench) -> None:
    """CPUs, memory and GPUs of the containers together."""
    amounts = {"resources": {"limits": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"}}}
    more = {"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}
    containers = [bench.container("a", "true", **amounts), bench.container("b", "true", **more)]
    uid = bench.pod(annotations={FLAGS: "--hold"}, containers=containers)
    await bench.create(uid)

    shown = bench.shown(uid)

    for part in ("NumCPUs=3", "MinMemoryNode=3G", "TresPerNode=gres:gpu:2"):
        assert part in shown, (part, shown)


async def test_nothing_of_the_plugin_reaches_a_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its environment nor a secret of the pod is in what Slurm and others see; Slurm's own variables are."""
    monkeypatch.setenv("PLUGIN_SECRET", "plugin-s3cret")
    env = {"env": [{"name": "PASSWORD", "value": "pod-s3cret"}]}
    prefix = 'env > "$(dirname $0)"/../nothing 2>/dev/null; env >&2'
    bench.restart(CommandPrefix=prefix)
    uid = bench.pod(containers=[bench.container("c", "echo $PASSWORD", **env)])
    await bench.create(uid)
    await bench.wait(uid, "0 Completed")

    output = bench.output(uid)
    directory = bench.directory(uid).path
    open_files = [path for path in directory.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]

    assert "SLURM_JOB_ID=" in output
    assert "s3cret" not in output
    assert "s3cret" not in "".join(
        (directory / name).read_text() for name in ("submission.json", "job.sh", "spec.json")
    )
    assert "s3cret" not in "".join(path.read_text(errors="replace") for path in open_files)
    assert await bench.logs(uid, "c") == "pod-s3cret\n"


async def test_a_deletion_is_graceful_t21(bench: Bench, site: SlurmSite) -> None:
    """TERM once, time for a last word, and the job ends before its grace period is over."""
    uid = await bench.start("trap 'echo bye; sleep 1; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
    await bench.until_starts(1)
    await bench.wait(uid, "running")
    assert await until_async(lambda: _has_logged(bench, uid, "ready"), deadline_s=10)
    await bench.delete(uid, grace_s=30)

    await bench.wait(uid, "0 ", deadline_s=15)
    assert await until_async(lambda: _is_over(bench, uid), deadline_s=10)
    assert (await bench.logs(uid)).count("bye") == 1


async def test_a_program_that_ignores_term_is_killed_t21(bench: Bench) -> None:
    """At the end of its grace period."""
    uid = await bench.start("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    assert await until_async(lambda: _has_logged(bench, uid, "ready"), deadline_s=10)
    before = now()
    await bench.delete(uid, grace_s=2)

    await bench.wait(uid, "137 ", deadline_s=15)
    assert 1.5 < (now() - before).total_seconds() < 10


async def test_a_queued_job_and_a_purged_one_are_deleted_t21(bench: Bench) -> None:
    """At once; what is gone needs no cancelling."""
    queued = await bench.start("true", annotations={FLAGS: "--hold"})
    await bench.delete(queued)
    assert bench.alive(queued) == []
    assert bench.starts() == {}

    over = await bench.start("true")
    await bench.wait(over, "0 Completed")
    bench.restart(SqueuePath=command(bench, "exit 0"))
    await bench.delete(over)


async def test_directories_go_after_their_jobs(bench: Bench) -> None:
    """Deleted long ago, and ended for Slurm: never before."""
    lives = await bench.start("trap '' TERM; sleep 600")
    over = await bench.start("true")
    await bench.wait(over, "0 Completed")
    await bench.until_starts(2)
    await bench.delete(lives, grace_s=600)
    await bench.delete(over)

    assert await bench.plugin.sweeper.sweep(keep_s=3600) == 0
    assert await bench.plugin.sweeper.sweep(keep_s=0) == 1
    assert (bench.directory(lives).path.exists(), bench.directory(over).path.exists()) == (True, False)


async def test_a_job_that_died_before_its_runner_began(bench: Bench) -> None:
    """For instance in the site's prefix: the pod fails, and Slurm's view of it is kept when Slurm has forgotten."""
    bench.restart(CommandPrefix="exit 7")
    uid = await bench.start("true")
    await bench.wait(uid, "7 Error")

    bench.restart(SqueuePath=command(bench, "exit 0"))

    assert await bench.word(uid) == "7 Error"
    await bench.plugin.verifier.verify()
    assert len(bench.jobs(uid)) == 1


async def test_a_killed_job_that_slurm_has_forgotten(
    bench: Bench, site: SlurmSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runner could tell no end, and nobody else can: it has one all the same, and does not run for ever."""
    monkeypatch.setattr(scheduler, "_FORGOTTEN_S", 2.0)
    saved = site.save_state()
    uid = await bench.start("sleep 600")
    await bench.wait(uid, "running")
    runner = bench.directory(uid).runner_process()
    assert runner is not None
    os.kill(runner, signal.SIGKILL)
    assert until(lambda: bench.alive(uid) == [], deadline_s=30)
    site.crash_controller(saved)

    await bench.wait(uid, "137 ContainerStatusUnknown")
    site.await_idle()


async def test_a_job_that_says_success_and_ran_nothing(bench: Bench) -> None:
    """Is none."""
    bench.restart(CommandPrefix="exit 0")
    uid = await bench.start("true")

    await bench.wait(uid, "137 ContainerStatusUnknown")


async def test_other_users(bench: Bench, site: SlurmSite) -> None:
    """A site that maps namespaces to users: the job runs as that user, who can read its directory."""
    site.folder.chmod(0o755)
    bench.restart(Namespaces=[{"Name": "ns", "UID": 65534}])
    uid = bench.pod(containers=[{"name": "c0", "image": "x", "command": ["id", "-u"]}])
    await bench.create(uid)

    await bench.wait(uid, "0 Completed")
    assert await bench.logs(uid) == "65534\n"


# --- accounting ------------------------------------------------------------------------------------------------------


async def test_gone_from_the_queue_t12(accounted: Bench, tmp_path: Path) -> None:
    """The controller has forgotten the jobs. Where a record stands at running, accounting knows the end; a record that
    has an end needs neither; a lost directory is made up for by the id that Kubernetes has."""
    good, bad, recorded = [await accounted.start(script) for script in ("exit 0", "exit 5", "exit 6")]
    ids = [accounted.job_id(uid) for uid in (good, bad, recorded)]
    assert await until_async(lambda: _are_forgotten(accounted, ids), deadline_s=40)
    for uid in (good, bad):
        _set_running(accounted.directory(uid).path / "state.json")

    await accounted.wait(good, "0 Completed")
    await accounted.wait(bad, "5 Error")
    accounted.restart(UseAccounting=False)
    await accounted.wait(recorded, "6 Error")

    accounted.restart(UseAccounting=True, DataRootFolder=str(tmp_path))
    accounted.annotate(bad, JobID=ids[1])
    await accounted.wait(bad, "5 Error")


async def test_a_job_of_which_accounting_alone_is_left(accounted: Bench) -> None:
    """It has run and left the queue, its directory is lost, and nobody has noted its id: it does not run again."""
    uid = await accounted.start("exit 0")
    await accounted.wait(uid, "0 Completed")
    job_id = accounted.directory(uid).job_id()
    assert job_id is not None
    assert await until_async(lambda: _are_forgotten(accounted, [job_id]), deadline_s=40)
    accounted.directory(uid).remove()

    async def is_accounted() -> bool:
        return any(record.job_id == job_id for record in await accounted.slurm.accounting(tags=[accounted.tag(uid)]))

    assert await until_async(is_accounted, deadline_s=20)

    assert await accounted.create(uid) == job_id
    await accounted.wait(uid, "0 Completed")
    await accounted.plugin.verifier.verify()
    assert accounted.starts() == {"c0": 1}


async def test_why_a_forgotten_job_was_stopped_t12(accounted: Bench) -> None:
    """Its record says that it was, and not why; nobody had asked before the controller forgot it."""
    uid = await accounted.start("sleep 600")
    await accounted.until_starts(1)
    job_id = accounted.job_id(uid)
    accounted.site.run("scancel", job_id)
    assert await until_async(lambda: _are_forgotten(accounted, [job_id]), deadline_s=40)

    await accounted.wait(uid, "143 Cancelled")


def test_the_last_record_of_an_id_counts_t12() -> None:
    """PREEMPTED, then COMPLETED."""
    name = "il-default-u-a0"
    records = parsing.accounting(f"7|PREEMPTED|0:0||||{name}\n7|COMPLETED|0:0||||{name}\n7|FAILED|1:0||||il-x-y-a0\n")
    found = scheduler._last(records, records[0].tag)

    assert found is not None
    assert found.state == "COMPLETED"


# --- scale -----------------------------------------------------------------------------------------------------------


async def test_commands_do_not_grow_with_the_jobs_t23(bench: Bench) -> None:
    """At most two for a poll of all, none for no jobs."""
    uids = [await bench.start("sleep 600", annotations={FLAGS: "--hold"}) for _ in range(30)]
    before = _commands()

    found = await bench.plugin.status([bench.read_pod(uid) for uid in uids])

    assert len(found) == 30
    assert _commands() - before <= 2
    before = _commands()
    assert await bench.plugin.status([]) == []
    bench.restart(DataRootFolder=str(bench.folder.with_suffix(".empty")))
    await bench.plugin.verifier.verify()
    assert _commands() == before


def _commands() -> float:
    return sum(
        sample.value for metric in COMMANDS.collect() for sample in metric.samples if sample.name.endswith("_total")
    )


async def _has_logged(bench: Bench, uid: str, text: str) -> bool:
    path = bench.directory(uid).log("c0", 0)
    return path.exists() and text in path.read_text()


async def _is_over(bench: Bench, uid: str) -> bool:
    return bench.alive(uid) == []


async def _are_forgotten(bench: Bench, job_ids: list[str]) -> bool:
    return all(bench.site.state(job_id) == "" for job_id in job_ids)


def _set_running(state: Path) -> None:
    """As if the runner had been killed before it could write its end."""
    document = json.loads(state.read_text()) | {"phase": "running"}
    for container in document["containers"]:
        container["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    state.write_text(json.dumps(document))


def test_an_ending_is_kept_as_it_is(tmp_path: Path) -> None:
    """For when Slurm has forgotten."""
    directory = JobDirectory(tmp_path)
    assert directory.ending() is None
    directory.conclude(Ending(reason="NodeFail", exit_code=None))
    assert directory.ending() == Ending(reason="NodeFail")
