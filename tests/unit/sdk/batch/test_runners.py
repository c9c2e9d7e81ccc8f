"""The runner beside the job directories: there before the first job, the same for all, out of the jobs' way."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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


def test_it_is_put_back_when_it_was_lost(tmp_path: Path) -> None:
    """Also where only a part is there, after a crash in the middle: `__main__.py` comes last."""
    runners.install(tmp_path)
    (runners.place(tmp_path) / "__main__.py").unlink()
    (runners.place(tmp_path) / "runner.py").write_text("half")
    runners.install(tmp_path)

    assert run(tmp_path).returncode == 2


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
