"""How pods end."""

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from interlink.sdk.batch.jobdir import JobDirectory
from interlink.testing import Cluster
from interlink.testing.errors import KubectlError
from interlink.testing.programs import Programs
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until
from tests.e2e.test_pods import (
    test_containers_run_at_the_same_time_t07,
    test_delete_ignoring_term_is_killed_after_grace,
    test_exit_code_t06,
    test_init_containers_in_order_t08,
)
from tests.e2e.test_workloads import controller, template
from tests.slurm.kubectl.conftest import Configure
from tests.support.pods import Pods, once_there
from tests.support.runtimes import program_of
from tests.support.slurm_commands import REFUSED, Commands, forgetting
from tests.support.slurm_jobs import FLAGS, has_ended, living, lose_end, submitted

__all__ = [
    "test_containers_run_at_the_same_time_t07",
    "test_delete_ignoring_term_is_killed_after_grace",
    "test_exit_code_t06",
    "test_init_containers_in_order_t08",
]

TIMED_OUT = "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"

pytestmark = pytest.mark.usefixtures("controllers")


@pytest.fixture(scope="module", autouse=True)
def limited(cluster: Cluster, shared: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    """A pod with Slurm's shortest time limit, which is a minute: it runs beside the tests before it is looked at."""
    pods = Pods(cluster, "default", shared.node_name, ledger=tmp_path_factory.mktemp("limited") / "ledger")
    pods.start(shared.node_name, "sleep 600", annotations={FLAGS: "-t 1"})
    yield pods
    pods.kubectl("delete", "pod", shared.node_name, "--grace-period=1", "--wait=false")


# --- submissions -----------------------------------------------------------------------------------------------------


def test_a_submission_that_says_it_failed_and_did_not_t05(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """Slurm has taken the job, sbatch says that it has not: the job is adopted, and nothing is submitted again."""
    with commands.answering(sbatch=f'sbatch "$@" >/dev/null; {TIMED_OUT}'):
        pods.start("p", "exit 0")
        pod = pods.wait("p", "Succeeded")

    assert submitted(slurm, pods.uid("p")) == {pod["metadata"]["annotations"]["JobID"]}
    assert len(commands.calls("sbatch", about=pods.uid("p"))) == 1
    pods.assert_started_once(1)


def test_a_submission_that_failed_is_repeated_t05(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """Slurm has nothing in its queue: the submission is repeated, after a pause, and there is one job."""
    with commands.answering(sbatch=TIMED_OUT):
        pods.start("p", "exit 0")
        pods.wait_until(lambda: len(commands.calls("sbatch", about=pods.uid("p"))) >= 2, "it is submitted again")
    pod = pods.wait("p", "Succeeded")

    tries = [call.at for call in commands.calls("sbatch", about=pods.uid("p"))]
    assert min(later - earlier for earlier, later in itertools.pairwise(tries)) > 1
    assert submitted(slurm, pods.uid("p")) == {pod["metadata"]["annotations"]["JobID"]}
    pods.assert_started_once(1)


# --- programs --------------------------------------------------------------------------------------------------------


def test_a_job_without_retries_fails_t06(pods: Pods) -> None:
    """backoffLimit 0: one pod, which fails with the program's code."""
    pods.apply(controller("Job", template(pods, "exit 42", restartPolicy="Never"), backoffLimit=0))

    pods.kubectl("wait", "--for=condition=failed", "job/x", "--timeout=60s")

    reasons = pods.kubectl("get", "job", "x", "-o=jsonpath={.status.conditions[?(@.type=='Failed')].reason}")
    assert reasons == "BackoffLimitExceeded"
    (pod,) = pods.all()
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 42
    pods.assert_started_once(1)


def test_a_pod_runs_after_its_init_containers_t08(pods: Pods, tmp_path: Path) -> None:
    """kubectl shows Running then, not Init."""
    init = [pods.container("i0", "exit 0"), pods.container("i1", "exit 0")]
    pods.start("p", once_there(tmp_path / "gate", "exit 0"), initContainers=init)
    pods.wait("p", "Running")
    pods.wait_until(lambda: "running" in pods.state("p"), "the main container runs")
    shown = pods.kubectl("get", "pod", "p", "--no-headers").split()
    (tmp_path / "gate").touch()
    pods.wait("p", "Succeeded")

    assert shown[:3] == ["p", "1/1", "Running"]
    pods.assert_started_once(3)


# --- memory ----------------------------------------------------------------------------------------------------------


def out_of_memory(commands: Commands, state: str) -> AbstractContextManager[None]:
    """Slurm's words where it enforces memory, which needs control groups: the state is OUT_OF_MEMORY."""
    return commands.answering(
        squeue=f'squeue "$@" | sed "s/{state:13}/OUT_OF_MEMORY/"',
        sacct=f'sacct "$@" | sed "s/|{state}|/|OUT_OF_MEMORY|/"',
    )


def test_out_of_memory_without_a_result_t09b(pods: Pods, commands: Commands, shared: Programs) -> None:
    """The kernel has killed the job's processes: OOMKilled, 137, and no second try."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")
    runner = JobDirectory(shared.jobs / pods.uid("p")).runner_process()
    assert runner is not None
    with out_of_memory(commands, "FAILED"):
        os.kill(runner, signal.SIGKILL)
        pods.wait("p", "Failed")

    ended = pods.state("p")["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert len(commands.calls("sbatch", about=pods.uid("p"))) == 1


def test_out_of_memory_with_a_success_t09c(pods: Pods, commands: Commands) -> None:
    """The program says 0, Slurm says that memory ran out: no success."""
    with out_of_memory(commands, "COMPLETED"):
        pods.start("p", "exit 0")
        pods.wait("p", "Failed")

    assert pods.state("p")["terminated"]["reason"] == "OOMKilled"
    assert len(commands.calls("sbatch", about=pods.uid("p"))) == 1


# --- gone ------------------------------------------------------------------------------------------------------------


def test_gone_from_the_queue_t12(
    pods: Pods, commands: Commands, slurm: SlurmSite, shared: Programs, tmp_path: Path
) -> None:
    """The controller has forgotten the jobs: how they ended is in their records. Where a record was lost with its
    runner, accounting tells the end. Without accounting nobody can: after a minute the pod fails, as of an end that is
    not known, and nothing runs again."""
    ends = {"good": "exit 0", "bad": "exit 5"}
    lost = {"lost-good": "exit 0", "lost-bad": "exit 5"}
    pods.apply(*(pods.pod(name, once_there(tmp_path / "gate", script)) for name, script in (ends | lost).items()))
    pods.wait_all("Running", len(ends | lost))
    ids = [pods.wait_job_id(name) for name in ends | lost]
    with commands.answering(squeue=REFUSED):
        (tmp_path / "gate").touch()
        assert until(lambda: all(has_ended(slurm, job_id) for job_id in ids), deadline_s=30)
        for name in lost:
            lose_end(shared.jobs / pods.uid(name))
        with commands.answering(squeue=forgetting(*ids)):
            pods.wait_until(lambda: pods.phases()["Running"] == 0, "all have ended", deadline_s=90)

    known = {"good": ("Succeeded", 0, "Completed"), "bad": ("Failed", 5, "Error")}
    unknown = ("Failed", 137, "ContainerStatusUnknown")
    assert {name: outcome(pods, name) for name in ends | lost} == known | {
        name: known[name.removeprefix("lost-")] if slurm.has_accounting else unknown for name in lost
    }
    pods.assert_started_once(len(ends | lost))


def outcome(pods: Pods, name: str) -> tuple[str, int, str]:
    """Phase of the pod, exit code and reason of its container."""
    ended = pods.state(name)["terminated"]
    return pods.get(name)["status"]["phase"], ended["exitCode"], ended["reason"]


# --- deletions -------------------------------------------------------------------------------------------------------


def test_a_deletion_is_graceful_t21(pods: Pods, slurm: SlurmSite, shared: Programs) -> None:
    """One TERM; the last words can be read while the program ends; the pod goes after its job, before its time."""
    mark = f"farewell-of-{shared.node_name}-{pods.namespace}"
    script = f": {mark}; trap 'echo bye; sleep 3; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    pods.start("p", script, terminationGracePeriodSeconds=30)
    pods.wait("p", "Running")
    uid = pods.uid("p")
    pods.wait_until(lambda: pods.kubectl("logs", "p") == "up\n", "the program is up")
    follower = pods.follow_log("p")

    pods.kubectl("delete", "pod", "p", "--wait=false")

    assert until(lambda: said(pods) == "up\nbye\n", deadline_s=15)
    pods.kubectl("wait", "--for=delete", "pod/p", "--timeout=25s")
    assert living(slurm, uid) == []
    assert program_of(uid, mark) == []
    assert follower.read() == "up\nbye\n"


def said(pods: Pods) -> str:
    try:
        return pods.kubectl("logs", "p")
    except KubectlError:
        return ""


def test_queued_and_purged_jobs_are_deleted_t21(pods: Pods, commands: Commands, slurm: SlurmSite) -> None:
    """At once, and nothing starts."""
    pods.start("queued", "true", annotations={FLAGS: "--hold"})
    pods.start("purged", "exit 0")
    pods.wait("purged", "Succeeded")
    queued, purged = pods.wait_job_id("queued"), pods.wait_job_id("purged")
    uid = pods.uid("queued")

    with commands.answering(squeue=forgetting(purged)):
        pods.kubectl("delete", "pods", "queued", "purged", "--timeout=20s")

    assert until(lambda: has_ended(slurm, queued), deadline_s=10)
    assert not [start for start in pods.starts() if uid in start]


@pytest.mark.parametrize("how", ["suspended", "stopped"])
def test_a_job_that_stands_still_is_deleted_t21(pods: Pods, slurm: SlurmSite, how: str) -> None:
    """Slurm gives no signal to one that is suspended: it ends at once, as by scancel. One that was stopped by a signal
    goes on and ends by itself."""
    mark = f"still-{how}-{pods.namespace}"
    pods.start(
        "p",
        f": {mark}; trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done",
        terminationGracePeriodSeconds=300,
    )
    pods.wait_until(lambda: said(pods) == "up\n", "the program is up")
    job_id, uid = pods.wait_job_id("p"), pods.uid("p")
    stop = ("scontrol", "suspend") if how == "suspended" else ("scancel", "--full", "--signal=STOP")
    slurm.run(*stop, job_id)
    assert until(lambda: slurm.state(job_id) == how.upper(), deadline_s=10)

    follower = pods.follow_log("p")

    pods.kubectl("delete", "pod", "p", "--timeout=30s")

    assert until(lambda: has_ended(slurm, job_id), deadline_s=10)
    assert program_of(uid, mark) == []
    assert follower.read() == ("up\n" if how == "suspended" else "up\nbye\n")


def test_nothing_is_left_of_a_deleted_pod_t21(pods: Pods, shared: Programs, configured: Configure) -> None:
    """Its directory goes when its job is over; that of a pod that is there stays."""
    pods.start("gone", "sleep 600")
    pods.start("kept", "exit 0")
    pods.wait("gone", "Running")
    pods.wait("kept", "Succeeded")
    gone, kept = (shared.jobs / pods.uid(name) for name in ("gone", "kept"))
    pods.kubectl("delete", "pod", "gone", "--timeout=25s")
    assert gone.exists()

    configured(KeepDeletedJobs=0)

    assert until(lambda: not gone.exists(), deadline_s=20)
    assert kept.exists()


# --- no answer -------------------------------------------------------------------------------------------------------


def test_a_command_that_hangs_t11(pods: Pods, commands: Commands, tmp_path: Path) -> None:
    """It is ended at its time limit; meanwhile the pods stay Running."""
    gate, pids = tmp_path / "gate", tmp_path / "pids"
    pods.start_many(5, once_there(gate, "exit 0"))
    pods.wait_all("Running", 5)
    with commands.answering(squeue=f"[ -e {pids} ] || {{ echo $$ > {pids}; exec sleep 60; }}; {REFUSED}"):
        pods.wait_until(lambda: pids.exists() and pids.read_text().strip() != "", "squeue hangs")
        process = Path("/proc", pids.read_text().strip())
        assert process.exists()
        pods.wait_until(lambda: not process.exists(), "it is ended", deadline_s=45)
        assert pods.phases() == {"Running": 5}
        gate.touch()
    pods.wait_all("Succeeded", 5)

    pods.assert_started_once(5)


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_time_limit_t09a(limited: Pods, shared: Programs, commands: Commands) -> None:
    """The pod fails, its reason is the time limit, and nothing is submitted again."""
    limited.wait(shared.node_name, "Failed", deadline_s=150)  # Slurm looks at limits every half minute

    ended = limited.state(shared.node_name)["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("DeadlineExceeded", 143)
    assert "time limit" in ended["message"]
    assert len(commands.calls("sbatch", about=limited.uid(shared.node_name))) == 1
