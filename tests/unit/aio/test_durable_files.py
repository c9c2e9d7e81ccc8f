"""Files that survive, and a lock that dies with its holder."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlink.aio import files
from interlink.aio.files import LockedError

HOLD = "import sys; from pathlib import Path; from interlink.aio import files\n"


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HOLD + code, *map(str, arguments)], capture_output=True, text=True, timeout=20
    )


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_write_replaces_the_content(tmp_path: Path) -> None:
    """What was there before is gone, and no temporary file stays."""
    path = tmp_path / "f"
    files.write_durably(path, b"old and longer")
    files.write_durably(path, b"new")

    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_file_is_private_unless_it_is_said(tmp_path: Path) -> None:
    """Records and job directories are not for other users."""
    files.write_durably(tmp_path / "a", b"")
    files.write_durably(tmp_path / "b", b"", mode=0o640)

    assert [(tmp_path / name).stat().st_mode & 0o777 for name in "ab"] == [0o600, 0o640]


@pytest.mark.parametrize(("module", "step"), [(os, "fsync"), (os, "open"), (Path, "replace")])
def test_a_write_that_fails_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object, step: str
) -> None:
    """Whatever the disk refuses, the file is what it was and no temporary file stays."""
    path = tmp_path / "f"
    files.write_durably(path, b"old")
    monkeypatch.setattr(module, step, full)

    with pytest.raises(OSError, match="No space left"):
        files.write_durably(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_a_write_into_a_missing_directory_fails(tmp_path: Path) -> None:
    """The directory is the caller's to make."""
    with pytest.raises(FileNotFoundError):
        files.write_durably(tmp_path / "no" / "f", b"")


def test_a_leftover_temporary_file_is_no_hindrance(tmp_path: Path) -> None:
    """A process that was killed while it wrote leaves one; the next write takes its place."""
    (tmp_path / ".f.tmp").write_bytes(b"a much longer leftover")
    files.write_durably(tmp_path / "f", b"new")

    assert (tmp_path / "f").read_bytes() == b"new"


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_trap_in_the_place_of_the_temporary_file_is_taken_away(tmp_path: Path, kind: str) -> None:
    """A job's user may write into the directory that a privileged plugin writes into."""
    trap, elsewhere = tmp_path / ".x.tmp", tmp_path / "elsewhere"
    elsewhere.write_text("as it was")
    trap.symlink_to(elsewhere) if kind == "link" else os.mkfifo(trap)
    files.write_durably(tmp_path / "x", b"news")

    assert ((tmp_path / "x").read_bytes(), elsewhere.read_text()) == (b"news", "as it was")


def test_a_record_beyond_all_measure_is_not_read(tmp_path: Path) -> None:
    """A hostile job's file must not eat the plugin's memory."""
    with (tmp_path / "x").open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(OSError, match="File too large"):
        files.read_regular(tmp_path / "x")


def test_files_written_together_are_each_written(tmp_path: Path) -> None:
    """Also when they lie in different directories."""
    (tmp_path / "d").mkdir()
    contents = {tmp_path / "a": b"1", tmp_path / "d" / "b": b"2"}
    files.write_together(contents)

    assert {path: path.read_bytes() for path in contents} == contents


def test_each_directory_is_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many files in one directory cost one directory sync."""
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_directory", synced.append)
    files.write_together({tmp_path / str(number): b"" for number in range(5)})

    assert synced == [tmp_path]


def test_removing_is_idempotent(tmp_path: Path) -> None:
    """Absent files are as good as removed ones."""
    path = tmp_path / "f"
    path.touch()
    files.remove_durably([path, path, tmp_path / "absent"])
    files.remove_durably([path])

    assert not path.exists()


def test_a_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    """They are private, and making them again is harmless."""
    path = tmp_path / "a" / "b"
    files.make_directory(path)
    files.make_directory(path)

    assert [p.stat().st_mode & 0o777 for p in (path, path.parent)] == [0o700, 0o700]


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    """Nothing of the user's is removed to make a directory."""
    (tmp_path / "f").touch()

    with pytest.raises(OSError, match=r"exists|Not a directory"):
        files.make_directory(tmp_path / "f")


# --- the lock --------------------------------------------------------------------------------------------------------


def test_a_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    """They learn what the holder wrote about itself."""
    code = (
        "try: files.lock_exclusively(Path(sys.argv[1]), 'b')\n"
        "except files.LockedError as error: print(error.holder, error, sep='|')"
    )
    with files.lock_exclusively(tmp_path / "lock", "process a"):
        answer = run_python(code, tmp_path / "lock").stdout.strip()

    assert answer == f"process a|{tmp_path / 'lock'} is locked by process a"


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    """A killed process holds nothing; what it wrote about itself is overwritten."""
    code = (
        "import os, signal\n"
        "file = files.lock_exclusively(Path(sys.argv[1]), 'a long name')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert run_python(code, tmp_path / "lock").returncode == -9

    with files.lock_exclusively(tmp_path / "lock", "b"):
        assert (tmp_path / "lock").read_text() == "b"


def test_closing_the_file_frees_the_lock(tmp_path: Path) -> None:
    """The next process takes it at once."""
    files.lock_exclusively(tmp_path / "lock", "a").close()

    assert run_python("files.lock_exclusively(Path(sys.argv[1]), 'b')", tmp_path / "lock").returncode == 0


def test_the_holder_of_a_lock_can_be_asked_for(tmp_path: Path) -> None:
    """Its process id is told without touching the lock."""
    code = "print(files.lock_holder(Path(sys.argv[1])))"
    with files.lock_exclusively(tmp_path / "lock", "a"):
        answer = run_python(code, tmp_path / "lock").stdout.strip()

    assert answer == str(os.getpid())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_free_lock_has_no_holder(tmp_path: Path, is_there: bool) -> None:
    """Neither a lock file that nobody holds nor a missing one has a holder."""
    if is_there:
        (tmp_path / "lock").touch()

    assert files.lock_holder(tmp_path / "lock") is None


def test_a_locked_error_without_a_name_still_says_something() -> None:
    """A holder that has not written about itself yet is another process."""
    assert str(LockedError(Path("/l"), "")) == "/l is locked by another process"
