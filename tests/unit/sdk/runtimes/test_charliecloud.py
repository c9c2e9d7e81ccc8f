"""Containers as command lines of Charliecloud; `tests/runtimes` runs it."""

from pathlib import Path

import msgspec
import pytest

from interlink.sdk.batch import runners
from interlink.sdk.batch.runtime import Mount
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.charliecloud import Charliecloud
from interlink.sdk.runtimes.images import ImageSettings
from tests.unit.builders import Document
from tests.unit.sdk.runtimes.launching import DATA, HERE, LOGIN, VALUES, launched

LOCAL = Charliecloud(ImageSettings(prefix="/images/"), python="/py", options=["-v"])
REMOTE = Charliecloud(ImageSettings(), python="/py")
TABLE = HERE.path / "mounts/c.json"
ENTER = ["/py", "-I", "-S", str(runners.place(Path("/jobs"))), "enter", str(TABLE), "--"]
PATH = "--set-env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN = ["ch-run", "-v", "--no-passwd", "--env-no-expand", PATH]


def test_the_exact_command_line() -> None:
    """By way of the runner's view of the image; probes go the same way."""
    found = launched(LOCAL, command=["a b"], args=["$x"], workingDir="/w")

    assert found.inside == [*ENTER, *RUN, "--cd=/w", "/images/busybox:1.36", "--"]
    assert found.argv == [*found.inside, "a b", "$x"]
    assert (found.argv[found.program_at or 0], found.image_at) == ("ch-run", None)


def test_mounts_lie_in_the_image_but_for_what_is_the_hosts() -> None:
    """/tmp is a directory of this container alone, which TMPDIR names to the runtime."""
    mounts = [DATA, *(Mount(Path("/s"), target) for target in ("/dev/shm", "/tmp/x", "/tmp", "/device"))]
    found = launched(LOCAL, *mounts)
    document = msgspec.json.decode(found.files[TABLE])

    rows = [(row["target"], row.get("is_in_root", False), row["read_only"]) for row in document["mounts"]]
    tmp = "/tmp/interlink-uid-1/c"
    assert rows == [
        ("/data", True, True),
        ("/dev/shm", False, False),
        (f"{tmp}/x", False, False),
        (tmp, False, False),
        ("/device", True, False),
    ]
    assert found.argv[len(ENTER) + document["root_word"]] == "/images/busybox:1.36"
    assert (dict(found.environment)["TMPDIR"], found.scratch) == (tmp, [Path(tmp)])


def test_values_are_not_in_the_command_line() -> None:
    """But for two that the runtime would change."""
    found = launched(LOCAL, env={**VALUES, "PATH": "'/p'", "TMPDIR": "/t"})

    assert VALUES.items() <= dict(found.environment).items()
    assert "--set-env=PATH=''/p''" in found.argv, "the runtime takes one pair of quotes off"
    assert "--set-env=TMPDIR=/t" in found.argv


def test_an_image_of_a_registry_is_unpacked_once() -> None:
    """To a directory, which is not replaced while jobs may run from it."""
    found = launched(REMOTE, imagePullPolicy="Always")

    assert found.pull is not None
    assert found.pull.argv[3:] == ["sh", "{target}", "busybox:1.36"]
    assert (found.pull.policy, found.pull.key[-4:]) == ("IfNotPresent", ".dir")
    assert found.image_at is not None
    assert found.argv[found.image_at] == found.inside[found.image_at] == "docker://busybox:1.36"


REFUSED: list[tuple[Document, str]] = [
    ({"command": None}, "Charliecloud does not use the image's entry point"),
    ({"image": "oras://r/x"}, "Charliecloud pulls docker:// only"),
    ({"image": "reg.example:5000/x", "logins": [LOGIN]}, "cannot use imagePullSecrets"),
]


@pytest.mark.parametrize(("fields", "text"), REFUSED)
def test_what_charliecloud_cannot_run(fields: Document, text: str) -> None:
    """With the reason."""
    with pytest.raises(Rejected, match=text):
        launched(REMOTE, **fields)


@pytest.mark.parametrize(
    ("options", "is_read_only", "keeps_privileges_out"),
    [
        ([], True, True),
        (["-w"], False, True),
        (["--write-fake=1G"], False, True),
    ],
)
def test_what_holds_of_a_security_context(options: list[str], is_read_only: bool, keeps_privileges_out: bool) -> None:
    """The image is read-only and no program gains privileges, unless the site's options say otherwise."""
    found = launched(Charliecloud(ImageSettings(prefix="/images/"), options=options)).enforced

    assert ("readOnlyRootFilesystem" in found, "allowPrivilegeEscalation" in found) == (
        is_read_only,
        keeps_privileges_out,
    )
