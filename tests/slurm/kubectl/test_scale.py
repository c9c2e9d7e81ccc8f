"""How often Slurm is asked, while kubectl shows a mix of pods that run, wait and have ended (T23)."""

import re
import shutil
import time

import pytest

from interlink.testing.programs import Programs
from interlink.testing.waiting import until
from tests.support.pods import Document, Pods
from tests.support.slurm_commands import Call, Commands, forgetting
from tests.support.slurm_jobs import FLAGS

pytestmark = pytest.mark.usefixtures("programs")

RUNNING, HELD, ENDED = 10, 5, 15
ABOUT_JOBS = ("squeue", "sacct", "scancel", "sbatch")


def plugin_calls(programs: Programs, *calls: str) -> int:
    """How often the server has called the plugin, by the server's own count."""
    found = re.findall(
        rf'^interlink_plugin_call_seconds_count{{call="(?:{"|".join(calls)})",.*}} (\S+)$',
        programs.get("/metrics"),
        re.M,
    )
    return int(sum(float(count) for count in found))


def polls_so_far(programs: Programs) -> int:
    return plugin_calls(programs, "status", "news")


def series(pods: Pods, name: str, count: int, script: str, **extra: Document) -> list[Document]:
    return [pods.pod(f"{name}{number}", script, **extra) for number in range(count)]


def made_since(commands: Commands, before: int) -> list[Call]:
    return commands.calls(*ABOUT_JOBS)[before:]


def test_how_often_slurm_is_asked_t23(programs: Programs, pods: Pods, commands: Commands) -> None:
    """Nothing while all pods have ended and the controller has forgotten them. With live ones two commands a poll at
    most, for all together, and none about those that have ended."""
    pods.apply(*series(pods, "ended", ENDED, "exit 0"))
    pods.wait_all("Succeeded", ENDED)
    ended = {pod["metadata"]["annotations"]["JobID"] for pod in pods.all()}
    for pod in pods.all():
        shutil.rmtree(programs.jobs / pod["metadata"]["uid"])  # asked about one, the plugin has to ask Slurm
    with commands.answering(squeue=forgetting(*ended)):
        assert_asked_seldom(programs, pods, commands, ended=ended)


def assert_asked_seldom(programs: Programs, pods: Pods, commands: Commands, *, ended: set[str]) -> None:
    assert until(lambda: time.time() - commands.calls("squeue")[-1].at > 3, deadline_s=60)

    before, sweeps = len(commands.calls(*ABOUT_JOBS)), plugin_calls(programs, "jobs")

    def is_asked() -> bool:
        """More than the server's sweep explains, which looks for jobs without pods now and then."""
        made = len(made_since(commands, before))
        return made > plugin_calls(programs, "jobs") - sweeps + 1

    assert not until(is_asked, deadline_s=6), made_since(commands, before)

    held = series(pods, "held", HELD, "true", annotations={FLAGS: "--hold"})
    pods.apply(*series(pods, "running", RUNNING, "sleep 600"), *held)
    pods.wait_all("Running", RUNNING)
    for number in range(HELD):
        pods.wait_reason(f"held{number}", "JobHeld")
    before, polls = len(commands.calls(*ABOUT_JOBS)), polls_so_far(programs)
    pods.wait_until(lambda: polls_so_far(programs) >= polls + 10, "ten polls")
    made, polls = made_since(commands, before), polls_so_far(programs) - polls

    assert {call.name for call in made} == {"squeue"}
    assert 0.5 * polls <= len(made) <= 2 * polls
    assert not [call for call in made if ended & set(re.split(r"[ ,=]", " ".join(call.words)))]
    assert pods.phases() == {"Running": RUNNING, "Pending": HELD, "Succeeded": ENDED}
    pods.assert_started_once(RUNNING + ENDED)
