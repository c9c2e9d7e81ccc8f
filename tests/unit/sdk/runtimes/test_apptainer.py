"""Containers as command lines of Apptainer and SingularityCE."""

from pathlib import Path

import msgspec
import pytest

from interlink.sdk.batch.runtime import Launch, Mount
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.apptainer import MOUNTS, OPTIONS, Apptainer
from interlink.sdk.runtimes.images import ImageSettings
from tests.unit.builders import Document
from tests.unit.sdk.runtimes.launching import DATA, HERE, LOGIN, VALUES, launched

TMP = "/tmp/interlink-uid-1/c"
START = ["apptainer", "--silent", "exec", "--containall", "--cleanenv"]
BINDS = ["--bind", f"{TMP}:/tmp"]
LOCAL = Apptainer(ImageSettings(prefix="/images/"))
REMOTE = Apptainer(ImageSettings())


def options(found: Launch) -> list[str]:
    """What is there beside the start and the private /tmp."""
    words = [word for word in found.inside[3:-1] if word not in ("--containall", "--cleanenv")]
    at = words.index(BINDS[1])
    return words[: at - 1] + words[at + 1 :]


def test_a_command_is_run_in_a_local_image() -> None:
    """With a contained and clean environment and a /tmp that its probes share."""
    found = launched(LOCAL, command=["a b", "$x"], args=["--", "'"])

    assert found.argv == [*START, *BINDS, "/images/busybox:1.36", "a b", "$x", "--", "'"]
    assert found.inside == [*START, *BINDS, "/images/busybox:1.36"]
    assert (found.scratch, found.program_at, found.image_at, found.pull) == ([Path(TMP)], 0, None, None)


@pytest.mark.parametrize("args", [None, ["-v"]])
def test_without_a_command_the_image_decides(args: list[str] | None) -> None:
    """Its entry point is run with the arguments; probes still are commands."""
    found = launched(LOCAL, command=None, args=args)

    assert found.argv == ["apptainer", "--silent", "run", *START[3:], *BINDS, "/images/busybox:1.36", *(args or [])]
    assert found.inside[2] == "exec"


def test_variables_are_not_in_the_command_line() -> None:
    """They travel behind a prefix, as they are, and the runtime does not evaluate them."""
    found = launched(LOCAL, env={**VALUES, "LINES": "a\nb\n", "LD_PRELOAD": "x"})
    environment = dict(found.environment)

    assert {name: environment[f"APPTAINERENV_{name}"] for name in VALUES} == VALUES
    assert (environment["APPTAINERENV_LINES"], environment["APPTAINERENV_LD_PRELOAD"]) == ("a\nb\n", "x")
    assert (environment["APPTAINER_NO_EVAL"], environment["APPTAINERENV_HOSTNAME"]) == ("1", "p")
    assert not any(value in word for word in found.argv for value in VALUES.values() if value)


def test_a_name_that_the_runtime_cannot_take_is_left_out_and_said() -> None:
    """It would take all others with it."""
    found = launched(LOCAL, env={"A.B": "1", "OK": "2"})

    assert found.notes == ["environment variables left out: A.B: this runtime takes letters, digits and _ only"]
    assert [name for name, _ in found.environment if name.startswith("APPTAINERENV_")] == [
        "APPTAINERENV_HOSTNAME", "APPTAINERENV_OK"
    ]  # fmt: skip


OPTION_TABLE: list[tuple[Document, list[str]]] = [
    ({"workingDir": "/w"}, ["--pwd", "/w"]),
    ({"env": {"HOME": "/h"}}, ["--no-home", "--home", "/h"]),
    ({"resources": {"limits": {"nvidia.com/gpu": "1"}}}, ["--nv"]),
    ({"resources": {"requests": {"amd.com/gpu": 2}}}, ["--rocm"]),
    ({"resources": {"limits": {"nvidia.com/gpu": "0"}}}, []),
    ({"annotations": {MOUNTS: "--bind /a:/b -B '/c d'"}}, ["--bind", "/a:/b", "-B", "/c d"]),
    ({"annotations": {OPTIONS: "--fakeroot --env=X=1"}}, ["--fakeroot", "--env=X=1"]),
]


@pytest.mark.parametrize(("fields", "expected"), OPTION_TABLE)
def test_options(fields: Document, expected: list[str]) -> None:
    """For what the container and the annotations of its pod ask."""
    assert options(launched(LOCAL, **fields)) == expected


MOUNT_TABLE = [
    (DATA, "/jobs/uid-1/volumes/empty/v:/data:ro"),
    (Mount(Path("/s"), "/dev/shm"), "/s:/dev/shm"),
    (Mount(Path("/s/file"), "/etc/one"), "/s/file:/etc/one"),
]


@pytest.mark.parametrize(("mount", "expected"), MOUNT_TABLE)
def test_mounts(mount: Mount, expected: str) -> None:
    """Directories and files, read-only where they are."""
    assert options(launched(LOCAL, mount)) == ["--bind", expected]


def test_a_tmp_of_the_pods_own() -> None:
    """It takes the place of the private one."""
    found = launched(LOCAL, Mount(Path("/s"), "/tmp/"))

    assert ("/s:/tmp/" in found.argv, f"{TMP}:/tmp" in found.argv, found.scratch) == (True, False, [])


def test_the_usual_termination_message_is_not_mounted() -> None:
    """A contained /dev takes no file."""
    assert options(launched(LOCAL, Mount(Path("/t"), "/dev/termination-log"))) == []


REFUSED: list[tuple[Document, str]] = [
    ({"annotations": {OPTIONS: "--nv /evil.sif"}}, "singularity-options: '/evil.sif' belongs to no option"),
    ({"annotations": {OPTIONS: "--"}}, "'--' belongs to no option"),
    ({"annotations": {MOUNTS: "--bind"}}, "singularity-mounts: --bind needs a value"),
    ({"annotations": {OPTIONS: "--nv 'x"}}, "cannot be read"),
    ({"annotations": {OPTIONS: "--nv \x1b[2J"}}, "control characters"),
]


@pytest.mark.parametrize(("fields", "text"), REFUSED)
def test_annotations_that_would_be_something_else(fields: Document, text: str) -> None:
    """A word that is no option would be the image or the command."""
    with pytest.raises(Rejected, match=text):
        launched(LOCAL, **fields)


@pytest.mark.parametrize("target", ["/a:b", "/a,b", "/a\\b", "/a\nb"])
def test_paths_that_a_bind_cannot_name(target: str) -> None:
    """They would mean another mount."""
    with pytest.raises(Rejected, match="holds a character"):
        launched(LOCAL, Mount(Path("/s"), target))


def test_the_sites_options_take_the_place_of_the_usual_ones() -> None:
    """A GPU switch that is there is not given again."""
    site = Apptainer(ImageSettings(prefix="/i/"), options=["--nv", "--contain"], program="/opt/bin/singularity")
    found = launched(site, resources={"limits": {"nvidia.com/gpu": 1}}, env={"A": "1"})

    assert found.argv[:6] == ["/opt/bin/singularity", "--silent", "exec", "--nv", "--contain", "--cleanenv"]
    assert found.argv.count("--nv") == 1
    assert dict(found.environment) == {
        "SINGULARITY_NO_EVAL": "1", "SINGULARITYENV_HOSTNAME": "p", "SINGULARITYENV_A": "1"
    }  # fmt: skip


def test_variables_of_the_job_that_are_passed_on() -> None:
    """The runtime's own as they are; the job's GPUs, and what the site lists, to the container."""
    found = launched(Apptainer(ImageSettings(), passed=["SLURM_JOB_ID"])).passed

    assert (found["PATH"], found["HOME"], found["APPTAINER_CACHEDIR"]) == ("PATH", "HOME", "APPTAINER_CACHEDIR")
    assert found["CUDA_VISIBLE_DEVICES"] == "APPTAINERENV_CUDA_VISIBLE_DEVICES"
    assert found["SLURM_JOB_ID"] == "APPTAINERENV_SLURM_JOB_ID"


# --- images of registries --------------------------------------------------------------------------------------------


def test_an_image_of_a_registry_is_pulled_to_a_file() -> None:
    """Without the cache that jobs would share; the runner puts the file into both command lines."""
    found = launched(REMOTE, imagePullPolicy="Always")
    pull = found.pull

    assert pull is not None
    assert pull.argv == ["apptainer", "pull", "--disable-cache", "--force", "{target}", "docker://busybox:1.36"]
    assert (pull.policy, pull.environment, pull.key[-4:]) == ("Always", [], ".sif")
    assert found.image_at is not None
    assert found.argv[found.image_at] == found.inside[found.image_at] == "docker://busybox:1.36"


def test_a_login_is_in_a_file_of_the_job_alone() -> None:
    """Neither in a command line nor in the specification; an image that needs it is kept apart."""
    found = launched(REMOTE, image="reg.example:5000/x", logins=[LOGIN])
    auth = HERE.env / "c.registries.json"

    assert found.pull is not None
    assert found.pull.environment == [("APPTAINER_AUTH_FILE", str(auth))]
    assert msgspec.json.decode(found.files[auth]) == {"auths": {"reg.example:5000": {"auth": "bWU6czNjcmV0"}}}
    assert "s3cret" not in repr([*found.argv, *found.pull.argv, found.pull.key, found.environment])
    other = launched(REMOTE, image="reg.example:5000/x").pull
    assert other is not None
    assert other.key != found.pull.key


def test_a_login_for_another_registry_is_not_used() -> None:
    """The image is then the one that everybody shares."""
    found, plain = launched(REMOTE, logins=[LOGIN]).pull, launched(REMOTE).pull

    assert found is not None
    assert plain is not None
    assert (found.key, found.environment) == (plain.key, [])


def test_singularity_takes_a_login_from_its_environment() -> None:
    """Which comes from a file of the job, and is in no command line."""
    found = launched(Apptainer(ImageSettings(), program="singularity"), image="reg.example:5000/x", logins=[LOGIN]).pull

    assert found is not None
    assert found.environment == [("SINGULARITY_DOCKER_USERNAME", "me"), ("SINGULARITY_DOCKER_PASSWORD", "s3cret")]


@pytest.mark.parametrize(
    ("options", "is_read_only", "keeps_privileges_out"),
    [
        ([], True, True),
        (["--containall", "--writable-tmpfs"], False, True),
        (["--overlay=/o"], False, True),
        (["--allow-setuid"], True, False),
    ],
)
def test_what_holds_of_a_security_context(options: list[str], is_read_only: bool, keeps_privileges_out: bool) -> None:
    """The image is read-only and no program gains privileges, unless the site's options say otherwise."""
    found = launched(Apptainer(ImageSettings(prefix="/images/"), options=options)).enforced

    assert ("readOnlyRootFilesystem" in found, "allowPrivilegeEscalation" in found) == (
        is_read_only,
        keeps_privileges_out,
    )
