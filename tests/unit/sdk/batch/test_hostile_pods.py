"""Pods whose names and data are meant to leave the job directory, or to stop the plugin."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from interlink.model.ids import PodUID, Tag
from interlink.model.pods import ObjectMeta, Pod
from interlink.plugins.local.scheduler import HostScheduler
from interlink.sdk.batch import preparing
from interlink.sdk.batch.jobdir import Intention, JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.errors import OutcomeUnknown, Refused, Rejected
from interlink.sdk.runtimes.none import HostProcesses
from interlink.wire.messages import Origin, RetrievedContainer, RetrievedPodData

UID = PodUID("11111111-1111-4111-8111-111111111111")


def request(**spec: object) -> RetrievedPodData:
    whole = {"nodeName": "vk", "containers": [{"name": "c", "command": ["true"]}], **spec}
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": UID}, "spec": whole}
    secret = Raw(b'{"metadata":{"name":"s"},"data":{"k":"eA=="}}')
    data = RetrievedContainer(name="c", secrets=[secret])
    return RetrievedPodData(pod=Raw(msgspec.json.encode(pod)), container=[data])


def planned(tmp_path: Path, data: RetrievedPodData) -> preparing.JobPlan:
    pod = msgspec.json.decode(bytes(data.pod), type=Pod)
    tag = Tag(cluster="c", pod_uid=UID, attempt=0)
    return preparing.plan(
        data, pod, tag=tag, directory=JobDirectory(tmp_path / UID), runtime=HostProcesses(), user=1000
    )


@pytest.mark.parametrize("name", ["../../../evil", "/abs", "..", ".", "", "a/b", "a\nb", "a\0b", "A", "x" * 64])
def test_a_container_name_that_is_no_label_is_refused(tmp_path: Path, name: str) -> None:
    """It would become the name of files."""
    with pytest.raises(Rejected, match="container name"):
        planned(tmp_path, request(containers=[{"name": name, "command": ["true"]}]))


def test_two_containers_of_one_name_are_refused(tmp_path: Path) -> None:
    """They would share their environment and their log."""
    twice = {"name": "c", "command": ["true"]}
    with pytest.raises(Rejected, match="several containers of the name 'c'"):
        planned(tmp_path, request(containers=[twice], initContainers=[twice]))


@pytest.mark.parametrize("name", ["../../out", "/abs", "..", "a/b"])
def test_a_volume_name_that_is_no_label_is_refused(tmp_path: Path, name: str) -> None:
    """A Secret would land outside the job directory."""
    with pytest.raises(Rejected, match="volume name"):
        planned(tmp_path, request(volumes=[{"name": name, "emptyDir": {}}]))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({"items": [{"key": "k", "path": "a"}, {"key": "k", "path": "a/b"}]}, "in each other's way"),
        ({"items": [{"key": "k", "path": "a"}, {"key": "k", "path": "a"}]}, "in each other's way"),
        ({"items": [{"key": "k", "path": "a\0b"}]}, "must be relative"),
        ({"items": [{"key": "k", "path": "x" * 256}]}, "must be relative"),
        ({"items": [{"key": "k", "path": "a", "mode": 2**40}]}, "must be from 0 to 0777"),
        ({"defaultMode": -1}, "must be from 0 to 0777"),
    ],
)
def test_files_that_cannot_be_are_refused(tmp_path: Path, source: dict[str, object], text: str) -> None:
    """For good, and not tried again and again."""
    container = {"name": "c", "command": ["true"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volume = {"name": "v", "secret": {"secretName": "s", **source}}
    with pytest.raises(Rejected, match=text):
        planned(tmp_path, request(containers=[container], volumes=[volume]))


def test_a_sub_path_of_an_empty_directory_is_made(tmp_path: Path) -> None:
    """As a kubelet makes it."""
    mount = {"name": "v", "mountPath": "/v", "subPath": "new/dir"}
    container = {"name": "c", "command": ["true"], "volumeMounts": [mount]}
    job = planned(tmp_path, request(containers=[container], volumes=[{"name": "v", "emptyDir": {}}]))

    assert tmp_path / UID / "volumes" / "empty" / "v" / "new" / "dir" in job.directories


@pytest.fixture
def plugin(tmp_path: Path) -> BatchPlugin:
    scheduler = HostScheduler(tmp_path, max_pods=1)
    return BatchPlugin(tmp_path, scheduler=scheduler, runtime=HostProcesses())


def intend(tmp_path: Path, uid: str, *, cluster: str = "a", node: str = "vk") -> JobDirectory:
    directory = JobDirectory(tmp_path / uid)
    directory.create()
    directory.intend(Intention(cluster=cluster, node=node, attempt=0, pod=Pod(metadata=ObjectMeta(uid=uid))))
    return directory


async def test_another_owners_job_is_not_given_away(tmp_path: Path, plugin: BatchPlugin) -> None:
    """Also when the server has lost its records, a create from another cluster gets no job."""
    intend(tmp_path, UID, cluster="a")
    foreign = msgspec.structs.replace(request(), interlink=Origin(cluster="evil", node="vk"))

    with pytest.raises(Refused, match="belongs to a/vk, not to evil/vk"):
        await plugin.create(foreign)


async def test_a_directory_that_cannot_be_read_is_not_absent(tmp_path: Path, plugin: BatchPlugin) -> None:
    """Among many it is left out; asked for by itself the outcome is unknown; it hangs nobody."""
    damaged = intend(tmp_path, "damaged")
    os.mkfifo(damaged.path / "state.json")
    intend(tmp_path, "good")
    pods = [Pod(metadata=ObjectMeta(uid=uid)) for uid in ("damaged", "good")]

    assert await plugin.status(pods) == []
    with pytest.raises(OutcomeUnknown, match="damaged cannot be read"):
        await plugin.status(pods[:1])
    assert [job.tag for job in await plugin.jobs()] == ["il-a-damaged-a0", "il-a-good-a0"]


async def test_a_job_speaks_for_no_other_pod(tmp_path: Path, plugin: BatchPlugin) -> None:
    """A status carries the UID of its directory, whatever the files in it say."""
    directory = JobDirectory(tmp_path / "mine")
    directory.create()
    directory.intend(Intention(cluster="a", node="vk", attempt=0, pod=Pod(metadata=ObjectMeta(uid="anothers"))))
    (directory.path / "state.json").write_text('{"phase": "ended"}')

    (status,) = await plugin.status([Pod(metadata=ObjectMeta(uid="mine"))])

    assert status.uid == "mine"
