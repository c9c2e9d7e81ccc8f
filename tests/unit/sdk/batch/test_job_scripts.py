"""Ready-made job scripts, as the runner is told of them."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from interlink.model.ids import PodUID, Tag
from interlink.sdk.batch import preparing
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.preparing import JobPlan
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.none import HostProcesses
from interlink.wire.messages import RetrievedPodData
from tests.unit.builders import Document, document, pod

DIRECTORY = JobDirectory(Path("/jobs/uid-1"))
CONTAINERS = [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]
SPEC: Document = {"containers": CONTAINERS, "volumes": [{"name": "v"}], "restartPolicy": "Always"}


def planned(script: str, variables: list[str] | None = None, **spec: object) -> JobPlan:
    request = RetrievedPodData(pod=Raw(msgspec.json.encode(document())), job_script=script)
    return preparing.plan(
        request,
        pod(**(SPEC | spec)),
        tag=Tag("c", PodUID("uid-1"), 0),
        directory=DIRECTORY,
        runtime=HostProcesses(),
        user=1000,
        variables=variables,
    )


def test_a_script_is_the_only_program() -> None:
    """Nothing of what containers and volumes need is prepared; the script brings its own. It runs once."""
    spec = json.loads(planned("echo x", initContainers=[{"name": "i", "image": "j"}]).spec)

    assert spec["script"] == {
        "name": "jobScript",
        "argv": ["bash", "/jobs/uid-1/env/jobScript"],
        "program_at": 0,
        "cwd": "/jobs/uid-1",
        "stops_group": True,
        "has_job_environment": True,
        "passed": {},
        "env_file": "env/jobScript.json",
    }
    assert spec["init_containers"] == [{"name": "i", "image": "j", "sidecar": False}]
    assert spec["containers"] == [{"name": "c", "image": "i", "sidecar": False}]
    assert spec["restart_policy"] == "Never"


def test_the_script_is_nobody_elses_to_read() -> None:
    """Nor are its variables; both lie where secrets are removed at the end of the job."""
    files = {file.path: file for file in planned("echo é").files}

    assert files[DIRECTORY.env / "jobScript"].content == "echo é".encode()
    assert json.loads(files[DIRECTORY.env / "jobScript.json"].content) == [
        ["workingPath", "/jobs/uid-1"],
        ["SANDBOX", "/jobs/uid-1"],
    ]
    assert {file.mode for file in files.values()} == {0o600}


def test_a_site_may_say_which_variables_a_script_gets() -> None:
    """For a job whose environment is not the batch system's."""
    program = json.loads(planned("x", ["PATH"]).spec)["script"]

    assert (program["has_job_environment"], program["passed"]) == (False, {"PATH": "PATH"})


@pytest.mark.parametrize(
    ("script", "argv"),
    [
        ("echo", ["bash"]),
        ("#!/bin/sh\necho", ["/bin/sh"]),
        ("#! /usr/bin/env -S bash -l\necho", ["/usr/bin/env", "-S bash -l"]),
        ("#!/bin/sh -e \r\necho", ["/bin/sh", "-e"]),
        ("#!\necho", ["bash"]),
        ("# a comment\necho", ["bash"]),
    ],
)
def test_the_first_line_names_the_interpreter(script: str, argv: list[str]) -> None:
    """As the kernel reads it: one argument at most. Without one it is bash."""
    assert json.loads(planned(script).spec)["script"]["argv"][:-1] == argv


@pytest.mark.parametrize(
    ("script", "words"), [("echo \0", "zero byte"), ("#" * (1024 * 1024 + 1), "1048577 bytes; at most 1048576")]
)
def test_what_is_no_script_is_refused(script: str, words: str) -> None:
    """In one line that names the member and not the content."""
    with pytest.raises(Rejected, match=f"^jobScript: .*{words}"):
        planned(script)


@pytest.mark.parametrize("script", ["", " \n"])
def test_an_empty_script_is_none(script: str) -> None:
    """A template may make nothing for a pod: then the containers' own commands run."""
    containers = [{"name": "c", "image": "i", "command": ["true"]}]
    spec = json.loads(planned(script, containers=containers, volumes=[]).spec)

    assert "script" not in spec
    assert spec["containers"][0]["argv"] == ["true"]


def test_what_a_script_does_not_do_is_told() -> None:
    """Probes and hooks are its own business."""
    containers = [CONTAINERS[0] | {"readinessProbe": {"exec": {"command": ["true"]}}}]

    assert planned("x", containers=containers).notes == ["probes and hooks of c: a job script runs the containers"]
    assert planned("x").notes == []
