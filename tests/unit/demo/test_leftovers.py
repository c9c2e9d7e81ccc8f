"""Only what is ours is ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlink.sdk.batch import jobdir, runners
from interlink.sdk.batch.jobdir import JobDirectory
from tools.demo import leftovers, watching

HOLDER = """
import sys, time
from pathlib import Path
from interlink.aio import files
lock = files.lock_exclusively(Path(sys.argv[1]), "me")
print("locked", flush=True)
time.sleep(60)
"""


def test_a_program_of_ours_works_in_our_folder() -> None:
    folder = Path("/checkout/.demo")

    assert leftovers.names("python -m interlink server --config /checkout/.demo/server.yaml", folder)
    assert not leftovers.names("python -m interlink server --config /other/.demo/server.yaml", folder)
    assert not leftovers.names("vim /checkout/.demo/server.yaml", folder)


def test_a_reused_process_id_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pids").write_text(f"{os.getpid()} server\n")

    with leftovers.locked(tmp_path):
        leftovers.clear(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock"]


def test_a_program_that_an_earlier_demo_left_is_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sleeper = "import time; print(flush=True); time.sleep(60)"
    argv = [sys.executable, "-c", sleeper, "interlink", f"{tmp_path}/server.yaml"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        (tmp_path / "pids").write_text(f"{left.pid} server\n")

        leftovers.end(tmp_path)

        assert left.wait(10) != 0
    assert "ending what an earlier demo left running: 1 programs" in capsys.readouterr().out


def test_a_folder_that_another_demo_uses_is_refused(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            with pytest.raises(leftovers.InUseError, match="process me"), leftovers.locked(tmp_path):
                pass
        finally:
            other.kill()


def test_what_lies_beside_the_jobs_is_no_job(tmp_path: Path) -> None:
    """The plugin's lock is a file, the runner a directory; the demo ended with an error at its start."""
    (tmp_path / jobdir.LOCK).touch()
    runners.install(tmp_path)
    JobDirectory(tmp_path / "uid-1").create()

    leftovers.end_jobs(tmp_path)

    assert watching.alive(tmp_path) == frozenset()
