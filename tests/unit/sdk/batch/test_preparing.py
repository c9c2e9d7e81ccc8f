"""From a create request to a filled job directory."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlink.model.ids import PodUID, Tag
from interlink.model.pods import Container, Pod
from interlink.sdk.batch import preparing
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.preparing import JobPlan
from interlink.sdk.batch.runtime import Launch, Login, Mount
from interlink.sdk.errors import Rejected
from interlink.wire.messages import RetrievedContainer, RetrievedPodData
from tests.unit.builders import Document, document, pod

TAG = Tag("c", PodUID("uid-1"), 2)
CONFIG = Raw(b'{"metadata": {"name": "cm"}, "data": {"a": "text"}}')


class Runtime:
    """Launches nothing; remembers what it was asked to mount."""

    def __init__(self) -> None:
        self.mounts: dict[str, list[Mount]] = {}

    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        self.mounts[container.name] = list(mounts)
        table = {directory.path / "extra" / container.name: b"from the runtime"}
        return Launch(
            ["run", container.name, pod.metadata.name], [("A", "1"), ("B", "é\n")], working_directory="/w", files=table
        )


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    return JobDirectory(tmp_path / "uid-1")


def planned(directory: JobDirectory, runtime: Runtime | None = None, **spec: Any) -> JobPlan:
    request = RetrievedPodData(
        pod=Raw(msgspec.json.encode(document())), container=[RetrievedContainer(name="c", config_maps=[CONFIG])]
    )
    runtime = runtime or Runtime()
    return preparing.plan(request, pod(**spec), tag=TAG, directory=directory, runtime=runtime, user=1000)


def specification(plan: JobPlan) -> Document:
    found: Document = json.loads(plan.spec)
    return found


VOLUMES = [{"name": "config", "configMap": {"name": "cm"}}, {"name": "scratch", "emptyDir": {}}]


def mounting(**mount: Any) -> Document:
    return {"containers": [{"name": "c", "volumeMounts": [{"mountPath": "/m", **mount}]}], "volumes": VOLUMES}


def test_the_specification_says_what_to_run(directory: JobDirectory) -> None:
    """Everything that the runner needs, which knows nothing of Kubernetes."""
    found = specification(
        planned(
            directory,
            restartPolicy="OnFailure",
            activeDeadlineSeconds=60,
            terminationGracePeriodSeconds=5,
            initContainers=[{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        )
    )

    assert (found["tag"], found["attempt"], found["restart_policy"]) == ("il-c-uid-1-a2", 2, "OnFailure")
    assert (found["deadline_s"], found["grace_s"]) == (60, 5)
    assert [(entry["name"], entry["sidecar"]) for entry in found["init_containers"]] == [("i", False), ("s", True)]
    assert found["containers"][0] == {
        "name": "c",
        "image": "i",
        "argv": ["run", "c", "p"],
        "env_file": "env/c.json",
        "cwd": "/w",
        "sidecar": False,
        "termination_message_path": str(directory.path / "termination" / "c"),
        "termination_message_policy": "File",
        "inside": [],
        "launcher": [],
        "program_at": None,
        "image_at": None,
        "passed": {},
        "notes": [],
        "pull": None,
    }


def test_a_plan_is_pure(directory: JobDirectory) -> None:
    """Nothing is there before it is written."""
    planned(directory, **mounting(name="config"))

    assert not directory.path.exists()


def test_a_written_plan_is_in_its_place(directory: JobDirectory) -> None:
    """Files of volumes, of the runtime, the environment and the specification."""
    directory.create()
    plan = planned(directory, **mounting(name="config"))
    preparing.write(plan, directory)

    assert (directory.volume("config", "config") / "a").read_text() == "text"
    assert (directory.path / "extra/c").read_bytes() == b"from the runtime"
    assert json.loads((directory.env / "c.json").read_bytes()) == [["A", "1"], ["B", "é\n"]]
    assert directory.spec.read_bytes() == plan.spec


def test_writing_a_plan_again_changes_nothing(directory: JobDirectory) -> None:
    """A plugin that was killed half-way does it again, also over files that are read-only by now."""
    volumes = [{"name": "config", "configMap": {"name": "cm", "defaultMode": 0o400}}]
    plan = planned(directory, **(mounting(name="config") | {"volumes": volumes}))
    directory.create()
    for _ in range(2):
        preparing.write(plan, directory)

    path = directory.volume("config", "config") / "a"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("text", 0o400)


def test_what_is_written_is_private(directory: JobDirectory) -> None:
    """Nobody else enters the job's directory or reads an environment."""
    directory.create()
    preparing.write(planned(directory, **mounting(name="scratch")), directory)

    paths = (directory.path, directory.volume("empty", "scratch"), directory.env / "c.json")
    assert [oct(path.stat().st_mode & 0o777) for path in paths] == ["0o700", "0o700", "0o600"]


# --- mounts ----------------------------------------------------------------------------------------------------------


def mounts_of(directory: JobDirectory, **spec: Any) -> list[Mount]:
    runtime = Runtime()
    planned(directory, runtime, **spec)
    return [mount for mount in runtime.mounts["c"] if mount.target != "/dev/termination-log"]


@pytest.mark.parametrize(
    ("mount", "kind", "below", "read_only"),
    [
        ({"name": "scratch"}, "empty", "scratch", False),
        ({"name": "scratch", "readOnly": True}, "empty", "scratch", True),
        ({"name": "config"}, "config", "config", True),
        ({"name": "config", "readOnly": False}, "config", "config", True),
        ({"name": "scratch", "subPath": "a/b"}, "empty", "scratch/a/b", False),
        ({"name": "config", "subPath": "a"}, "config", "config/a", True),
        ({"name": "scratch", "subPath": ""}, "empty", "scratch", False),
    ],
)
def test_a_mount(directory: JobDirectory, mount: Document, kind: str, below: str, read_only: bool) -> None:
    """Where it comes from, where it goes, and whether it may be written."""
    expected = Mount(source=directory.path / "volumes" / kind / below, target="/m", read_only=read_only)

    assert mounts_of(directory, **mounting(**mount)) == [expected]


def test_only_volumes_that_are_mounted_are_made(directory: JobDirectory) -> None:
    """One of a kind that we cannot have is no hindrance while nobody mounts it."""
    volumes = [*VOLUMES, {"name": "pvc", "persistentVolumeClaim": {"claimName": "p"}}]

    assert planned(directory, volumes=volumes).directories == []


@pytest.mark.parametrize(("path", "is_mounted"), [(None, False), ("/dev/termination-log", False), ("/tmp/end", True)])
def test_a_termination_message_of_its_own_path_is_mounted(
    directory: JobDirectory, path: str | None, is_mounted: bool
) -> None:
    """The usual path is only mounted where there are mounts anyway."""
    runtime = Runtime()
    planned(directory, runtime, containers=[{"name": "c", "terminationMessagePath": path}])

    source = directory.path / "termination/c"
    assert runtime.mounts["c"] == ([Mount(source, path or "")] if is_mounted else [])


# --- what the machine of the job makes, and what is not honoured -----------------------------------------------------


def test_volumes_in_memory_are_made_by_the_runner(directory: JobDirectory) -> None:
    """On the machine where the job runs, with what is mounted of them; nothing is written before."""
    spec = mounting(name="fast", subPath="a") | {"volumes": [{"name": "fast", "emptyDir": {"medium": "Memory"}}]}
    plan = planned(directory, **spec)

    assert specification(plan)["node_directories"] == {"/dev/shm/interlink-uid-1": ["fast", "fast/a"]}
    assert plan.directories == []


def test_what_is_not_honoured_is_said(directory: JobDirectory) -> None:
    """In the specification, from where the job's output gets it, and for the plugin's log."""
    context = {"runAsUser": 5, "privileged": False, "capabilities": {"add": ["SYS_PTRACE"]}}
    container = {"name": "c", "securityContext": context, "volumeMounts": [{"name": "v", "mountPath": "/m"}]}
    volume = {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}
    plan = planned(directory, containers=[container], volumes=[volume], securityContext={"fsGroup": 7})

    of_pod = ["securityContext not enforced: fsGroup", "the sizeLimit of volume 'v' is not watched"]
    of_container = "securityContext not enforced: capabilities.add, runAsUser"
    assert specification(plan)["notes"] == of_pod
    assert specification(plan)["containers"][0]["notes"] == [of_container]
    assert plan.notes == [*of_pod, f"container c: {of_container}"]


def test_a_pod_that_must_not_run_as_root_is_refused(directory: JobDirectory) -> None:
    """Where root is the user of the jobs."""
    asking = pod(containers=[{"name": "c"}], securityContext={"runAsNonRoot": True})
    request = RetrievedPodData(pod=Raw(msgspec.json.encode(document())))

    with pytest.raises(Rejected, match="runAsNonRoot"):
        preparing.plan(request, asking, tag=TAG, directory=directory, runtime=Runtime(), user=0)


def test_probes_and_hooks_reach_the_runner(directory: JobDirectory) -> None:
    """Beside the program that they belong to."""
    hook = {"preStop": {"exec": {"command": ["bye"]}}}
    entry = specification(planned(directory, containers=[{"name": "c", "lifecycle": hook}]))["containers"][0]

    assert entry["pre_stop"] == {"exec": ["bye"]}


REFUSED = [
    (mounting(name="no"), "container 'c' mounts 'no', which is no volume of the pod"),
    (mounting(name="scratch", mountPath="m"), "the mount path 'm' must be absolute"),
    (mounting(name="scratch", subPath="../../x"), "the path '../../x' must be relative"),
    (mounting(name="scratch", subPath="/etc"), "the path '/etc' must be relative"),
    (mounting(name="pvc") | {"volumes": [{"name": "pvc", "nfs": {}}]}, "volume 'pvc' is of a kind"),
    ({"containers": []}, "the pod has no containers"),
    ({"containers": None}, "the pod has no containers"),
    (mounting(name="scratch", subPathExpr="$(POD_NAME)"), "subPathExpr"),
]


@pytest.mark.parametrize(("spec", "text"), REFUSED)
def test_a_pod_that_cannot_be_run_is_refused(directory: JobDirectory, spec: Document, text: str) -> None:
    """The place is named, for that becomes the pod's message."""
    with pytest.raises(Rejected, match=text):
        planned(directory, **spec)
