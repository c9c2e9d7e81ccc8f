"""Our virtual kubelet with a server of the existing kind, which forgets everything and says little."""

import sys
from pathlib import Path

import pytest

from interlink.testing.programs import Programs
from interlink.testing.waiting import until
from tests.support.jobs import living_jobs
from tests.support.pods import Pods

COUNT = 8


@pytest.fixture
def programs(stopped_programs: Programs) -> Programs:
    """With the existing server in place of ours."""
    ports = [str(stopped_programs.server_port), str(stopped_programs.plugin_port)]
    stopped_programs.server.argv = [sys.executable, "-m", "tests.support.existing_server", *ports]
    stopped_programs.server.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    stopped_programs.start()
    return stopped_programs


def test_pods_live_as_with_our_own_server(programs: Programs, pods: Pods) -> None:
    """Created, run, logged, failed, deleted."""
    pods.start("fails", "echo hello; exit 5")
    pods.start("runs", "trap 'exit 0' TERM; while :; do sleep 0.1; done")

    status = pods.wait("fails", "Failed")["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 5
    assert pods.kubectl("logs", "fails") == "hello\n"
    pods.wait("runs", "Running")
    pods.kubectl("delete", "pod", "runs", "fails", "--timeout=40s")
    assert until(lambda: living_jobs(programs.jobs) == [], deadline_s=20)


def test_a_kill_of_each_program_doubles_and_loses_nothing(programs: Programs, pods: Pods) -> None:
    """The virtual kubelet in the middle of its creates, then the server, then the plugin."""
    assert programs.kubelet is not None
    pods.start_many(COUNT, f"until [ -e {programs.folder}/gate ]; do sleep 0.1; done; exit 3")
    programs.wait_log(programs.kubelet, '"pod.created"')
    programs.kubelet.restart()
    programs.server.restart()
    programs.plugin.restart()
    pods.wait_all("Running", COUNT)

    (programs.folder / "gate").touch()

    pods.wait_all("Failed", COUNT)
    pods.assert_started_once(COUNT)


def test_our_own_server_takes_its_place(programs: Programs, pods: Pods) -> None:
    """An installation that is upgraded while pods run."""
    assert programs.kubelet is not None
    pods.start_many(COUNT, "sleep 600")
    pods.wait_all("Running", COUNT)
    programs.server.kill()
    programs.server.argv = [
        *programs.plugin.argv[:3],
        "server",
        "--config",
        str(programs.folder / "server.yaml"),
    ]

    programs.server.start()
    programs.kubelet.restart()

    pods.start("new", "exit 0")
    pods.wait("new", "Succeeded")
    assert pods.phases() == {"Running": COUNT, "Succeeded": 1}
    pods.assert_started_once(COUNT + 1)
