import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlink.testing import DaemonError, waiting
from interlink.testing.daemons import Daemon

STARTS_A_DAEMON_AND_IS_KILLED = """
import os, signal, sys
from pathlib import Path
from interlink.testing.daemons import Daemon
daemon = Daemon(["sleep", "60"], log=Path(sys.argv[1]), is_detached=bool(sys.argv[2]))
daemon.start()
print(daemon.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def shell(script: str, folder: Path) -> Daemon:
    return Daemon(["sh", "-c", script], log=folder / "log")


def orphan(folder: Path, *, is_detached: bool) -> int:
    """The process id of a daemon whose parent was killed."""
    argv = [sys.executable, "-c", STARTS_A_DAEMON_AND_IS_KILLED, str(folder / "log"), "yes" if is_detached else ""]
    return int(subprocess.run(argv, stdout=subprocess.PIPE, check=False).stdout)


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_daemon_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    pid = orphan(tmp_path, is_detached=False)

    assert waiting.until(lambda: not is_running(pid), deadline_s=5)


def test_a_detached_daemon_does(tmp_path: Path) -> None:
    pid = orphan(tmp_path, is_detached=True)

    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_daemon_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    daemon = shell("sleep 60", tmp_path)
    daemon.start()

    assert daemon.pid is not None
    assert os.getsid(daemon.pid) == daemon.pid
    daemon.kill()


def test_a_daemon_that_ignores_term_is_killed_at_the_deadline(tmp_path: Path) -> None:
    daemon = shell("trap '' TERM; echo deaf; sleep 60 & wait", tmp_path)
    daemon.start()
    waiting.until(lambda: "deaf" in daemon.tail(), deadline_s=5)

    daemon.stop(deadline_s=0.1)

    assert daemon.pid is None


def test_a_daemon_that_died_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    daemon = shell("echo cannot bind; exit 3", tmp_path)
    daemon.start()
    waiting.until(lambda: daemon.pid is None, deadline_s=5)

    with pytest.raises(DaemonError, match=r"exit code 3(.|\n)*cannot bind"):
        daemon.check()


def test_starting_and_stopping_twice_changes_nothing(tmp_path: Path) -> None:
    daemon = shell("sleep 60", tmp_path)
    daemon.start()
    first = daemon.pid

    daemon.start()
    assert daemon.pid == first

    daemon.stop()
    daemon.stop()
    assert daemon.pid is None
