"""`runner.py enter`: a host process that sees its volumes, and a host that sees nothing of it."""

import ctypes
import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.pythons import AGES, Python

RUNNER = Path(__file__).parents[2] / "src/interlink/sdk/batch/runner.py"
MISSING = "/interlink-test/some/where"
on_every_python = pytest.mark.parametrize("python", AGES, indirect=True)
CAP_SYS_ADMIN, PR_CAPBSET_DROP = 21, 24


def without_privilege() -> None:
    """Make root as powerless as an ordinary user is when it comes to mounts."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0)


class Entrance:
    def __init__(self, path: Path, python: Python, preexec: Callable[[], None] | None) -> None:
        self._table = path / "mounts.json"
        self._python = python
        self._preexec = preexec

    def __call__(
        self, mounts: list[dict[str, Any]], *command: str, env: dict[str, str] | None = None, **document: Any
    ) -> "subprocess.CompletedProcess[str]":
        self._table.write_text(json.dumps({"mounts": mounts, "root_tmp": None, **document}))
        argv = [*self._python, "-I", "-S", str(RUNNER), "enter", str(self._table), "--", *command]
        return subprocess.run(argv, capture_output=True, text=True, env=env, preexec_fn=self._preexec, timeout=20)


WAYS: dict[str, Callable[[], None] | None] = {"as we are": None, "in a user namespace": without_privilege}


@functools.cache
def why_not(way: str, python: Python) -> str:
    """Why this host does not allow that way in; empty if it does."""
    if WAYS[way] and os.geteuid() != 0:
        return "we are an ordinary user: the other half of this test uses a user namespace already"
    with tempfile.TemporaryDirectory() as directory:
        result = Entrance(Path(directory), python, WAYS[way])([mount(Path(directory), MISSING)], "true")
    return f"no mount namespaces here: {result.stderr.strip()}" if result.returncode else ""


@pytest.fixture(name="enter", params=WAYS)
def _enter(request: pytest.FixtureRequest, tmp_path: Path, python: Python) -> Entrance:
    """Enters directly, and as a user who may not mount anything outside a user namespace."""
    if reason := why_not(request.param, python):
        pytest.skip(reason)
    return Entrance(tmp_path, python, WAYS[request.param])


@pytest.fixture(name="volume")
def _volume(tmp_path: Path) -> Path:
    """A directory with one file."""
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "file").write_text("content\n")
    return volume


def mount(source: Path, target: Path | str, *, read_only: bool = False) -> dict[str, Any]:
    return {"source": str(source), "target": str(target), "read_only": read_only}


def test_a_volume_covers_an_existing_directory(enter: Entrance, volume: Path, tmp_path: Path) -> None:
    """What is written there lands in the volume; the host's directory is as before."""
    target = tmp_path / "target"
    target.mkdir()

    result = enter([mount(volume, target)], "sh", "-c", f"cat {target}/file; echo new > {target}/new")
    assert (result.stdout, result.stderr) == ("content\n", "")
    assert (volume / "new").read_text() == "new\n"
    assert list(target.iterdir()) == []


def test_a_volume_appears_where_the_host_has_nothing(enter: Entrance, volume: Path) -> None:
    """All else is still there: devices, programs, processes; and the host gains no directory."""
    script = (
        f"cat {MISSING}/file && echo new > {MISSING}/new && echo x > /dev/null && test -e /proc/self && ls -d /old*"
    )

    result = enter([mount(volume, MISSING)], "sh", "-c", script + " /.interlink* 2> /dev/null; ls -d /usr")
    assert result.stdout.splitlines()[0] == "content"
    assert result.stdout.splitlines()[-1] == "/usr"
    assert ".interlink" not in result.stdout
    assert (volume / "new").exists()
    assert not Path(MISSING).parents[1].exists()


@on_every_python
def test_targets_may_lead_through_links(enter: Entrance, volume: Path) -> None:
    """/var/run is a link on most hosts: a service account's token is found below it."""
    target = "/var/run/secrets/kubernetes.io/serviceaccount"

    result = enter([mount(volume, target, read_only=True)], "cat", f"{target}/file")
    assert (result.stdout, result.stderr) == ("content\n", "")
    assert not Path(target).exists()


def test_read_only_means_that_nobody_can_write(enter: Entrance, volume: Path) -> None:
    """Not even root."""
    result = enter([mount(volume, MISSING, read_only=True)], "touch", f"{MISSING}/new")

    assert "Read-only file system" in result.stderr
    assert not (volume / "new").exists()


def test_single_files_are_mounted(enter: Entrance, volume: Path, tmp_path: Path) -> None:
    """Over a file, and where there is none, even in /dev."""
    existing = tmp_path / "existing"
    existing.write_text("other\n")
    mounts = [mount(volume / "file", existing), mount(volume / "file", "/dev/interlink-test-log")]

    result = enter(mounts, "cat", str(existing), "/dev/interlink-test-log")
    assert result.stdout == "content\ncontent\n"
    assert existing.read_text() == "other\n"


def test_a_volume_inside_a_volume_is_mounted_after_it(enter: Entrance, volume: Path, tmp_path: Path) -> None:
    """Whatever order they are listed in."""
    outer = tmp_path / "outer"
    (outer / "inner").mkdir(parents=True)
    mounts = [mount(volume, f"{MISSING}/inner"), mount(outer, MISSING)]

    assert enter(mounts, "cat", f"{MISSING}/inner/file").stdout == "content\n"


def test_a_volume_may_hide_the_source_of_another(enter: Entrance, volume: Path, tmp_path: Path) -> None:
    """Sources are the host's, never what another mount shows."""
    other = tmp_path / "other"
    other.mkdir()
    mounts = [mount(other, volume), mount(volume, MISSING)]

    assert enter(mounts, "cat", f"{MISSING}/file").stdout == "content\n"


def test_the_command_starts_where_it_is_told(enter: Entrance, volume: Path) -> None:
    """In a directory that only exists inside, or else where we are, as seen from inside."""
    assert enter([mount(volume, MISSING)], "cat", "file", cwd=MISSING).stdout == "content\n"
    assert enter([mount(volume, MISSING)], "pwd").stdout == f"{Path.cwd()}\n"


def test_the_environment_is_passed_on_as_it_is(enter: Entrance, volume: Path) -> None:
    """Also in a C locale, where Python adds a variable to its own copy."""
    result = enter([mount(volume, MISSING)], "/usr/bin/env", env={"A": "ä"})

    assert result.stdout == "A=ä\n"


def test_without_mounts_the_command_just_runs(enter: Entrance) -> None:
    """No namespace is needed; exit code and arguments are the command's own."""
    assert enter([], "sh", "-c", 'exit "$1"', "sh", "7").returncode == 7


@pytest.mark.parametrize(
    ("mounts", "command", "code", "words"),
    [
        ([mount(Path("/no/such"), "/tmp")], "true", 126, "its source /no/such does not exist"),
        ([mount(Path("etc"), "/tmp")], "true", 126, "both paths must be absolute"),
        ([mount(Path("/etc"), "/")], "true", 126, "cannot mount on /"),
        ([mount(Path("/etc"), "/etc/passwd")], "true", 126, "cannot mount /etc on /etc/passwd"),
        ([mount(Path("/etc/passwd"), "/etc/passwd/x")], "true", 126, "/etc/passwd/x"),
        ([], "no-such-program", 127, "cannot run no-such-program"),
        ([], "/etc/passwd", 126, "cannot run /etc/passwd: Permission denied"),
    ],
)
def test_what_is_impossible_is_said_in_one_line(
    enter: Entrance, mounts: list[dict[str, Any]], command: str, code: int, words: str
) -> None:
    """With the path and the exit code that a shell would give."""
    result = enter(mounts, command)

    assert result.returncode == code
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_mount_in_a_root_directory_follows_its_links(enter: Entrance, volume: Path, tmp_path: Path) -> None:
    """As they are when that directory is the root: an absolute link leads nowhere else, and `..` not out of it."""
    root = tmp_path / "root"
    (root / "run").mkdir(parents=True)
    (root / "var").mkdir()
    (root / "var/run").symlink_to("/run")
    (root / "out").symlink_to("../../../run")
    rows = [mount(volume, target) | {"is_in_root": True} for target in ("/var/run/deep/v", "/out/w", "/new")]
    script = 'cat "$0"/run/deep/v/file "$0"/run/w/file "$0"/new/file'

    result = enter(rows, "sh", "-c", script, str(root), root_word=3)

    assert (result.stdout, result.stderr) == ("content\n" * 3, "")
    assert sorted(path.name for path in root.rglob("*")) == ["out", "run", "run", "var"]


@pytest.mark.parametrize("kind", ["file", "missing", "loop"])
def test_a_root_that_cannot_take_mounts(enter: Entrance, volume: Path, tmp_path: Path, kind: str) -> None:
    """It is named, and the command is not run."""
    root = tmp_path / "root"
    if kind == "file":
        root.touch()
    elif kind == "loop":
        root.mkdir()
        (root / "v").symlink_to("/v")

    result = enter([mount(volume, "/v/x") | {"is_in_root": True}], "echo", str(root), root_word=1)

    assert (result.returncode, result.stdout) == (126, "")
    assert "too many links" in result.stderr if kind == "loop" else f"{root} is no directory" in result.stderr
