"""What is read of a pod, and what of it is kept."""

from typing import Any

import msgspec
import pytest

from interlink.model import pods
from interlink.model.pods import Pod
from tests.unit.builders import document, pod

SECRET = {"name": "PW", "value": "s3cr3t"}


def test_a_skeleton_holds_no_environment_and_no_commands() -> None:
    """What is kept of a pod tells nothing of what its containers run or know."""
    container = {"name": "c", "image": "i", "command": ["s3cr3t"], "args": ["s3cr3t"], "env": [SECRET]}
    full = pod(containers=[container], initContainers=[container], metadata={"annotations": {"note": "s3cr3t"}})

    assert b"s3cr3t" not in msgspec.json.encode(pods.skeleton(full))


def test_a_skeleton_keeps_what_identifies_the_pod() -> None:
    """Names, images, the job id, the owner's node and the grace periods are kept."""
    full = pod(
        metadata={"annotations": {"JobID": "j1"}, "deletionGracePeriodSeconds": 7},
        terminationGracePeriodSeconds=9,
        initContainers=[{"name": "s", "image": "si", "restartPolicy": "Always"}],
    )

    kept = pods.skeleton(full)
    assert (kept.uid, kept.full_name, kept.job_id, kept.grace_s) == ("uid-1", "ns/p", "j1", 7)
    assert kept.spec == full.spec


def test_a_skeleton_of_a_skeleton_is_the_same() -> None:
    """Keeping a pod twice loses nothing more."""
    once = pods.skeleton(pod(initContainers=[{"name": "i"}]))

    assert pods.skeleton(once) == once


def test_null_lists_read_as_empty_ones() -> None:
    """A pod whose every list is null is a pod without containers, volumes and conditions."""
    nulls: dict[str, Any] = dict.fromkeys(("containers", "initContainers", "volumes", "readinessGates"))
    metadata = dict.fromkeys(("labels", "annotations", "creationTimestamp", "deletionTimestamp"))

    read = pods.seen(msgspec.json.encode(document("uid-1", metadata=metadata, **nulls))).pod
    assert (read.job_id, read.is_deleting, read.spec.containers or []) == (None, False, [])
    assert pods.skeleton(read).spec.containers is None


def test_unknown_fields_are_no_hindrance() -> None:
    """A pod of a newer Kubernetes is read; what is new travels on in the bytes it came in."""
    data = msgspec.json.encode(document(hostUsers=False, metadata={"managedFields": [{"f": {}}]}))

    assert pods.seen(data).raw == data


@pytest.mark.parametrize(
    ("asked", "wanted", "grace_s"), [(None, None, 30), (None, 5, 5), (0, 5, 0), (60, 5, 60), (-1, None, 0)]
)
def test_the_grace_period_of_a_deletion_wins(asked: int | None, wanted: int | None, grace_s: int) -> None:
    """TERM comes this many seconds before KILL: as the deletion asks, else as the pod asks, else 30."""
    metadata = {"deletionGracePeriodSeconds": asked}

    assert pod(metadata=metadata, terminationGracePeriodSeconds=wanted).grace_s == grace_s


@pytest.mark.parametrize(
    ("annotations", "job_id"), [(None, None), ({}, None), ({"JobID": ""}, None), ({"JobID": "7"}, "7")]
)
def test_an_empty_job_id_is_none(annotations: dict[str, str] | None, job_id: str | None) -> None:
    """Only an annotation with a text in it says that there is a job."""
    assert pod(metadata={"annotations": annotations}).job_id == job_id


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b'{"metadata": 1}', b"\xff"])
def test_what_is_no_pod_is_refused(data: bytes) -> None:
    """Bytes that are no pod are an error and never an empty pod."""
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        pods.seen(data)


def test_a_pod_reads_back_as_it_was_written() -> None:
    """Writing a pod and reading it loses nothing that we read."""
    full = pod(metadata={"labels": {"a": "b"}, "generation": 3}, volumes=[{"name": "v", "emptyDir": {}}])

    assert msgspec.json.decode(msgspec.json.encode(full), type=Pod) == full


def test_data_volumes_can_be_left_out() -> None:
    """With what containers mount of them; what is the machine's own stays."""
    sources: dict[str, Any] = {
        "cm": {"configMap": {"name": "cm"}},
        "secret": {"secret": {"secretName": "s"}},
        "token": {"projected": {"sources": []}},
        "down": {"downwardAPI": {"items": []}},
        "scratch": {"emptyDir": {}},
        "host": {"hostPath": {"path": "/data"}},
    }
    container = {"name": "c", "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in sources]}
    volumes = [{"name": name, **source} for name, source in sources.items()]
    whole = pod(containers=[container], initContainers=[container], volumes=volumes)

    names = pods.data_volumes(whole)
    spec = pods.without_volumes(whole, names).spec

    assert names == ["cm", "secret", "token", "down", "scratch"]
    assert [volume.name for volume in spec.volumes or []] == ["host"]
    for kept in (*(spec.containers or []), *(spec.init_containers or [])):
        assert [mount.name for mount in kept.volume_mounts or []] == ["host"]
