"""kill -9 at every step of every protocol: no job is lost, doubled or orphaned.

The points are named in the product (`with step("server.intent")`) and switched on for one process of one test. The
steps of the crash plan: C1 to C3 and C17 to C19 are the virtual kubelet's, C4 to C6, C15 and C16 the server's, C7 to
C13 the plugin's. Where nothing lies between one step's `after` and the next one's `before`, the point stands once.
"""

import re
from pathlib import Path

import pytest

import interlink
from interlink.testing.programs import Program, Programs
from interlink.testing.waiting import until
from tests.support.jobs import living_jobs
from tests.support.pods import Pods

PODS = 20
AT_HIT = 7

CREATES = [
    "vk.inputs.before",
    "vk.inputs.after",
    "vk.create.after",
    "vk.publish.after",
    "server.intent.before",
    "server.intent.after",
    "server.forward.before",
    "server.forward.after",
    "server.job-id.after",
    "plugin.intent.before",
    "plugin.intent.after",
    "plugin.submit.after",
    "plugin.job-id.after",
]
STATUSES = ["server.observe.before", "server.observe.after"]
DELETES = [
    "vk.delete.before",
    "vk.delete.after",
    "server.tombstone.before",
    "server.tombstone.after",
    "server.forward-delete.after",
    "plugin.tombstone.before",
    "plugin.tombstone.after",
    "plugin.cancel.after",
    "vk.remove.before",
    "vk.remove.after",
]
RECOVERIES = ["vk.announce.before", "vk.announce.after", "server.adopt.before", "server.adopt.after"]


def victim(programs: Programs, point: str) -> Program:
    found = {"vk": programs.kubelet, "server": programs.server, "plugin": programs.plugin}[point.split(".")[0]]
    assert found is not None
    return found


def restart_with(programs: Programs, point: str, *, at_hit: int) -> Program:
    program = victim(programs, point)
    program.stop()
    program.start(failpoints=f"{point}=kill@{at_hit}")
    return program


@pytest.mark.parametrize("point", [*CREATES, *STATUSES])
def test_kill_in_the_middle_of_creates(stopped_programs: Programs, pods: Pods, point: str) -> None:
    """Each payload of 20 pods starts exactly once, each pod succeeds and keeps the job id that it had."""
    program = victim(stopped_programs, point)
    stopped_programs.start(failpoints={program: f"{point}=kill@{1 if point in STATUSES else AT_HIT}"})
    pods.start_many(PODS, "sleep 1")
    program.await_death()
    known = {uid: job_id for uid, job_id in pods.job_ids().items() if job_id}

    program.start()

    pods.wait_all("Succeeded", PODS)
    pods.assert_started_once(PODS)
    assert pods.job_ids() | known == pods.job_ids()


@pytest.mark.parametrize("point", DELETES)
def test_kill_in_the_middle_of_deletes(programs: Programs, pods: Pods, point: str) -> None:
    """Every pod object goes, and with it every job."""
    pods.start_many(5, "sleep 600")
    pods.wait_all("Running", 5)
    program = restart_with(programs, point, at_hit=3)
    pods.kubectl("delete", "pods", "--all", "--wait=false")
    program.await_death()

    program.start()

    pods.wait_gone(*(f"p{number}" for number in range(5)))
    assert until(lambda: living_jobs(programs.jobs) == [], deadline_s=20)


@pytest.mark.parametrize("point", ["vk.delete.before", "vk.delete.after"])
def test_pod_that_vanishes_after_a_kill_in_its_deletion(programs: Programs, pods: Pods, point: str) -> None:
    """D3: killed around the request to the server, and somebody takes the object away: no job is left."""
    pods.start_many(2, "sleep 600")
    pods.wait_all("Running", 2)
    program = restart_with(programs, point, at_hit=1)
    pods.kubectl("delete", "pod", "p0", "--wait=false")
    program.await_death()
    pods.kubectl("delete", "pod", "p0", "--force", "--grace-period=0")

    program.start()

    pods.wait_gone("p0")
    assert until(lambda: len(living_jobs(programs.jobs)) == 1, deadline_s=20)
    assert pods.get("p1")["status"]["phase"] == "Running"


@pytest.mark.parametrize("point", RECOVERIES)
def test_kill_in_the_middle_of_recovery(programs: Programs, pods: Pods, point: str) -> None:
    """A recovery that is killed half-way and done again ends in the same state."""
    pods.start_many(5, "sleep 6")
    pods.wait_all("Running", 5)
    known = pods.job_ids()
    programs.server.kill()
    for record in programs.cache.iterdir():
        record.unlink()
    if point.startswith("vk."):
        program = restart_with(programs, point, at_hit=1)
        programs.server.start()
    else:
        program = programs.server
        program.start(failpoints=f"{point}=kill@1", is_awaited=False)
    program.await_death()

    program.start()

    pods.wait_all("Succeeded", 5)
    pods.assert_started_once(5)
    assert pods.job_ids() == known


def test_every_failpoint_of_the_product_is_used() -> None:
    """A step that is added to the product gets its crash tests, or this one fails."""
    source = Path(interlink.__file__).parent
    named = {name for path in source.rglob("*.py") for name in re.findall(r'\bstep\("([^"]+)"\)', path.read_text())}
    tested = {point.rpartition(".")[0] for point in [*CREATES, *STATUSES, *DELETES, *RECOVERIES]}

    assert named == tested
