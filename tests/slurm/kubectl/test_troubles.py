"""What kubectl shows while Slurm holds, stops, requeues or cancels a job, refuses it, or does not answer."""

import itertools
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from interlink.sdk.batch.jobdir import JobDirectory
from interlink.testing.programs import Programs
from interlink.testing.slurm import SlurmSite
from interlink.testing.waiting import until
from tests.e2e.test_events import wait_for
from tests.e2e.test_workloads import controller, node, template
from tests.support.pods import Document, Pods, once_there
from tests.support.slurm_commands import REFUSED, Commands, forgetting
from tests.support.slurm_jobs import FLAGS, PRE_EXEC, has_ended, living, lose_end, submitted

INTERVAL_S = 0.5
"""Between questions to the plugin, as `Programs` has it."""
SILENT = "echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 0"

pytestmark = pytest.mark.usefixtures("controllers")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file that lets the programs of a test end; there at its end in any case."""
    yield tmp_path / "gate"
    (tmp_path / "gate").touch()


def await_polls(pods: Pods, commands: Commands, count: int) -> None:
    """Wait until the queue has been asked for so many times more."""
    before = len(commands.calls("squeue"))
    pods.wait_until(lambda: len(commands.calls("squeue")) >= before + count, f"{count} more polls")


def start_again(slurm: SlurmSite, job_id: str) -> None:
    """Slurm lets a requeued job wait two minutes; in the first second its node would still refuse it."""
    slurm.run("scontrol", "update", f"jobid={job_id}", "starttime=now+2seconds")


# --- states ----------------------------------------------------------------------------------------------------------


def test_a_held_job_t10(pods: Pods, slurm: SlurmSite) -> None:
    """The pod is Pending in Slurm's words, and runs when the job is released."""
    pods.start("p", "exit 0", annotations={FLAGS: "--hold"})
    message = pods.wait_reason("p", "JobHeld")
    assert "waiting in the queue of Slurm" in message
    assert pods.get("p")["status"]["phase"] == "Pending"

    slurm.run("scontrol", "release", pods.wait_job_id("p"))

    pods.wait("p", "Succeeded")
    pods.assert_started_once(1)


def test_a_suspended_job_t10(pods: Pods, commands: Commands, slurm: SlurmSite, shared: Programs, gate: Path) -> None:
    """The pod stays Running, kubectl shows that it is suspended until the job goes on, and it ends with the job."""
    pods.start("p", once_there(gate, "exit 0"))
    pods.wait("p", "Running")
    job_id = pods.wait_job_id("p")
    assert column(pods, "p") == "Running"
    slurm.run("scontrol", "suspend", job_id)
    assert until(lambda: stands_still(pods, shared), deadline_s=30)
    gate.touch()
    pods.wait_until(lambda: column(pods, "p") == "Suspended", "kubectl shows it")
    await_polls(pods, commands, 6)
    assert (slurm.state(job_id), pods.get("p")["status"]["phase"]) == ("SUSPENDED", "Running")
    described = pods.kubectl("describe", "pod", "p")
    assert [line.split(maxsplit=1)[1] for line in described.splitlines() if line.startswith(("Reason", "Message"))] == [
        "Suspended",
        "Slurm has suspended the job",
    ]

    slurm.run("scontrol", "resume", job_id)

    pods.wait("p", "Succeeded")
    assert "reason" not in pods.get("p")["status"]
    pods.assert_started_once(1)


def test_a_stopped_job_t10(pods: Pods, commands: Commands, slurm: SlurmSite, shared: Programs, gate: Path) -> None:
    """By a signal, which reaches its runner, and it keeps its nodes: the pod stays Running and says so, and ends with
    the job when that goes on."""
    pods.start("p", once_there(gate, "exit 0"))
    pods.wait("p", "Running")
    job_id = pods.wait_job_id("p")
    slurm.run("scancel", "--full", "--signal=STOP", job_id)
    assert until(lambda: stands_still(pods, shared), deadline_s=30)
    gate.touch()
    pods.wait_until(lambda: column(pods, "p") == "Stopped", "kubectl shows it")
    await_polls(pods, commands, 6)
    assert slurm.run("squeue", "-ho", "%t", "-j", job_id).strip() == "ST"
    status = pods.get("p")["status"]
    assert (status["phase"], status["message"]) == ("Running", "the job was stopped by a signal and keeps its nodes")

    slurm.run("scancel", "--full", "--signal=CONT", job_id)

    pods.wait("p", "Succeeded")
    assert "reason" not in pods.get("p")["status"]
    pods.assert_started_once(1)


def test_a_suspended_job_that_goes_on_t10(pods: Pods, slurm: SlurmSite) -> None:
    """What kubectl shows of it is over, also where Slurm stopped it several times; each has its events."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")
    for _ in range(2):
        slurm.run("scontrol", "suspend", pods.wait_job_id("p"))
        pods.wait_until(lambda: column(pods, "p") == "Suspended", "kubectl shows it")
        slurm.run("scontrol", "resume", pods.wait_job_id("p"))
        pods.wait_until(lambda: column(pods, "p") == "Running", "kubectl shows that it is over")

    found = {event["reason"]: event for event in wait_for(pods, "p", "Suspended", "Resumed")}

    assert not {"reason", "message"} & pods.get("p")["status"].keys()
    assert (found["Suspended"]["type"], found["Resumed"]["type"]) == ("Warning", "Normal")
    assert found["Suspended"]["message"] == "Slurm has suspended the job"
    pods.assert_started_once(1)


def stands_still(pods: Pods, shared: Programs) -> bool:
    """Whether the job's runner has been stopped, which its node does some time after Slurm says so."""
    runner = JobDirectory(shared.jobs / pods.uid("p")).runner_process()
    return Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def column(pods: Pods, name: str) -> str:
    """What `kubectl get pods` shows as STATUS."""
    return pods.kubectl("get", "pod", name, "--no-headers").split()[2]


def test_a_job_that_is_requeued_and_held_t10(pods: Pods, commands: Commands, slurm: SlurmSite, gate: Path) -> None:
    """Before its programs have started: the pod has not ended but waits, and runs when the job is released."""
    pods.start("p", "exit 0", annotations={PRE_EXEC: once_there(gate, "true")})
    job_id = pods.wait_job_id("p")
    assert until(lambda: slurm.state(job_id) == "RUNNING", deadline_s=30)
    slurm.run("scontrol", "update", f"jobid={job_id}", "requeue=1")
    slurm.run("scontrol", "requeuehold", job_id)
    pods.wait_until(lambda: "requeued" in pods.state("p").get("waiting", {}).get("message", ""), "p says so")
    await_polls(pods, commands, 4)
    assert pods.get("p")["status"]["phase"] == "Pending"

    gate.touch()
    slurm.run("scontrol", "release", job_id)
    start_again(slurm, job_id)

    pods.wait("p", "Succeeded")
    assert submitted(slurm, pods.uid("p")) == {job_id}
    pods.assert_started_once(1)


def test_a_running_job_that_is_requeued_and_held_t10(pods: Pods, slurm: SlurmSite) -> None:
    """Its programs have ended and never start again: the pod has failed, and deleted it leaves nothing in the queue."""
    pods.start("p", "sleep 600")
    pods.wait("p", "Running")
    job_id, uid = pods.wait_job_id("p"), pods.uid("p")
    slurm.run("scontrol", "update", f"jobid={job_id}", "requeue=1")
    slurm.run("scontrol", "requeuehold", job_id)

    pods.wait("p", "Failed")
    pods.kubectl("delete", "pod", "p", "--timeout=30s")

    assert until(lambda: living(slurm, uid) == [], deadline_s=20)
    pods.assert_started_once(1)


def test_jobs_that_are_cancelled_at_slurm_t10(pods: Pods, slurm: SlurmSite) -> None:
    """Waiting or running: the pods have failed, and say why."""
    pods.start("waits", "true", annotations={FLAGS: "--hold"})
    pods.start("runs", "sleep 600")
    pods.wait("runs", "Running")
    slurm.run("scancel", pods.wait_job_id("waits"), pods.wait_job_id("runs"))

    found = {}
    for name in ("waits", "runs"):
        pods.wait(name, "Failed")
        ended = pods.state(name)["terminated"]
        found[name] = (ended["exitCode"], ended["reason"], ended["message"])

    text = "the job was cancelled at Slurm"
    assert found == {"waits": (137, "Cancelled", text), "runs": (143, "Cancelled", text)}
    pods.assert_started_once(1)


# --- preemption ------------------------------------------------------------------------------------------------------


@pytest.fixture
def requeueing(slurm: SlurmSite) -> Iterator[None]:
    """Preempted jobs of the low partition go back into the queue."""
    slurm.run("scontrol", "update", "partitionname=low", "preemptmode=requeue")
    yield
    slurm.run("scontrol", "update", "partitionname=low", "preemptmode=cancel")


def recorded(slurm: SlurmSite, job_id: str) -> list[str]:
    """The states of a job's records in accounting."""
    return slurm.run("sacct", "-XPn", "--allusers", "--duplicates", "-o", "State", "-j", job_id).split()


@pytest.mark.usefixtures("requeueing")
def test_the_last_record_of_a_job_counts_t12(
    pods: Pods, commands: Commands, slurm: SlurmSite, shared: Programs, gate: Path
) -> None:
    """Preempted before its programs started, then completed, then forgotten by the controller: accounting has two ends
    of one id, and tells the last one where the record was lost. Without accounting the record tells it."""
    launch = gate.with_name("launch")
    pids = gate.with_name("pids")
    annotations = {FLAGS: "-p low -N 2 --exclusive", PRE_EXEC: f"echo $$ >> {pids}; {once_there(launch, 'true')}"}
    pods.start("p", once_there(gate, "exit 0"), annotations=annotations)
    job_id = pods.wait_job_id("p")
    assert until(lambda: pids.exists() and pids.read_text().strip() != "", deadline_s=30)
    slurm.run("scontrol", "update", f"jobid={job_id}", "requeue=1")
    first = Path("/proc", pids.read_text().strip())
    options = ("--parsable", "-pmain", "-N2", "--exclusive", "--output=/dev/null")
    other = slurm.run("sbatch", *options, "--wrap", "sleep 600").strip()
    assert until(lambda: slurm.state(job_id) == "PENDING" and not first.exists(), deadline_s=30)
    slurm.cancel([other])
    launch.touch()
    start_again(slurm, job_id)
    pods.wait("p", "Running")

    with commands.answering(squeue=REFUSED):
        gate.touch()
        assert until(lambda: has_ended(slurm, job_id), deadline_s=30)
        if slurm.has_accounting:  # which hears of an end a moment later
            assert until(lambda: recorded(slurm, job_id) == ["PREEMPTED", "COMPLETED"], deadline_s=30)
            lose_end(shared.jobs / pods.uid("p"))
        with commands.answering(squeue=forgetting(job_id)):
            pods.wait("p", "Succeeded")

    pods.assert_started_once(1)


# --- no answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["refused", "silent"])
def test_slurm_is_away_for_a_while_t11(
    programs: Programs, pods: Pods, commands: Commands, gate: Path, kind: str
) -> None:
    """The pods stay Running, the node says what is wrong, and the pauses between questions grow; then the truth."""
    script = REFUSED if kind == "refused" else SILENT
    pods.start_many(5, once_there(gate, "exit 3"))
    pods.wait_all("Running", 5)
    with commands.answering(squeue=script, sinfo=script, sacct=script):
        pods.wait_until(lambda: node(pods, programs)["InterlinkConnectivity"] == "False", "the node says so")
        assert "slurm_load_jobs error" in trouble(pods, programs)
        gate.touch()
        asked = len(commands.calls("squeue"))
        pods.wait_until(lambda: has_long_pause(commands, asked), "Slurm is asked less often")
        assert pods.phases() == {"Running": 5}
    pods.wait_all("Failed", 5, deadline_s=15)

    assert {pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods.all()} == {3}
    pods.assert_started_once(5)


def has_long_pause(commands: Commands, since: int) -> bool:
    """Whether a pause between questions about the queue has been much longer than between polls."""
    tries = [call.at for call in commands.calls("squeue")[since:]]
    return any(later - earlier > 3 * INTERVAL_S for earlier, later in itertools.pairwise(tries))


def trouble(pods: Pods, programs: Programs) -> str:
    path = "jsonpath={.status.conditions[?(@.type=='InterlinkConnectivity')].message}"
    return pods.kubectl("get", "node", programs.node_name, "-o", path)


# --- refusals --------------------------------------------------------------------------------------------------------

NOWHERE = {FLAGS: "-p nosuch"}
WORDS = "invalid partition specified: nosuch"


def test_a_refusal_is_told_t13(pods: Pods, commands: Commands) -> None:
    """Slurm's own words, in the pod's message and in an event; the pod is not tried again."""
    pods.start("p", "true", annotations=NOWHERE)
    pod = pods.wait("p", "Failed")
    (event,) = wait_for(pods, "p", "Failed")

    assert WORDS in pod["status"]["message"]
    assert (event["type"], event["count"]) == ("Warning", 1)
    assert WORDS in event["message"]
    assert len(commands.calls("sbatch", about=pods.uid("p"))) == 1


def test_a_deployment_that_slurm_refuses_makes_no_storm_t13(pods: Pods, commands: Commands) -> None:
    """Each pod fails once, and the pauses between them grow."""
    broken = template(pods, "true")
    broken["metadata"]["annotations"] = NOWHERE
    pods.apply(controller("Deployment", broken, replicas=1))
    pods.wait_until(lambda: len(failed(pods)) >= 4, "four pods have failed", deadline_s=90)
    found = failed(pods)
    pods.kubectl("delete", "deployment", "x", "--timeout=30s")

    assert all(WORDS in pod["status"]["message"] for pod in found)
    made = sorted(datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in found)
    asked = sorted(commands.calls("sbatch", about=pod["metadata"]["uid"])[0].at for pod in found)
    assert (made[3] - made[0]).total_seconds() >= 2
    assert asked[3] - asked[2] > asked[1] - asked[0]
    assert [len(commands.calls("sbatch", about=pod["metadata"]["uid"])) for pod in found] == [1] * len(found)


def failed(pods: Pods) -> list[Document]:
    return [pod for pod in pods.all() if pod["status"]["phase"] == "Failed"]
