"""Pods as jobs of a real Slurm: from create to delete."""

from interlink.testing.waiting import until_async
from tests.support.slurm import Bench


async def test_a_pod_runs_as_a_job(bench: Bench) -> None:
    """Submitted, run on a node, ended; its output can be read."""
    uid = await bench.start("echo hello; exit 0")

    await bench.wait(uid, "0 Completed")

    assert await bench.logs(uid) == "hello\n"
    assert bench.starts() == {"c0": 1}


async def test_an_exit_code_is_the_programs_t06(bench: Bench) -> None:
    """With its reason and its times."""
    uid = await bench.start("exit 42")

    await bench.wait(uid, "42 Error")

    terminated = (await bench.containers(uid))[0].terminated
    assert terminated is not None
    assert terminated.started_at
    assert terminated.finished_at
    assert terminated.started_at <= terminated.finished_at


async def test_containers_run_at_the_same_time_t07(bench: Bench) -> None:
    """They share an emptyDir in one job."""
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    uid = bench.pod(
        volumes=[{"name": "data", "emptyDir": {}}],
        containers=[
            bench.container("main", "echo x > /data/done; exit 3", **mount),
            bench.container("wait", "until [ -f /data/done ]; do sleep 0.1; done", **mount),
        ],
    )
    await bench.create(uid)

    async def have_ended() -> bool:
        return [s.terminated.exit_code for s in await bench.containers(uid) if s.terminated] == [3, 0]

    assert await until_async(have_ended, deadline_s=30), await bench.containers(uid)


async def test_a_site_without_data_of_pods(bench: Bench) -> None:
    """ExportPodData: false. The pod runs without its volumes."""
    bench.restart(ExportPodData=False)
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/no-such-place"}, {"name": "s", "mountPath": "/s"}]}
    uid = bench.pod(
        volumes=[{"name": "data", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "never-came"}}],
        containers=[bench.container("c0", "ls -d /no-such-place /s; exit 0", **mount)],
    )
    await bench.create(uid)

    await bench.wait(uid, "0 Completed")
    assert not (bench.folder / uid / "volumes").exists()


async def test_init_containers_run_first_t08(bench: Bench) -> None:
    """One that fails ends the pod; the main container never starts."""
    uid = bench.pod("echo never", initContainers=[bench.container("i0", "exit 0"), bench.container("i1", "exit 7")])
    await bench.create(uid)

    async def has_failed() -> bool:
        status = await bench.status(uid)
        return status is not None and b'"exitCode":7' in bytes((status.init_containers or [])[1])

    assert await until_async(has_failed, deadline_s=30)
    assert await bench.word(uid) == "waiting PodInitializing"
    assert bench.starts() == {"i0": 1, "i1": 1}
