"""Ready-made job scripts as jobs of a real Slurm."""

from interlink.testing.waiting import until_async
from tests.support.slurm import Bench


def scripted(bench: Bench, script: str) -> str:
    """The UID of a pod whose job script this is; its containers' own commands would leave a line in the ledger."""
    uid = bench.pod("echo never")
    bench.job_scripts[uid] = script
    return uid


async def test_a_job_script_runs_in_place_of_the_commands(bench: Bench) -> None:
    """Once, with the environment that Slurm and the site give to the job; the job ends as the script does."""
    bench.restart(CommandPrefix="export FROM_THE_SITE=here")
    uid = scripted(
        bench, 'cd $SANDBOX; echo "$FROM_THE_SITE $SLURM_JOB_NAME" > run-c0.out; echo 42 > run-c0.status; exit 42'
    )
    await bench.create(uid)

    await bench.wait(uid, "42 Error")

    assert await bench.logs(uid) == f"here {bench.tag(uid)}\n"
    assert bench.starts() == {}
    assert await until_async(lambda: has_failed(bench, uid), deadline_s=30)


async def has_failed(bench: Bench, uid: str) -> bool:
    return bench.jobs(uid)[-1].endswith("FAILED")


async def test_a_job_scripts_output_is_there_while_it_runs(bench: Bench) -> None:
    """Also for another plugin."""
    uid = scripted(bench, "echo hello; sleep 60")
    await bench.create(uid)
    await bench.until_printed(uid, "hello\n")
    bench.restart()

    assert await bench.word(uid) == "running"
    assert await bench.logs(uid) == "hello\n"


async def test_a_deleted_job_script_has_its_grace_period(bench: Bench) -> None:
    """What it runs hears of the end and can save its work; its output stays."""
    trap = "trap 'sleep 1; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    uid = scripted(bench, f'cd $workingPath; sh -c "{trap}" > run-c0.out')
    await bench.create(uid)
    await bench.until_printed(uid, "up\n")

    await bench.delete(uid, grace_s=20)

    await bench.wait(uid, "143")
    assert await bench.logs(uid) == "up\nsaved\n"
    assert not (bench.folder / uid / "env").exists()


async def test_a_time_limit_ends_a_job_script(bench: Bench) -> None:
    """As it ends containers, with Slurm's reason."""
    uid = scripted(bench, "sleep 600")
    await bench.create(uid)
    await bench.wait(uid, "running")
    bench.site.run("scontrol", "update", f"jobid={bench.job_id(uid)}", "EndTime=now")

    await bench.wait(uid, "143 DeadlineExceeded", deadline_s=60)
