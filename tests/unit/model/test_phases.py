"""The status of a pod that follows from its job: the rules of a kubelet as tables."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from interlink.model import phases
from interlink.model.phases import JobView, Place
from interlink.model.pods import Pod
from interlink.model.statuses import Condition, PodStatus, Remark, Waiting
from tests.unit import builders
from tests.unit.builders import NOW, Document, at, ended, pod, running, silent, status, waiting

PLACE = Place(host_ip="10.0.0.1", pod_ip="10.0.0.2")
INIT = {"name": "i", "image": "ii"}
SIDECAR = {"name": "s", "image": "si", "restartPolicy": "Always"}


def view(*main: Document, init: Sequence[Document] = (), **fields: Any) -> JobView:
    return JobView(containers=builders.statuses(*main), init_containers=builders.statuses(*init), **fields)


def computed(pod_: Pod, job: JobView, seconds: float = 0) -> PodStatus:
    return phases.pod_status(pod_, job, PLACE, at(seconds))


def kept(status_: PodStatus) -> Document:
    """As the API server keeps it: what is null, empty or zero and optional is not there."""
    optional = {
        "signal",
        "reason",
        "message",
        "containerID",
        "lastTransitionTime",
        "lastProbeTime",
        "observedGeneration",
    }

    def slim(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: slim(v) for k, v in value.items() if v is not None and not (k in optional and not v)}
        return [slim(item) for item in value] if isinstance(value, list) else value

    document: Document = slim(msgspec.json.decode(msgspec.json.encode(status_)))
    return document


def after(pod_: Pod, job: JobView, seconds: float = 0, **other: Any) -> Pod:
    """The pod once Kubernetes has this status."""
    document = kept(computed(pod_, job, seconds)) | other
    return msgspec.structs.replace(pod_, status=msgspec.convert(document, PodStatus))


def condition(status_: PodStatus, kind: str) -> Condition:
    return next(c for c in status_.conditions or [] if c.type == kind)


SUSPENDED = Remark(reason="Suspended", message="Slurm has suspended the job")


def test_what_the_site_says_of_a_running_job_is_the_pods_reason() -> None:
    """As long as it says it: kubectl prints it as STATUS."""
    said = after(pod(), view(running(), remark=SUSPENDED))
    assert (said.status.phase, said.status.reason, said.status.message) == (
        "Running",
        *msgspec.structs.astuple(SUSPENDED),
    )

    over = computed(said, view(running()))

    assert (over.phase, over.reason, over.message) == ("Running", None, None)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (view(waiting(), remark=SUSPENDED), ("Pending", None, None)),
        (view(ended(), remark=SUSPENDED, has_ended=True), ("Succeeded", None, None)),
        (view(ended(exit_code=1), remark=SUSPENDED, has_ended=True), ("Failed", None, None)),
    ],
)
def test_a_pod_that_does_not_run_has_no_such_reason(job: JobView, expected: tuple[str, None, None]) -> None:
    """Its containers say why it waits or has ended."""
    found = computed(pod(), job)

    assert (found.phase, found.reason, found.message) == expected


def container(status_: PodStatus, name: str) -> Document:
    entries = [*(status_.container_statuses or []), *(status_.init_container_statuses or [])]
    entry: Document = msgspec.to_builtins(next(entry for entry in entries if entry.name == name))
    return entry


# --- phase -----------------------------------------------------------------------------------------------------------

PHASES = [
    # what                                spec of init      job                                              phase
    ("nothing is known", [], view(), "Pending"),
    ("the container waits", [], view(waiting()), "Pending"),
    ("the container says nothing", [], view(silent()), "Pending"),
    ("the container runs", [], view(running()), "Running"),
    ("it waits after a restart", [], view(waiting(reason="CrashLoopBackOff", lastState=ended()["state"])), "Running"),
    ("it has terminated, the job has not", [], view(ended()), "Running"),
    ("an init container runs", [INIT], view(waiting(), init=[running("i")]), "Pending"),
    ("an init container waits", [INIT], view(waiting(), init=[waiting("i")]), "Pending"),
    ("an init container failed, to be repeated", [INIT], view(waiting(), init=[ended("i", 1)]), "Pending"),
    ("nothing is known of the init container", [INIT], view(running()), "Pending"),
    ("the init container is done, the other waits", [INIT], view(waiting(), init=[ended("i")]), "Pending"),
    ("the init container is done, the other runs", [INIT], view(running(), init=[ended("i")]), "Running"),
    ("a sidecar waits", [SIDECAR], view(waiting(), init=[waiting("s")]), "Pending"),
    ("a sidecar runs and has not started", [SIDECAR], view(running(), init=[running("s", started=False)]), "Pending"),
    ("a sidecar has started", [SIDECAR], view(running(), init=[running("s", started=True)]), "Running"),
    ("a sidecar has ended", [SIDECAR], view(running(), init=[ended("s", 143)]), "Running"),
    ("the job ended well", [], view(ended(), has_ended=True), "Succeeded"),
    ("the job failed", [], view(ended(exit_code=1), has_ended=True), "Failed"),
    ("an end without an exit code", [], view({"name": "c", "state": {"terminated": {}}}, has_ended=True), "Failed"),
    ("the job ended and says nothing", [], view(has_ended=True), "Failed"),
    ("the job ended while the container ran", [], view(running(), has_ended=True), "Failed"),
    ("an init container failed for good", [INIT], view(waiting(), init=[ended("i", 1)], has_ended=True), "Failed"),
    ("a failed sidecar does not count", [SIDECAR], view(ended(), init=[ended("s", 137)], has_ended=True), "Succeeded"),
    ("the site refuses the pod", [], view(rejected="no such partition"), "Failed"),
]


@pytest.mark.parametrize(
    ("init", "job", "phase"), [row[1:] for row in PHASES], ids=[row[0].replace(" ", "-") for row in PHASES]
)
def test_the_phase_when(init: list[Document], job: JobView, phase: str) -> None:
    """The phase follows from the containers of the spec and their states."""
    assert computed(pod(initContainers=init), job).phase == phase


TWO = [
    (view(running("a"), running("b")), "Running"),
    (view(running("a"), waiting("b")), "Pending"),
    (view(running("a")), "Pending"),
    (view(running("a"), ended("b", 1)), "Running"),
    (view(ended("a"), ended("b"), has_ended=True), "Succeeded"),
    (view(ended("a"), ended("b", 1), has_ended=True), "Failed"),
    (view(ended("a"), has_ended=True), "Failed"),
]


@pytest.mark.parametrize(("job", "phase"), TWO)
def test_the_phase_of_two_containers(job: JobView, phase: str) -> None:
    """A container that waits or is unknown keeps the pod Pending; one that failed makes an ended pod Failed."""
    assert computed(pod(containers=[{"name": "b"}, {"name": "a"}]), job).phase == phase


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("job", [view(running()), view(ended(exit_code=9), has_ended=True), view(rejected="no")])
def test_a_terminal_status_never_changes(phase: str, job: JobView) -> None:
    """Whatever is told of an ended pod later, its status stays as it is, to the last field."""
    done = pod(status={"phase": phase, "reason": "x", "containerStatuses": [ended(exit_code=3)]})

    assert computed(done, job, 99) == done.status


# --- container states ------------------------------------------------------------------------------------------------


def test_every_container_of_the_spec_has_a_status() -> None:
    """Containers stand sorted by name, init containers in the order of the spec; unknown ones are left out."""
    spec = pod(containers=[{"name": "b"}, {"name": "a"}], initContainers=[{"name": "z"}, {"name": "y"}])

    found = computed(spec, view(running("b"), running("stranger")))
    assert [s.name for s in found.container_statuses or []] == ["a", "b"]
    assert [s.name for s in found.init_container_statuses or []] == ["z", "y"]


WAITING_REASONS = [
    ("before anything is known", pod(), view(), "c", "ContainerCreating"),
    ("with the site's own reason", pod(), view(waiting(reason="Priority")), "c", "Priority"),
    ("for why there is no job yet", pod(), view(waiting=Waiting(reason="SiteUnreachable")), "c", "SiteUnreachable"),
    ("for init containers", pod(initContainers=[INIT]), view(init=[running("i")]), "c", "PodInitializing"),
    ("as an init container", pod(initContainers=[INIT]), view(), "i", "ContainerCreating"),
    ("for init containers that nothing is known of", pod(initContainers=[INIT]), view(), "c", "PodInitializing"),
]


@pytest.mark.parametrize(("what", "spec", "job", "name", "reason"), WAITING_REASONS)
def test_a_container_waits(what: str, spec: Pod, job: JobView, name: str, reason: str) -> None:
    """A container that has not started says what it waits for."""
    assert container(computed(spec, job), name)["state"] == {"waiting": {"reason": reason}}, what


FLAGS = [
    # state                                        ready  started
    (waiting(), False, False),
    (running(), True, True),
    (running(ready=False), False, True),
    (running(started=False, ready=False), False, False),
    (ended(), False, False),
    (ended(ready=True), False, False),
]


@pytest.mark.parametrize(("entry", "ready", "started"), FLAGS)
def test_a_container_is_ready_and_started_only_while_it_runs(entry: Document, ready: bool, started: bool) -> None:
    """`ready` is what the plugin says, but never true of a container that does not run; so is `started`."""
    found = container(computed(pod(), view(entry)), "c")

    assert (found["ready"], found["started"]) == (ready, started)


@pytest.mark.parametrize(("exit_code", "ready"), [(0, True), (1, False)])
def test_an_init_container_that_is_done_is_ready(exit_code: int, ready: bool) -> None:
    """A completed init container stays ready; a failed one is not."""
    found = computed(pod(initContainers=[INIT]), view(init=[ended("i", exit_code)]))

    assert container(found, "i")["ready"] is ready


@pytest.mark.parametrize(("before", "told", "shown"), [(0, 2, 2), (2, 1, 2), (2, 0, 2), (3, None, 3), (None, None, 0)])
def test_a_restart_count_never_falls(before: int | None, told: int | None, shown: int) -> None:
    """A plugin that has forgotten restarts cannot take them back."""
    known = pod(status={"phase": "Running", "containerStatuses": [running(restartCount=before)]})

    assert container(computed(known, view(running(restartCount=told))), "c")["restartCount"] == shown


@pytest.mark.parametrize("entry", [running(), ended(exit_code=4)])
@pytest.mark.parametrize("job", [view(), view(silent()), view(waiting=Waiting(reason="SiteUnreachable"))])
def test_silence_takes_nothing_back(entry: Document, job: JobView) -> None:
    """A container that has started stays as Kubernetes has it while nothing is said of it."""
    known = after(pod(), view(entry))

    assert computed(known, job).container_statuses == known.status.container_statuses


def test_a_job_that_ended_in_silence_does_not_take_a_result_back() -> None:
    """An exit code that Kubernetes knows stays when the ended job says nothing of that container any more."""
    known = after(pod(), view(ended(exit_code=4)))

    found = computed(known, view(has_ended=True))
    assert container(found, "c")["state"]["terminated"]["exitCode"] == 4


@pytest.mark.parametrize("news", [running(), waiting()])
@pytest.mark.parametrize(
    ("restart_policy", "exit_code", "is_believed"),
    [("Never", 0, False), ("Never", 4, False), ("OnFailure", 0, False), ("OnFailure", 4, True), ("Always", 0, True)],
)
def test_what_has_ended_for_good_does_not_run_again(
    news: Document, restart_policy: str, exit_code: int, is_believed: bool
) -> None:
    """Kubernetes refuses such a status as a whole, so nothing of the pod would be told any more."""
    two = pod(restartPolicy=restart_policy, containers=[{"name": "c"}, {"name": "d"}])
    known = after(two, view(ended(exit_code=exit_code), running("d")))

    found = container(computed(known, view(news, running("d"))), "c")

    assert (found["state"].get("terminated") is None) == is_believed


@pytest.mark.parametrize(("spec", "is_believed"), [(INIT, False), (SIDECAR, True)])
def test_of_init_containers_only_sidecars_run_again(spec: Document, is_believed: bool) -> None:
    """Also where the pod itself is never restarted."""
    name = spec["name"]
    known = after(pod(restartPolicy="Never", initContainers=[spec]), view(running(), init=[ended(name)]))

    found = container(computed(known, view(running(), init=[running(name)])), name)

    assert (found["state"].get("running") is not None) == is_believed


@pytest.mark.parametrize(
    ("before", "news", "exit_code"),
    [
        (view(ended(exit_code=4)), view(waiting(reason="CrashLoopBackOff")), 4),
        (view(ended(exit_code=4)), view(running(restartCount=1)), 4),
        (view(ended(exit_code=4)), view(ended(exit_code=5, restartCount=1)), 4),
        (view(ended(exit_code=4)), view(running(lastState=ended(exit_code=6)["state"])), 6),
        (view(running(lastState=ended(exit_code=3)["state"])), view(running()), 3),
        (view(running()), view(ended(exit_code=4)), None),
        (view(), view(running()), None),
    ],
)
def test_how_a_container_ended_before_is_kept(before: JobView, news: JobView, exit_code: int | None) -> None:
    """A plugin may leave it out; without it a container that waits to start again would look like a new one."""
    known = after(pod(restartPolicy="Always"), before)

    found = computed(known, news)

    ended_before = container(found, "c")["lastState"].get("terminated")
    assert (ended_before["exitCode"] if ended_before else None) == exit_code


def test_a_container_that_waits_to_start_again_leaves_the_pod_running() -> None:
    """Whether or not its plugin tells how it ended."""
    known = after(pod(restartPolicy="Always"), view(ended(exit_code=4)))

    assert computed(known, view(waiting(reason="CrashLoopBackOff"))).phase == "Running"


@pytest.mark.parametrize(("exit_code", "reason"), [(0, "Completed"), (3, "Error")])
def test_an_end_without_a_reason_has_the_usual_one(exit_code: int, reason: str) -> None:
    """As a kubelet's."""
    entry = ended(exit_code=exit_code)
    entry["state"]["terminated"].pop("reason", None)

    assert container(computed(pod(), view(entry)), "c")["state"]["terminated"]["reason"] == reason


@pytest.mark.parametrize(
    ("count", "told", "shown"),
    [(1, 4096, 4096), (1, 4097, 4096), (3, 5000, 4096), (4, 5000, 3072), (4, 3000, 3000), (0, 0, 0)],
)
def test_termination_messages_are_as_long_as_with_a_kubelet(count: int, told: int, shown: int) -> None:
    """4096 bytes for a container, 12 KiB for all of a pod."""
    names = [f"c{number}" for number in range(count)]
    entries = [ended(name) for name in names]
    for entry in entries:
        entry["state"]["terminated"]["message"] = "x" * told
    many = pod(containers=[{"name": name} for name in names])

    found = computed(many, view(*entries))

    assert [len(container(found, name)["state"]["terminated"]["message"]) for name in names] == [shown] * count
    assert computed(after(many, view(*entries)), view(*entries)).container_statuses == found.container_statuses


def test_a_message_is_not_cut_within_a_character() -> None:
    """It stays text."""
    entry = ended()
    entry["state"]["terminated"]["message"] = "x" + "\u20ac" * 2000

    message = container(computed(pod(), view(entry)), "c")["state"]["terminated"]["message"]

    assert message == "x" + "\u20ac" * 1365


@pytest.mark.parametrize("job", [view(has_ended=True), view(running(), has_ended=True)])
def test_a_container_that_an_ended_job_does_not_account_for_is_lost(job: JobView) -> None:
    """It has terminated with 137 and reason ContainerStatusUnknown, as in a kubelet."""
    state = container(computed(pod(), job), "c")["state"]["terminated"]

    assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")


def test_a_container_behind_a_failed_init_container_keeps_waiting() -> None:
    """The pod is Failed and its container says PodInitializing for ever, as in a kubelet."""
    found = computed(pod(initContainers=[INIT]), view(waiting(), init=[ended("i", 1)], has_ended=True))

    assert container(found, "c")["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_a_missing_image_is_that_of_the_spec() -> None:
    """A plugin that names no image means the one that was asked for; one that resolved it is believed."""
    assert container(computed(pod(), view(running())), "c")["image"] == "i"
    assert container(computed(pod(), view(running(image="i@sha256:1"))), "c")["image"] == "i@sha256:1"


MOMENTS = [
    ("2026-07-14T10:00:01Z", "2026-07-14T10:00:01Z"),
    ("2026-07-14T10:00:01.987654321Z", "2026-07-14T10:00:01Z"),
    (None, None),
    ("yesterday", None),
    ("", None),
    ("2026-07-14T12:00:01+02:00", "2026-07-14T10:00:01Z"),
    ("0001-01-01T00:00:00Z", None),
]


@pytest.mark.parametrize(("told", "shown"), MOMENTS)
def test_times_have_whole_seconds_in_utc(told: str | None, shown: str | None) -> None:
    """Times are written as the API server keeps them; what is no time is left out."""
    found = computed(pod(), view({"name": "c", "state": {"running": {"startedAt": told}}}))

    assert container(found, "c")["state"]["running"].get("startedAt") == shown


# --- the pod ---------------------------------------------------------------------------------------------------------


def test_a_rejected_pod_says_why() -> None:
    """It is Failed with reason JobRejected and the site's own words, and its container has not run."""
    found = computed(pod(), view(rejected="invalid partition specified: gpu"))

    assert (found.phase, found.reason, found.message) == ("Failed", "JobRejected", "invalid partition specified: gpu")
    assert "terminated" not in container(found, "c")["state"]


def lost(reason: str | None) -> Document:
    return {"name": "c", "state": {"terminated": {"exitCode": 137, "reason": reason}}}


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("JobLost", "JobLost"),
        ("OOMKilled", "OOMKilled"),
        ("Error", None),
        ("ContainerStatusUnknown", None),
        (None, None),
    ],
)
def test_a_failed_pod_has_the_reason_of_the_batch_system(told: str | None, shown: str | None) -> None:
    """A reason that is not a container's ordinary end is the pod's reason as well."""
    assert computed(pod(), view(lost(told), has_ended=True)).reason == shown


def test_the_start_time_never_changes() -> None:
    """It is the moment of the first status, before anything runs."""
    first = after(pod(), view(), 0)

    assert first.status.start_time == "2026-07-14T10:00:00Z"
    assert computed(first, view(running()), 60).start_time == "2026-07-14T10:00:00Z"


def test_the_addresses_of_the_node_are_told_and_a_pods_address_stays() -> None:
    """A pod has its node's addresses; one that it has already is kept, also as the first of its list."""
    assert computed(pod(), view()).pod_ips == [{"ip": "10.0.0.2"}]
    found = computed(pod(status={"phase": "Running", "podIP": "10.9.9.9"}), view())

    assert (found.host_ip, found.host_ips) == ("10.0.0.1", [{"ip": "10.0.0.1"}])
    assert (found.pod_ip, found.pod_ips) == ("10.9.9.9", [{"ip": "10.9.9.9"}])


def test_a_pod_keeps_the_address_of_its_node() -> None:
    """A second one of the same family is refused: the pod would be told of nothing any more, its end included."""
    known = after(pod(), view(running()))

    found = phases.pod_status(known, view(ended()), Place(host_ip="10.7.7.7", pod_ip="10.0.0.2"), at(60))

    assert (found.host_ip, found.host_ips) == ("10.0.0.1", [{"ip": "10.0.0.1"}])


def test_the_status_belongs_to_the_generation_that_was_seen() -> None:
    """`observedGeneration` of the status and of each condition is the pod's generation."""
    found = computed(pod(metadata={"generation": 5}), view(rejected="no"))

    assert {found.observed_generation, *(c.observed_generation for c in found.conditions or [])} == {5}


# --- conditions ------------------------------------------------------------------------------------------------------

UNREADY, UNINITIALISED = "False ContainersNotReady", "False ContainersNotInitialized"
DONE, FAILED = "False PodCompleted", "False PodFailed"
CONDITIONS = [
    # what, init, job, {condition: status and reason}
    ("nothing", [], view(), {"PodScheduled": "True", "PodReadyToStartContainers": "False", "Initialized": "True"}),
    ("waiting", [], view(waiting()), {"Ready": UNREADY, "ContainersReady": UNREADY}),
    ("running", [], view(running()), {"PodReadyToStartContainers": "True", "ContainersReady": "True", "Ready": "True"}),
    ("not ready", [], view(running(ready=False)), {"Ready": UNREADY}),
    ("succeeded", [], view(ended(), has_ended=True), {"Ready": DONE, "Initialized": "True PodCompleted"}),
    ("failed", [], view(ended(exit_code=1), has_ended=True), {"Ready": FAILED, "ContainersReady": FAILED}),
    ("rejected", [], view(rejected="no"), {"Ready": FAILED, "PodScheduled": "True"}),
    ("init waits", [INIT], view(init=[waiting("i")]), {"Initialized": UNINITIALISED}),
    ("init runs", [INIT], view(init=[running("i")]), {"PodReadyToStartContainers": "True"}),
    ("init runs on", [INIT], view(init=[running("i")]), {"Initialized": UNINITIALISED}),
    ("init failed", [INIT], view(init=[ended("i", 1)]), {"Initialized": UNINITIALISED}),
    ("init done", [INIT], view(waiting(), init=[ended("i")]), {"Initialized": "True"}),
    ("sidecar not started", [SIDECAR], view(init=[running("s", started=False)]), {"Initialized": UNINITIALISED}),
    ("sidecar started", [SIDECAR], view(init=[running("s")]), {"Initialized": "True"}),
    ("main started", [INIT], view(running()), {"Initialized": "True"}),
    ("sidecar not ready", [SIDECAR], view(running(), init=[running("s", ready=False)]), {"ContainersReady": UNREADY}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "init", "job", "expected"), CONDITIONS)
def test_the_conditions_when(what: str, init: list[Document], job: JobView, expected: dict[str, str]) -> None:
    """Conditions and their reasons are those of a kubelet."""
    found = computed(pod(initContainers=init), job)

    shown = {c.type: f"{c.status} {c.reason or ''}".strip() for c in found.conditions or []}
    assert {kind: shown[kind] for kind in expected} == expected, what


def test_a_condition_names_the_containers_that_are_not_ready() -> None:
    """Its message lists them by name."""
    found = computed(pod(containers=[{"name": "b"}, {"name": "a"}, {"name": "r"}]), view(running("r")))

    assert condition(found, "Ready").message == "containers with unready status: [a b]"


@pytest.mark.parametrize(
    ("gates", "ready"),
    [
        ([{"type": "example.com/gate", "status": "True"}], ("True", None)),
        ([{"type": "example.com/gate", "status": "False"}], ("False", "ReadinessGatesNotReady")),
        ([], ("False", "ReadinessGatesNotReady")),
    ],
)
def test_a_readiness_gate_holds_readiness_back(gates: list[Document], ready: tuple[str, str | None]) -> None:
    """Ready also asks for every readiness gate's condition; ContainersReady does not."""
    gated = pod(
        readinessGates=[{"conditionType": "example.com/gate"}], status={"phase": "Running", "conditions": gates}
    )

    found = computed(gated, view(running()))
    assert (condition(found, "Ready").status, condition(found, "Ready").reason) == ready
    assert condition(found, "ContainersReady").status == "True"


def test_conditions_of_others_are_kept() -> None:
    """A condition that a kubelet does not own is passed on untouched."""
    foreign = Condition(type="DisruptionTarget", status="True", reason="r", last_transition_time="2020-01-01T00:00:00Z")
    before = msgspec.structs.replace(pod().status, conditions=[foreign])

    found = computed(msgspec.structs.replace(pod(), status=before), view(running()))
    assert condition(found, "DisruptionTarget") == foreign


def test_a_transition_time_moves_only_when_a_condition_flips() -> None:
    """What stays true keeps its time; what changes gets the time of the change."""
    later = computed(after(pod(), view(waiting()), 0), view(running()), 60)

    assert condition(later, "PodScheduled").last_transition_time == "2026-07-14T10:00:00Z"
    assert condition(later, "Ready").last_transition_time == "2026-07-14T10:01:00Z"


def test_a_new_reason_is_no_transition() -> None:
    """A condition that stays False for another reason keeps its transition time."""
    later = computed(after(pod(), view(waiting()), 0), view(ended(exit_code=1), has_ended=True), 60)

    assert condition(later, "Ready").reason == "PodFailed"
    assert condition(later, "Ready").last_transition_time == "2026-07-14T10:00:00Z"


# --- nothing to write when nothing changed ---------------------------------------------------------------------------

FULL_END = {"exitCode": 3, "reason": "Error", "message": "m", "signal": 9, "containerID": "x://1"}
LIVING = [
    view(),
    view(waiting=Waiting(reason="SiteUnreachable", message="m")),
    view(waiting(reason="Priority")),
    view(running(imageID="sha256:1", containerID="x://1")),
    view(running(restartCount=2, lastState={"terminated": FULL_END | {"finishedAt": "2026-07-14T09:00:00.5Z"}})),
    view({"name": "c", "state": {"terminated": FULL_END}}),
    view({"name": "c", "state": {"terminated": {"exitCode": 0}}, "image": None, "imageID": None, "lastState": None}),
    view({"name": "c", "state": {"running": {}}, "lastState": {}, "started": None, "restartCount": None}),
]
EMPTY = [
    view({"name": "c", "state": {"terminated": {"exitCode": 1, "signal": 0}}}),
    view({"name": "c", "state": {"terminated": {"exitCode": 1, "reason": "", "message": ""}}}),
    view({"name": "c", "state": {"terminated": {"exitCode": 1, "containerID": ""}}}),
    view({"name": "c", "state": {"waiting": {"reason": "r", "message": ""}}}),
    view(running(containerID="")),
]


@pytest.mark.parametrize(
    ("job", "init"),
    [
        *((job, init) for job in LIVING for init in ([], [INIT], [SIDECAR])),
        *((job, []) for job in EMPTY),
    ],
)
def test_an_unchanged_job_gives_an_equal_status(job: JobView, init: list[Document]) -> None:
    """What Kubernetes has of a job equals what is computed anew later, so that nothing is written."""
    written = after(pod(initContainers=init, metadata={"generation": 2}), job, 0)

    assert computed(written, job, 3600) == written.status


def test_the_status_of_an_unknown_container_has_no_image_of_its_own() -> None:
    """A container that nothing is known of is written in the form in which the API server gives it back."""
    assert status(kept(computed(pod(), view()))["containerStatuses"][0]).restart_count == 0


def test_now_is_the_only_clock() -> None:
    """A status is a function of its arguments: computed twice it is the same."""
    assert computed(pod(), view(has_ended=True)) == phases.pod_status(pod(), view(has_ended=True), PLACE, NOW)


# --- containers that are kept back -----------------------------------------------------------------------------------

KEPT_BACK = {"annotations": {"interlink.eu/disable-offload-containers": "side, other"}}
WITH_SIDE = pod(metadata=KEPT_BACK, containers=[{"name": "c"}, {"name": "side"}])


@pytest.mark.parametrize(
    ("job", "phase", "side"),
    [
        (view(waiting()), "Pending", {"waiting": "NotOffloaded"}),
        (view(running()), "Running", {"waiting": "NotOffloaded"}),
        (view(ended(), has_ended=True), "Succeeded", {"terminated": "NotOffloaded"}),
        (view(ended(exit_code=3), has_ended=True), "Failed", {"terminated": "NotOffloaded"}),
    ],
)
def test_a_container_that_is_kept_back_decides_nothing(job: JobView, phase: str, side: dict[str, str]) -> None:
    """It is no part of the job, but Kubernetes gets an entry for it."""
    status_ = computed(WITH_SIDE, job)

    assert status_.phase == phase
    state = container(status_, "side")["state"]
    assert {kind: entry["reason"] for kind, entry in state.items()} == side
    assert condition(status_, "Ready").status == ("True" if phase == "Running" else "False")


def test_a_kept_back_container_gives_an_equal_status() -> None:
    """Nothing is written when nothing has changed."""
    job = view(running())

    assert computed(after(WITH_SIDE, job), job, 60) == computed(WITH_SIDE, job)


def test_a_pod_is_known_by_the_address_that_it_asks_for() -> None:
    """By its annotation."""
    asking = pod(metadata={"annotations": {"interlink.eu/pod-ip": "10.9.9.9"}})

    assert computed(asking, view(running())).pod_ip == "10.9.9.9"


# --- deadlines -------------------------------------------------------------------------------------------------------

STARTED = {"phase": "Running", "startTime": "2026-07-14T10:00:00Z"}


@pytest.mark.parametrize(
    ("limit_s", "status_", "seconds", "expected"),
    [
        (60, STARTED, 59, False),
        (60, STARTED, 60, True),
        (None, STARTED, 9999, False),
        (60, {"phase": "Pending"}, 9999, False),
    ],
)
def test_a_pods_time_is_over(limit_s: int | None, status_: Document, seconds: float, expected: bool) -> None:
    """Counted from the moment in which the node took it."""
    assert phases.is_expired(pod(status=status_, activeDeadlineSeconds=limit_s), at(seconds)) is expected


@pytest.mark.parametrize("job", [view(ended(exit_code=143)), view(ended()), view()])
def test_a_pod_whose_time_is_over_has_failed(job: JobView) -> None:
    """However its containers ended; but only once they have."""
    over = msgspec.structs.replace(job, is_expired=True)
    status_ = computed(pod(), msgspec.structs.replace(over, has_ended=True))

    assert (status_.phase, status_.reason) == ("Failed", "DeadlineExceeded")
    assert computed(pod(), msgspec.structs.replace(over, has_ended=False)).reason is None


def test_an_ephemeral_container_fails_at_once() -> None:
    """So that nobody waits for it; its times stay."""
    asking = pod(ephemeralContainers=[{"name": "debugger", "image": "busybox"}])
    job = view(running())

    status_ = computed(asking, job)

    [entry] = status_.ephemeral_container_statuses or []
    assert entry.terminated is not None
    assert (entry.terminated.exit_code, entry.terminated.reason) == (128, "ContainerCannotRun")
    assert status_.phase == "Running"
    assert computed(after(asking, job), job, 60) == status_


@pytest.mark.parametrize("text", ["", "nonsense", "10.9.9", "10.9.9.9/24"])
def test_an_address_that_is_none_is_not_told(text: str) -> None:
    """Kubernetes would refuse the whole status."""
    asking = pod(metadata={"annotations": {"interlink.eu/pod-ip": text}})

    assert computed(asking, view(running())).pod_ip == PLACE.pod_ip


def test_numbers_are_as_wide_as_kubernetes_has_them() -> None:
    """A plugin may send any."""
    entry = ended(exit_code=2**40, restartCount=2**40)
    entry["state"]["terminated"]["signal"] = 2**40

    [found] = computed(pod(), view(entry)).container_statuses or []

    assert found.terminated is not None
    assert (found.terminated.exit_code, found.terminated.signal, found.restart_count) == (2**31 - 1,) * 3
