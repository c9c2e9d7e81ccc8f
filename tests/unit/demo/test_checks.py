"""The summary finds what is wrong, and only that."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tools.demo import checks, evidence, expectations, kubernetes, ledger, scene
from tools.demo.evidence import Evidence, Search
from tools.demo.ledger import Start
from tools.demo.manifests import Workload
from tools.demo.places import PodView, View

JOB = Workload(name="tasks", is_job=True, pods=2, containers=["main"])
WORKLOADS = [JOB, *(Workload(n, False, 1, list(e.exit_codes)) for n, e in expectations.PODS.items())]
PODS = [
    *(PodView("ns", f"tasks-{i}", f"uid-{i}", "Succeeded", job_id=f"job-{i}") for i in range(2)),
    *(
        PodView("ns", name, f"uid-{name}", e.phase, job_id=f"job-{name}", exit_codes=e.exit_codes)
        for name, e in expectations.PODS.items()
    ),
]
STARTS = [
    Start("ns", pod.name, pod.uid, container, 1)
    for pod in PODS
    for container in (["main"] if JOB.owns(pod.name) else expectations.PODS[pod.name].exit_codes)
]
GOOD = Evidence(
    workloads=WORKLOADS,
    view=View(pods=PODS, completed_jobs={"tasks": 2}),
    starts=STARTS,
    alive=frozenset(),
    exit_codes={name: e.exit_codes for name, e in expectations.PODS.items()},
    logs={name: e.logs for name, e in expectations.PODS.items()},
    job_logs={f"tasks-{i}": f"task {i} begins\ntask {i} ends\n" for i in range(2)},
    deleted_log="ready\nbye\n",
    living_payloads=[],
    job_ids={pod.uid: {pod.job_id} for pod in PODS},
    looks=9,
    steps_back=[],
    kills={"server": 1},
    dead_programs=[],
    search=Search(files=3, found_in=[]),
)


def failing(**changes: Any) -> list[str]:
    found = checks.all_of(msgspec.structs.replace(GOOD, **changes), Path(".demo"), has_kubernetes=True)
    return [check.title for check in found if not check.has_passed]


def test_all_checks_pass_when_all_is_well() -> None:
    assert failing() == []


def test_all_checks_pass_without_kubernetes_when_all_is_well() -> None:
    evidence_ = msgspec.structs.replace(GOOD, view=View(pods=PODS))

    found = checks.all_of(evidence_, Path(".demo"), has_kubernetes=False)

    assert all(check.has_passed for check in found)


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"starts": [*STARTS, STARTS[0]]}, "every payload started exactly once"),
        ({"starts": STARTS[1:]}, "every payload started exactly once"),
        ({"starts": [*STARTS, Start("ns", "tasks-9", "uid-9", "main", 1)]}, "every payload started exactly once"),
        ({"view": View(pods=PODS)}, "the Job is complete, no pod of it failed"),
        ({"exit_codes": {**GOOD.exit_codes, "failing": {"main": 0}}}, "phases and exit codes are right"),
        ({"logs": {**GOOD.logs, "failing": {"main": ""}}}, "logs are right"),
        ({"job_logs": {"tasks-0": "task 0 begins\n"}}, "logs are right"),
        ({"job_logs": {}}, "logs are right"),
        ({"deleted_log": "ready\n"}, "the deleted pod has ended"),
        ({"job_ids": {"uid-0": {"job-0", "job-9"}}}, "JobID is on every pod and never changed"),
        ({"steps_back": ["tasks-0 went from Running to Pending"]}, "no pod's phase ever went back"),
        ({"alive": frozenset({"uid-0"})}, "no job is left"),
        ({"search": Search(files=1, found_in=["server.log"])}, "no Secret value in logs or cache"),
        ({"dead_programs": ["server"]}, "killed programs came back"),
    ],
)
def test_a_check_fails_for_what_it_is_named_for(changes: dict[str, Any], title: str) -> None:
    assert failing(**changes) == [title]


def test_only_the_first_problems_are_shown() -> None:
    assert checks.brief(["a", "b", "c", "d", "e"]) == "a; b; c and 2 more"


def test_a_line_that_is_still_being_written_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "starts").write_text("ns/p uid main 12\nns/q uid")

    assert ledger.read(tmp_path / "starts") == [Start("ns", "p", "uid", "main", 12)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Pending", "Running", False),
        ("Pending", "Pending", False),
        ("Running", "Pending", True),
        ("Running", "Succeeded", False),
        ("Failed", "Succeeded", True),
    ],
)
def test_a_step_back(before: str, after: str, expected: bool) -> None:
    assert scene.is_step_back(before, after) is expected


def test_secrets_are_found_as_they_are_and_in_base64(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x=correct-horse")
    (tmp_path / "encoded").write_text("Y29ycmVjdC1ob3JzZQ==")
    (tmp_path / "clean").write_text("nothing")

    found = evidence.search_for(["correct-horse"], [tmp_path])

    assert (found.files, found.found_in) == (3, [str(tmp_path / "encoded"), str(tmp_path / "plain")])


def test_the_text_of_a_log_file() -> None:
    assert (
        evidence.text_of("2026-01-01T00:00:00Z stdout F ready\n2026-01-01T00:00:01Z stdout F bye\n") == "ready\nbye\n"
    )


def test_what_the_api_server_lists_becomes_a_view() -> None:
    ended = {"name": "main", "state": {"terminated": {"exitCode": 42}}}
    pod = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "annotations": {"JobID": "j"}},
        "status": {"phase": "Failed", "containerStatuses": [ended]},
    }
    complete = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2}
    jobs = [{"metadata": {"name": "a"}, "status": complete}, {"metadata": {"name": "b"}, "status": {"active": 1}}]

    view = kubernetes.read(json.dumps({"items": [pod]}), json.dumps({"items": jobs}))

    assert view.pods == [PodView("ns", "p", "u", "Failed", job_id="j", exit_codes={"main": 42})]
    assert view.completed_jobs == {"a": 2}
