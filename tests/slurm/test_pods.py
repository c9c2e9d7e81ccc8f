"""From kubectl to a job of a real Slurm and back, also through crashes of the plugin."""

import pytest

from interlink.testing.programs import Programs
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until
from tests.support.pods import Pods

PODS = 6
CREATES = ["plugin.intent.after", "plugin.submit.after", "plugin.job-id.after"]


def alive(site: SlurmSite) -> list[str]:
    return site.run("squeue", "-ho", "%j").split()


@pytest.mark.usefixtures("programs")
def test_a_pod_on_slurm(pods: Pods, site: SlurmSite) -> None:
    """It runs under its job id, its log is read, its exit code is the program's; deleted, nothing is left."""
    pods.start("p", "echo hello; exit 42")
    status = pods.wait("p", "Failed")["status"]

    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 42
    assert pods.kubectl("logs", "p") == "hello\n"
    (job_id,) = pods.job_ids().values()
    assert job_id
    assert job_id.isdecimal()
    pods.kubectl("delete", "pod", "p", "--timeout=30s")
    assert alive(site) == []


@pytest.mark.usefixtures("programs")
def test_a_running_pod_is_deleted_t21(pods: Pods, site: SlurmSite) -> None:
    """The pod object goes after the job has ended, long before the end of the grace period."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")

    pods.kubectl("delete", "pod", "p", "--timeout=25s")

    assert until(lambda: alive(site) == [], deadline_s=10)


@pytest.mark.usefixtures("programs")
def test_a_submission_that_slurm_refuses_t13(pods: Pods) -> None:
    """The pod fails, with Slurm's own words in its message and in its log."""
    document = pods.pod("p", "true")
    document["metadata"]["annotations"] = {"slurm-job.vk.io/flags": "-p nosuch"}
    pods.apply(document)

    status = pods.wait("p", "Failed")["status"]

    words = "invalid partition specified: nosuch"
    assert words in status["message"]
    assert words in pods.kubectl("logs", "p")


@pytest.mark.parametrize("point", CREATES)
def test_the_plugin_is_killed_in_the_middle_of_creates(stopped_programs: Programs, pods: Pods, point: str) -> None:
    """Each payload starts exactly once, and each pod succeeds."""
    stopped_programs.start(failpoints={stopped_programs.plugin: f"{point}=kill@3"})
    pods.start_many(PODS, "sleep 1")
    stopped_programs.plugin.await_death()

    stopped_programs.plugin.start()

    pods.wait_all("Succeeded", PODS)
    pods.assert_started_once(PODS)


@pytest.mark.parametrize("point", ["plugin.tombstone.after", "plugin.cancel.after"])
def test_the_plugin_is_killed_in_the_middle_of_deletes(
    programs: Programs, pods: Pods, site: SlurmSite, point: str
) -> None:
    """Every pod goes, and every job."""
    pods.start_many(3, "sleep 600")
    pods.wait_all("Running", 3)
    programs.plugin.stop()
    programs.plugin.start(failpoints=f"{point}=kill@2")
    pods.kubectl("delete", "pods", "--all", "--wait=false")
    programs.plugin.await_death()

    programs.plugin.start()

    pods.wait_gone("p0", "p1", "p2")
    assert until(lambda: alive(site) == [], deadline_s=20)


def test_slurm_is_killed_under_running_pods_t11(programs: Programs, pods: Pods, site: SlurmSite) -> None:
    """They stay Running while nobody answers, and end as they end."""
    pods.start_many(3, "sleep 12")
    pods.wait_all("Running", 3)
    site.await_saved()
    site.kill_controller()
    programs.wait_log(programs.server, "could not be asked")
    assert pods.phases()["Running"] == 3
    site.start_controller()

    pods.wait_all("Succeeded", 3)
    pods.assert_started_once(3)
