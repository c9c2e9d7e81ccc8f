"""Containers as command lines of Enroot; Enroot itself is not run by any test."""

from pathlib import Path

import pytest

from interlink.sdk.batch.runtime import Login, Mount
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.enroot import MOUNTS, OPTIONS, Enroot
from interlink.sdk.runtimes.images import ImageSettings
from tests.unit.builders import Document
from tests.unit.sdk.runtimes.launching import DATA, HERE, LOGIN, launched

LOCAL = Enroot(ImageSettings(prefix="/images/"), options=["--rw"])
REMOTE = Enroot(ImageSettings())
SCRIPT = HERE.path / "mounts/c.rc"
TMP = "--mount=/tmp/interlink-uid-1/c:/tmp:none:x-create=auto,rbind"
GPUS = [f"--env={name}" for name in (
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"
)]  # fmt: skip


def test_the_exact_command_line() -> None:
    """The command takes the place of the image's start script, in its working directory."""
    found = launched(LOCAL, DATA, command=["a b"], args=["$x"], workingDir="/w w", env={"A": "1", "PATH": "/p"})
    inside = [
        "enroot", "start", "--rw", TMP,
        "--mount=/jobs/uid-1/volumes/empty/v:/data:none:x-create=auto,rbind,ro",
        "--env=HOSTNAME", "--env=A", "--env=PATH=/p", *GPUS, f"--rc={SCRIPT}", "/images/busybox:1.36",
    ]  # fmt: skip

    assert found.inside == inside
    assert found.argv == [*inside, "a b", "$x"]
    assert found.files == {SCRIPT: b"cd '/w w' || exit 126\nexec \"$@\"\n"}
    assert found.environment == [("HOSTNAME", "p"), ("A", "1")]


def test_without_a_command_the_image_decides() -> None:
    """Its start script gets the arguments; both command lines have the image at one place."""
    found = launched(REMOTE, command=None, args=["-v"])

    assert found.argv[-3:] == ["--", "docker://busybox:1.36", "-v"]
    assert found.image_at is not None
    assert found.argv[found.image_at] == found.inside[found.image_at] == "docker://busybox:1.36"


ADDRESSES = [
    ("busybox:1", "docker://busybox:1"),
    ("library/busybox:1", "docker://library/busybox:1"),
    ("nvcr.io/nvidia/x:1", "docker://nvcr.io#nvidia/x:1"),
    ("reg:5000/x", "docker://reg:5000#x"),
    ("localhost/x", "docker://localhost#x"),
]


@pytest.mark.parametrize(("image", "address"), ADDRESSES)
def test_an_image_of_a_registry(image: str, address: str) -> None:
    """In the words of Enroot, to a squashed file."""
    pull = launched(REMOTE, image=image).pull

    assert pull is not None
    assert pull.argv == ["enroot", "import", "--output", "{target}", address]
    assert pull.key.endswith(".sqsh")


def test_a_login_is_in_a_file_of_the_job_alone() -> None:
    """Where Enroot looks for it."""
    found = launched(REMOTE, image="reg.example:5000/x", logins=[LOGIN])
    folder = HERE.env / "c.enroot"

    assert found.pull is not None
    assert found.pull.environment == [("ENROOT_CONFIG_PATH", str(folder))]
    assert found.files[folder / ".credentials"] == b"machine reg.example:5000 login me password s3cret\n"
    assert "s3cret" not in repr([found.argv, found.pull])


def test_the_options_of_annotations() -> None:
    """Before those of the container's own."""
    found = launched(LOCAL, annotations={MOUNTS: "--mount /a:/b", OPTIONS: "--root"})

    assert found.argv[2:6] == ["--rw", "--mount", "/a:/b", "--root"]


REFUSED: list[tuple[Document, str]] = [
    ({"env": {"A": "1\n2"}}, "cannot pass A: its value has several lines"),
    ({"image": "oras://r/x"}, "Enroot pulls docker:// only"),
    ({"command": None, "workingDir": "/w"}, "needs a `command` where there is a workingDir"),
    ({"annotations": {OPTIONS: "--rw other"}}, "enroot-options: 'other' belongs to no option"),
    ({"logins": [Login("r", "a b", "c")]}, "it holds blanks"),
]


@pytest.mark.parametrize(("fields", "text"), REFUSED)
def test_what_enroot_cannot_run(fields: Document, text: str) -> None:
    """With the reason."""
    with pytest.raises(Rejected, match=text):
        launched(REMOTE, **fields)


def test_paths_that_a_mount_cannot_name() -> None:
    """Its fields are parted by colons."""
    with pytest.raises(Rejected, match="holds a character"):
        launched(LOCAL, Mount(Path("/s"), "/a b"))
