"""The runner beside the job directories: there before the first job, the same for all, out of the jobs' way."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlink.sdk.batch import jobdir, runners


def run(root: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", "-S", str(runners.place(root))]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30)


def test_python_runs_the_directory(tmp_path: Path) -> None:
    """Isolated, as a job starts it; the second time from bytecode."""
    runners.install(tmp_path)

    for _ in range(2):
        done = run(tmp_path)
        assert (done.returncode, "usage: " in done.stderr) == (2, True)
    assert list(runners.place(tmp_path).glob("__pycache__/runner.*.pyc"))


def test_it_is_no_job(tmp_path: Path) -> None:
    """Whoever looks for jobs below the root does not see it."""
    runners.install(tmp_path)
    (tmp_path / "uid-1").mkdir()

    assert [directory.pod_uid for directory in jobdir.below(tmp_path)] == ["uid-1"]


@pytest.mark.parametrize("lost", ["__main__.py", "runner.py"])
@pytest.mark.parametrize("is_cut", [True, False])
def test_it_is_put_back_when_it_was_lost(tmp_path: Path, lost: str, *, is_cut: bool) -> None:
    """Any part of it, also while the plugin lives: old files are cleared away on the file systems of many sites."""
    runners.install(tmp_path)
    path = runners.place(tmp_path) / lost
    path.write_text("half") if is_cut else path.unlink()
    runners.install(tmp_path)

    assert run(tmp_path).returncode == 2


@pytest.mark.parametrize("damage", [b"", b"\xe3" * 20_000, bytes(60_000)], ids=["cut off", "garbage", "zeros"])
@pytest.mark.parametrize("is_whole", [True, False], ids=["beginning kept", "all of it"])
def test_damaged_bytecode_keeps_no_job_from_running(tmp_path: Path, damage: bytes, *, is_whole: bool) -> None:
    """Python cuts it off itself where the disk is full, and would not start again; it is made anew."""
    runners.install(tmp_path)
    run(tmp_path)
    (bytecode,) = runners.place(tmp_path).glob("__pycache__/runner.*.pyc")
    sound = bytecode.read_bytes()
    bytecode.write_bytes((sound[:16] if is_whole else b"") + damage)

    assert [run(tmp_path).returncode for _ in range(2)] == [2, 2]
    assert bytecode.read_bytes() == sound


def test_it_is_read_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some hundred jobs a second ask for it."""
    runners.install(tmp_path)
    runners.install(tmp_path)
    file = runners.place(tmp_path) / "runner.py"
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} is read"))
    runners.install(tmp_path)
    monkeypatch.undo()

    changed, at = b"#" * file.stat().st_size, file.stat().st_mtime_ns
    file.write_bytes(changed)
    os.utime(file, ns=(at, at))
    runners.install(tmp_path)

    assert file.read_bytes() == runners.SOURCE.read_bytes()


def test_many_may_ask_for_it_at_once(tmp_path: Path) -> None:
    """The first creates of a new plugin come together."""
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(runners.install, [tmp_path] * 8)) == [None] * 8


def test_everybodys_jobs_may_read_it(tmp_path: Path) -> None:
    """Jobs may belong to other users than the plugin."""
    runners.install(tmp_path)
    place = runners.place(tmp_path)

    assert [path.stat().st_mode & 0o777 for path in (place, place / "runner.py", place / "__main__.py")] == [
        0o755,
        0o644,
        0o644,
    ]
