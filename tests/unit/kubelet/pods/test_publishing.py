"""The patch that tells Kubernetes a pod's status and job id, and when none is sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from interlink.kube.client import KubeClient
from interlink.kube.credentials import Credentials
from interlink.kube.errors import Conflict
from interlink.kube.events import Note
from interlink.kube.reflecting import Reflector
from interlink.kubelet.pods import publishing
from interlink.kubelet.pods.publishing import Publisher
from interlink.kubelet.pods.rejections import Rejections
from interlink.model.ids import JobID
from interlink.model.phases import JobView, Place
from interlink.model.pods import Pod
from interlink.model.statuses import Ours, PodStatus
from tests.unit import builders
from tests.unit.builders import Document, document, ended, pod, running
from tests.unit.small_server import serving


def patch(status: PodStatus, job_id: str | None = None) -> Document:
    written: Document = msgspec.json.decode(publishing.patch(pod(), status, JobID(job_id) if job_id else None))
    return written


def test_a_patch_names_the_pods_uid() -> None:
    """A pod made again under the same name is never written to: the API server answers with a conflict."""
    assert patch(PodStatus(phase="Running"))["metadata"] == {"uid": "uid-1"}


def test_a_job_id_travels_with_the_status() -> None:
    """One write for both, so that neither is there without the other."""
    assert patch(PodStatus(), "j1")["metadata"] == {"uid": "uid-1", "annotations": {"JobID": "j1"}}


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [(PodStatus(phase="Running"), None, None), (PodStatus(phase="Failed", reason="r", message="m"), "r", "m")],
)
def test_what_is_no_longer_true_is_null(status: PodStatus, reason: str | None, message: str | None) -> None:
    """A reason that is left out of a patch would stay for ever."""
    written = patch(status)["status"]

    assert (written["reason"], written["message"]) == (reason, message)


def test_container_states_have_the_form_of_kubernetes() -> None:
    """A state holds one member; the names are those of the API."""
    states = builders.statuses(ended(exit_code=3))
    entry = patch(PodStatus(phase="Running", container_statuses=states))["status"]["containerStatuses"][0]

    assert set(entry["state"]) == {"terminated"}
    assert (entry["state"]["terminated"]["exitCode"], entry["restartCount"], entry["imageID"]) == (3, 0, "")


def test_the_addresses_have_the_names_of_kubernetes() -> None:
    """Capitals as in the API."""
    status = PodStatus(host_ip="1", host_ips=[{"ip": "1"}], pod_ip="2", pod_ips=[{"ip": "2"}])

    assert {"hostIP", "hostIPs", "podIP", "podIPs"} <= set(patch(status)["status"])


# --- publishing ------------------------------------------------------------------------------------------------------

PLACE = Place(host_ip="10.0.0.1", pod_ip="10.0.0.2")
RUNNING = JobView(containers=builders.statuses(running()))


class Pods:
    """The API server's side: keeps one pod and merges what is patched, or answers with a status."""

    def __init__(self, *, takes_annotations: bool = True, answers: int = 200) -> None:
        self.pod = document()
        self.patches: list[tuple[str, Document]] = []
        self._takes_annotations = takes_annotations
        self._answers = answers

    async def __call__(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        self.patches.append((request.path, body))
        if self._answers != 200:
            return web.json_response({"message": "no"}, status=self._answers)
        metadata = self.pod["metadata"]
        if self._takes_annotations or not request.path.endswith("/status"):
            metadata["annotations"] = metadata.get("annotations", {}) | body["metadata"].get("annotations", {})
        status = self.pod["status"] | body.get("status", {})
        self.pod["status"] = {key: value for key, value in status.items() if value is not None}
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return web.json_response(self.pod)


@asynccontextmanager
async def publishing_to(
    server: Pods, tell: Callable[[Note], None] = lambda _: None, rejections: Rejections | None = None
) -> AsyncIterator[tuple[Publisher, Reflector]]:
    rejections = rejections or Rejections(lambda: 0.0)
    async with serving(server) as url, KubeClient(Credentials(url, None, None)) as client:
        reflector = Reflector(client, "/", {}, lambda *_: None)
        reflector.pods["uid-1"] = builders.seen()
        yield Publisher(client, reflector, PLACE, tell, rejections), reflector


async def published(server: Pods, *calls: tuple[Pod, JobView, str | None]) -> list[Any]:
    async with publishing_to(server) as (publisher, _):
        return [await publisher.publish(p, job, JobID(job_id) if job_id else None) for p, job, job_id in calls]


async def test_a_status_and_a_job_id_are_one_write() -> None:
    """To the status subresource of the pod."""
    server = Pods()
    written = await published(server, (pod(), RUNNING, "j1"))

    assert [path for path, _ in server.patches] == ["/api/v1/namespaces/ns/pods/p/status"]
    assert (written[0].pod.job_id, written[0].pod.status.phase) == ("j1", "Running")


async def test_nothing_is_written_when_nothing_changed() -> None:
    """The second time the status is what Kubernetes has, although the caller still holds the old pod."""
    server = Pods()
    written = await published(server, (pod(), RUNNING, "j1"), (pod(), RUNNING, "j1"))

    assert (len(server.patches), written[1]) == (1, None)


async def test_two_at_the_same_time_write_once() -> None:
    """A refused create and the server's own word of it come together; the pod's events are told once as well."""
    server = Pods()
    told: list[Note] = []
    async with publishing_to(server, told.append) as (publisher, _):
        await asyncio.gather(*(publisher.publish(pod(), RUNNING, None) for _ in range(2)))

    assert len(server.patches) == 1
    assert [note.reason for note in told] == ["Created", "Started"]


async def test_what_a_failing_probe_says_is_an_event_and_no_part_of_the_status() -> None:
    """Also when there is nothing to write; again once it has succeeded in between, or when the pod is another one."""
    server = Pods()
    told: list[Note] = []
    said = Ours(failing={"startup": "not yet"})
    failing = JobView(containers=[msgspec.structs.replace(status, interlink=said) for status in RUNNING.containers])
    async with publishing_to(server, told.append) as (publisher, _):
        for view in (RUNNING, failing, failing, RUNNING, failing):
            await publisher.publish(pod(), view, None)
        publisher.forget("uid-1")
        await publisher.publish(pod(), failing, None)

    assert [note.message for note in told[2:]] == ["Startup probe failed: not yet"] * 3
    assert (len(server.patches), "not yet" in str(server.patches)) == (1, False)


async def test_a_rejected_pods_controller_is_known_before_the_pod_is_failed() -> None:
    """Whoever learns of it first; a controller makes the next pod as soon as this one is Failed (T13)."""
    rejections = Rejections(lambda: 0.0)
    waits: list[float] = []
    owned = pod(metadata={"ownerReferences": [{"uid": "rs", "controller": True}]})

    class Watching(Pods):
        async def __call__(self, request: web.Request) -> web.Response:
            waits.append(rejections.wait_s(owned))
            return await super().__call__(request)

    async with publishing_to(Watching(), rejections=rejections) as (publisher, reflector):
        reflector.pods["uid-1"] = builders.seen(metadata={"ownerReferences": [{"uid": "rs", "controller": True}]})
        await publisher.publish(owned, JobView(rejected="no"), None)

    assert [wait > 0 for wait in waits] == [True]


async def test_an_annotation_that_is_dropped_is_written_to_the_pod() -> None:
    """For an API server that takes no metadata with a status."""
    server = Pods(takes_annotations=False)
    written = await published(server, (pod(), RUNNING, "j1"))

    assert server.patches[1] == (
        "/api/v1/namespaces/ns/pods/p", {"metadata": {"uid": "uid-1", "annotations": {"JobID": "j1"}}}
    )  # fmt: skip
    assert written[0].pod.job_id == "j1"


async def test_the_answer_to_a_write_is_known_at_once() -> None:
    """Before the watch brings it."""
    async with publishing_to(Pods()) as (publisher, reflector):
        await publisher.publish(pod(), RUNNING, None)

    assert reflector.pods["uid-1"].pod.status.phase == "Running"


async def test_another_pod_of_the_same_name_is_a_conflict() -> None:
    """Nothing has been written then."""
    with pytest.raises(Conflict):
        await published(Pods(answers=409), (pod(), RUNNING, None))


def test_a_job_id_from_a_copied_manifest_is_taken_away() -> None:
    """It belongs to another pod's job (S4)."""
    copied = pod(metadata={"annotations": {"JobID": "old"}})

    written = msgspec.json.decode(publishing.patch(copied, PodStatus(), None))

    assert written["metadata"]["annotations"] == {"JobID": None}
