"""Which events a change of a pod's status is."""

from typing import Any

import msgspec
import pytest

from interlink.kube.events import Note
from interlink.kubelet import telling
from interlink.kubelet.errors import MissingInput
from interlink.kubelet.pods import admission
from interlink.kubelet.pods.admission import Verdict
from interlink.model import phases
from interlink.model.phases import JobView, Place
from interlink.model.pods import Pod
from interlink.model.statuses import PodStatus, Waiting
from interlink.sdk.errors import Refused, Unreachable
from tests.unit.builders import NOW, Document, ended, pod, running, statuses, waiting


def told(before: list[Document], after: list[Document], **fields: Any) -> list[str]:
    """Reasons, in order."""
    found = pod(status={"phase": "Pending", "containerStatuses": before})
    status = PodStatus(container_statuses=statuses(*after), **fields)
    return [note.reason for note in telling.of_change(found, status)]


CRASHED = {"restartCount": 1, "lastState": ended()["state"]}


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        ([], [waiting()], []),
        ([waiting()], [running()], ["Created", "Started"]),
        ([], [running()], ["Created", "Started"]),
        ([waiting()], [ended()], ["Created", "Started"]),
        ([running()], [running()], []),
        ([running()], [ended(exit_code=1)], []),
        ([running()], [running(restartCount=1)], ["Created", "Started"]),
        ([ended()], [running(restartCount=1)], ["Created", "Started"]),
        ([running()], [waiting(reason="CrashLoopBackOff", **CRASHED)], ["BackOff"]),
        ([waiting(reason="CrashLoopBackOff", **CRASHED)], [waiting(reason="CrashLoopBackOff", **CRASHED)], []),
        ([running()], [running(ready=False)], ["Unhealthy"]),
        ([running(ready=False)], [running()], []),
    ],
)
def test_what_happens_to_a_container_is_told_once(
    before: list[Document], after: list[Document], reasons: list[str]
) -> None:
    """Also what happened between two looks; nothing for what Kubernetes has already."""
    assert told(before, after) == reasons


def test_a_probe_that_fails_is_told_in_its_own_words() -> None:
    """As a kubelet tells it; once, until it says something else or has succeeded in between."""
    found = pod(initContainers=[{"name": "side"}], containers=[{"name": "c"}])
    failing = {"c": {"readiness": "HTTP probe failed with statuscode: 500"}, "side": {"startup": "no"}}
    before = {"c": {"readiness": "Connection refused"}, "side": {"startup": "no"}}

    notes = telling.of_probes(found, before, failing)
    assert [(note.reason, note.message, note.is_warning) for note in notes] == [
        ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500", True)
    ]
    assert [note.about.field_path for note in telling.of_probes(found, {}, failing)] == [
        "spec.containers{c}", "spec.initContainers{side}"
    ]  # fmt: skip
    assert telling.of_probes(found, failing, {}) == []


def test_what_a_probe_has_words_for_is_not_told_twice() -> None:
    """That the container is no longer ready follows from them."""
    found = pod(status={"phase": "Running", "containerStatuses": [running("c")]})
    status = PodStatus(container_statuses=statuses(running("c", ready=False)))

    assert telling.of_change(found, status, {"c": {"readiness": "no"}}) == []


def test_a_program_that_cannot_start_is_told_with_its_reason() -> None:
    """It was never started."""
    entry = ended(exit_code=128)
    entry["state"]["terminated"] |= {"reason": "StartError", "message": "no such file: x"}
    found = telling.of_change(pod(), PodStatus(container_statuses=statuses(entry)))

    assert [(note.reason, note.message, note.is_warning) for note in found] == [
        ("Failed", "Error: no such file: x", True)
    ]


def test_a_container_that_cannot_be_found_was_not_started_now() -> None:
    """Its job ended without it."""
    entry = ended(exit_code=137)
    entry["state"]["terminated"]["reason"] = "ContainerStatusUnknown"

    assert told([], [entry]) == []


DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}]}


@pytest.mark.parametrize(
    "spec",
    [{"hostNetwork": True}, {"os": {"name": "windows"}}, {"containers": [{"name": "c", "restartPolicy": "Never"}]}],
)
def test_a_pod_that_is_left_pending_is_told_once(spec: Document) -> None:
    """Why a DaemonSet's pod does not come; not again with each look at it."""
    daemon = pod(metadata=DAEMON, **spec, initContainers=[{"name": "i"}])
    objection = admission.objection(daemon)
    assert objection is not None
    assert objection.verdict is Verdict.IGNORE

    before, after = told_of_waiting(daemon, Waiting(reason=objection.reason, message=objection.message))

    assert [(note.reason, note.message, note.is_warning) for note in before] == [
        (objection.reason, objection.message, True)
    ]
    assert after == []


def test_a_pod_that_waits_for_its_controller_is_told_once() -> None:
    """The seconds of the text change, the reason does not."""
    found = pod()
    before, after = told_of_waiting(found, Waiting(reason="RejectedBackOff", message="tried again in 2 s"))

    assert [(note.reason, note.message) for note in before] == [("RejectedBackOff", "tried again in 2 s")]
    assert after == []


def told_of_waiting(found: Pod, why: Waiting) -> tuple[list[Note], list[Note]]:
    """When it is written for the first time, and when it is said again in other words."""
    place = Place(host_ip="1.2.3.4", pod_ip="1.2.3.4")
    status = phases.pod_status(found, JobView(waiting=why), place, NOW)
    known = msgspec.structs.replace(found, status=status)
    again = msgspec.structs.replace(why, message="in other words")
    return telling.of_change(found, status), telling.of_change(
        known, phases.pod_status(known, JobView(waiting=again), place, NOW)
    )


def test_an_ephemeral_container_is_refused_once() -> None:
    """What `kubectl debug` adds to a running pod."""
    found = pod(ephemeralContainers=[{"name": "debugger", "image": "busybox"}])
    place = Place(host_ip="1.2.3.4", pod_ip="1.2.3.4")
    status = phases.pod_status(found, JobView(), place, NOW)

    [note] = telling.of_change(found, status)

    assert (note.about.field_path, note.reason) == ("spec.ephemeralContainers{debugger}", "Failed")
    assert "runs no ephemeral containers" in note.message
    assert telling.of_change(msgspec.structs.replace(found, status=status), status) == []


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("JobRejected", "invalid partition specified: nosuch", ("Failed", "invalid partition specified: nosuch")),
        ("JobLost", None, ("JobLost", "The pod failed: JobLost")),
    ],
)
def test_a_failure_of_the_pod_is_told_in_the_sites_words(
    reason: str, message: str | None, expected: tuple[str, str]
) -> None:
    """A refused submission above all."""
    found = telling.of_change(pod(), PodStatus(phase="Failed", reason=reason, message=message))

    assert [(note.reason, note.message) for note in found] == [expected]


SUSPENDED = {"phase": "Running", "reason": "Suspended", "message": "Slurm has suspended the job"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"phase": "Running"}, SUSPENDED, [("Suspended", "Slurm has suspended the job", True)]),
        ({"phase": "Pending", "reason": "Other"}, SUSPENDED, [("Suspended", "Slurm has suspended the job", True)]),
        (SUSPENDED, SUSPENDED, []),
        (SUSPENDED, {"phase": "Running"}, [("Resumed", "The job goes on; it was: Suspended", False)]),
        (SUSPENDED, {"phase": "Succeeded"}, []),
        ({"phase": "Running"}, {"phase": "Running"}, []),
    ],
)
def test_what_a_site_says_of_a_running_job_is_told_once(
    before: Document, after: Document, expected: list[tuple[str, str, bool]]
) -> None:
    """When it begins and when it is over."""
    notes = telling.of_change(pod(status=before), PodStatus(**after))

    assert [(note.reason, note.message, note.is_warning) for note in notes] == expected


def test_a_failure_is_told_once() -> None:
    """Not again with the next write."""
    failed = pod(status={"phase": "Failed", "reason": "JobRejected"})

    assert telling.of_change(failed, PodStatus(phase="Failed", reason="JobRejected")) == []


def test_a_failure_of_a_container_alone_is_no_event() -> None:
    """As with a kubelet: the status says it."""
    assert told([running()], [ended(exit_code=1)], phase="Failed") == []


@pytest.mark.parametrize(
    ("reason", "error", "expected"),
    [
        ("CreateContainerConfigError", MissingInput("secret 's' not found"), ("Failed", "Error: secret 's' not found")),
        (
            "CreateContainerConfigError",
            MissingInput("volume 'v': secret 's' not found"),
            ("FailedMount", "MountVolume.SetUp failed for volume 'v': secret 's' not found"),
        ),
        ("SiteUnreachable", Unreachable("no"), ("BackOff", "Back-off submitting the job: no")),
        ("JobRefused", Refused("no"), ("Failed", "JobRefused: no")),
    ],
)
def test_why_a_pod_waits(reason: str, error: Exception, expected: tuple[str, str]) -> None:
    """In the words of a kubelet where it has them."""
    note = telling.of_waiting(pod(), reason, error)

    assert (note.reason, note.message, note.is_warning) == (*expected, True)


def test_deletion_stops_what_runs() -> None:
    """One event a container."""
    found = pod(status={"phase": "Running", "containerStatuses": [running("a"), ended("b"), running("c")]})

    assert [note.message for note in telling.of_ending(found)] == ["Stopping container a", "Stopping container c"]


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("", "", None),
        ("x", "y", None),
        ("", "x", "InterlinkConnectivityLost"),
        ("x", "", "InterlinkConnectivityRestored"),
    ],
)
def test_the_node_tells_when_the_site_goes_and_comes(before: str, after: str, reason: str | None) -> None:
    """Not while it stays away, whatever the reason."""
    note = telling.of_connectivity("vk", before, after)

    assert (note.reason if note else None) == reason
