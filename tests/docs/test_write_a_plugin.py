"""The tutorial works: its blocks, typed one after the other, give a plugin that keeps every promise."""

import inspect
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_reference import ROOT
from tests.support import task_spooler
from tests.support.jobs import end_jobs

TEXT = (ROOT / "docs" / "how-to" / "write-a-plugin.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def code_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.fixture
def desk() -> Iterator[Path]:
    """A folder with a short name, as it holds sockets."""
    folder = Path(tempfile.mkdtemp(prefix="interlink-docs-"))
    yield folder
    end_jobs(folder / "jobs")
    if (folder / "pid").exists():
        os.kill(int((folder / "pid").read_text()), signal.SIGTERM)
    if (folder / "tsp.sock").exists():
        subprocess.run(["tsp", "-K"], env={**os.environ, "TS_SOCKET": str(folder / "tsp.sock")}, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def test_its_code_is_the_plugin_that_is_tested() -> None:
    """Line by line."""
    assert code_lines("".join(blocks("python"))) == code_lines(inspect.getsource(task_spooler))


def test_what_it_says_can_be_typed(desk: Path) -> None:
    """From nothing to a plugin that passes `interlink conformance`."""
    if shutil.which("tsp") is None:
        pytest.skip("no Task Spooler: apt-get install task-spooler")
    (desk / "task_spooler.py").write_text("\n".join(blocks("python")))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(blocks("sh")),
        capture_output=True,
        text=True,
        cwd=desk,
        env={**os.environ, "PATH": path},
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}{done.stderr}{(desk / 'plugin.log').read_text()[-2000:]}"
    assert re.search(r"^\d+ ok$", done.stdout, re.MULTILINE), done.stdout
