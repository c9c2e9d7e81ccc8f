"""kill -9 of each program at rest, and the cache lost or damaged: nothing changes for any pod."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from interlink.testing import ControlPlane
from interlink.testing.programs import Programs
from interlink.testing.waiting import until
from tests.support.jobs import living_jobs
from tests.support.pods import Pods

COUNT = 5


def kill_virtual_kubelet(programs: Programs) -> None:
    assert programs.kubelet is not None
    programs.kubelet.restart()


def kill_server(programs: Programs) -> None:
    programs.server.restart()


def kill_plugin(programs: Programs) -> None:
    programs.plugin.restart()


def kill_all(programs: Programs) -> None:
    for program in programs.all().values():
        program.kill()
    programs.start()


def lose_cache_while_down(programs: Programs) -> None:
    programs.server.kill()
    shutil.rmtree(programs.cache)
    programs.server.start()


def lose_cache_while_up(programs: Programs) -> None:
    shutil.rmtree(programs.cache)
    programs.server.restart()


def truncate_record(programs: Programs) -> None:
    _damage(programs, lambda data: data[: len(data) // 2])


def flip_bit_in_record(programs: Programs) -> None:
    position = b'"uid": "'
    _damage(programs, lambda data: data.replace(position, b'"uid": "z', 1))


def empty_record(programs: Programs) -> None:
    _damage(programs, lambda _: b"")


def _damage(programs: Programs, change: Callable[[bytes], bytes]) -> None:
    programs.server.kill()
    record = min(programs.cache.glob("*.yaml"))
    record.write_bytes(change(record.read_bytes()))
    programs.server.start()
    assert (programs.cache / "damaged" / record.name).exists()
    assert f"damaged record {record.name}" in programs.get("/readyz")


TROUBLES = [
    kill_virtual_kubelet,
    kill_server,
    kill_plugin,
    kill_all,
    lose_cache_while_down,
    lose_cache_while_up,
    truncate_record,
    flip_bit_in_record,
    empty_record,
]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_running_pods_do_not_notice_t01_t02_t03(
    programs: Programs, pods: Pods, trouble: Callable[[Programs], None]
) -> None:
    """Running pods keep job id, start time and restart count, end as they would have, and never start twice."""
    gate = programs.folder / "gate"
    pods.start_many(COUNT, f"echo hello; until [ -e {gate} ]; do sleep 0.2; done; exit 5")
    pods.wait_all("Running", COUNT)
    before = _essence(pods)

    trouble(programs)

    assert pods.kubectl("logs", "p0") == "hello\n"
    assert pods.phases() == {"Running": COUNT}
    assert _essence(pods) == before
    gate.touch()
    pods.wait_all("Failed", COUNT)
    pods.assert_started_once(COUNT)
    codes = {p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for p in pods.all()}
    assert codes == {5}


def _essence(pods: Pods) -> dict[str, tuple[str, str, str]]:
    """What must not change, by UID."""
    return {
        pod["metadata"]["uid"]: (
            pod["metadata"]["annotations"]["JobID"],
            pod["status"]["startTime"],
            pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"],
        )
        for pod in pods.all()
    }


@pytest.mark.parametrize("trouble", [lose_cache_while_down, kill_all])
def test_finished_pods_stay_finished(programs: Programs, pods: Pods, trouble: Callable[[Programs], None]) -> None:
    """A finished pod is not run again and keeps its result and its log."""
    pods.start("p", "echo result; exit 3")
    finished = pods.wait("p", "Failed")

    trouble(programs)
    pods.start("later", "true")
    pods.wait("later", "Succeeded")

    assert pods.get("p")["status"] == finished["status"]
    assert pods.kubectl("logs", "p") == "result\n"
    pods.assert_started_once(2)


def test_job_that_ends_while_all_are_down(programs: Programs, pods: Pods) -> None:
    """The result of a job that ended in between is published as it was."""
    pods.start("p", f"until [ -e {programs.folder}/gate ]; do sleep 0.1; done; exit 9")
    pods.wait("p", "Running")
    for program in programs.all().values():
        program.kill()
    (programs.folder / "gate").touch()
    assert until(lambda: living_jobs(programs.jobs) == [], deadline_s=20)

    programs.start()

    status = pods.wait("p", "Failed")["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 9


def test_silence_takes_nothing_back(programs: Programs, pods: Pods) -> None:
    """The cache is lost and the plugin is away: a running pod stays Running and Ready, for nobody says otherwise."""
    assert programs.kubelet is not None
    pods.start("p", "sleep 600")
    running = pods.wait("p", "Running")
    programs.plugin.kill()
    lose_cache_while_down(programs)
    programs.wait_log(programs.kubelet, '"server.announced"')

    assert pods.get("p")["status"] == running["status"]


def test_virtual_kubelet_waits_for_the_api_server(
    stopped_programs: Programs, pods: Pods, control_plane: ControlPlane
) -> None:
    """It starts while the API server is away, and works when it comes."""
    assert stopped_programs.kubelet is not None
    control_plane.kill_apiserver()
    try:
        stopped_programs.plugin.start()
        stopped_programs.server.start()
        stopped_programs.kubelet.start(is_awaited=False)
        stopped_programs.wait_log(stopped_programs.kubelet, '"kubernetes.away"')
    finally:
        control_plane.start_apiserver()

    stopped_programs.kubelet.await_ready()
    pods.start("p", "exit 0")
    pods.wait("p", "Succeeded")


def test_pods_deleted_while_the_virtual_kubelet_is_down(programs: Programs, pods: Pods) -> None:
    """Pods that were deleted by force, and pods that wait for their deletion, take their jobs with them."""
    assert programs.kubelet is not None
    pods.start_many(4, "sleep 600")
    pods.wait_all("Running", 4)
    programs.kubelet.kill()
    pods.kubectl("delete", "pod", "p0", "p1", "--force", "--grace-period=0")
    pods.kubectl("delete", "pod", "p2", "p3", "--wait=false")

    programs.kubelet.start()

    pods.wait_gone("p0", "p1", "p2", "p3")
    assert until(lambda: living_jobs(programs.jobs) == [], deadline_s=20)


def test_server_and_plugin_away_while_pods_are_deleted(programs: Programs, pods: Pods) -> None:
    """The pod objects stay until the site can be asked; then they go with their jobs."""
    pods.start_many(3, "sleep 600")
    pods.wait_all("Running", 3)
    programs.server.kill()
    programs.plugin.kill()
    pods.kubectl("delete", "pods", "--all", "--wait=false")
    pods.wait_until(lambda: all("deletionTimestamp" in p["metadata"] for p in pods.all()), "deletion is asked")
    assert len(living_jobs(programs.jobs)) == 3
    assert len(pods.all()) == 3

    programs.plugin.start()
    programs.server.start()

    pods.wait_gone("p0", "p1", "p2")
    assert until(lambda: living_jobs(programs.jobs) == [], deadline_s=20)


def test_same_name_made_again_while_down(programs: Programs, pods: Pods) -> None:
    """A pod that was deleted and made again under its name is another pod: the old job ends, the new one runs."""
    assert programs.kubelet is not None
    pods.start("p", "sleep 600")
    old = pods.wait("p", "Running")["metadata"]["uid"]
    programs.kubelet.kill()
    pods.kubectl("delete", "pod", "p", "--force", "--grace-period=0")
    pods.start("p", "exit 0")

    programs.kubelet.start()

    assert pods.wait("p", "Succeeded")["metadata"]["uid"] != old
    assert until(lambda: living_jobs(programs.jobs) == [], deadline_s=20)


def test_sigterm_ends_each_program_cleanly(programs: Programs, pods: Pods) -> None:
    """Each program ends with code 0 at SIGTERM, and the pod's job goes on."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")

    codes = {name: program.terminate() for name, program in programs.all().items()}

    assert codes == {"plugin": 0, "server": 0, "virtual kubelet": 0}
    assert len(living_jobs(programs.jobs)) == 1
    programs.start()
    pods.kubectl("delete", "pod", "p", "--timeout=30s")


def test_a_create_goes_on_after_a_restart_of_the_server(programs: Programs, pods: Pods) -> None:
    """The plugin is away for longer than anybody waits, and the server that had begun with the creates is killed, which
    has no more of them than their names; both are back: each pod runs once, and nobody had to do anything."""
    programs.plugin.kill()
    pods.start_many(3, "exit 0")
    pods.wait_until(lambda: len(list(programs.cache.glob("*.yaml"))) == 3, "the server has begun with the creates")
    for number in range(3):
        pods.wait_reason(f"p{number}", "SiteUnreachable")

    programs.server.restart()
    programs.plugin.start()

    pods.wait_all("Succeeded", 3)
    pods.assert_started_once(3)


def test_a_pod_ends_under_a_virtual_kubelet_that_has_moved(programs: Programs, pods: Pods, tmp_path: Path) -> None:
    """Its own address is another one after each roll of a Deployment; the pod's stays, for a second one is refused."""
    assert programs.kubelet is not None
    pods.start("p", f"until [ -f {tmp_path}/go ]; do sleep 0.1; done")
    before = pods.wait("p", "Running")["status"]

    programs.kubelet.environ["POD_IP"] = "127.0.0.2"
    programs.kubelet.restart()
    (tmp_path / "go").touch()

    after = pods.wait("p", "Succeeded")["status"]
    assert (after["hostIP"], after["hostIPs"]) == (before["hostIP"], before["hostIPs"])
