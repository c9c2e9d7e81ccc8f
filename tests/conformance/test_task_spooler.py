"""A batch system that nobody here had in mind, as a plugin in one file, keeps every promise."""

import inspect
import os
import shutil
import subprocess
import sys

import pytest

from interlink.sdk.addresses import Address
from interlink.sdk.conformance.tests.test_conformance import test_promise
from tests.conformance.conftest import Conformer
from tests.support import task_spooler

__all__ = ["test_promise"]


@pytest.fixture(scope="module")
def interlink_plugin(conformer: Conformer) -> Address:
    """With a queue of its own."""
    if shutil.which("tsp") is None:
        pytest.skip("no Task Spooler: apt-get install task-spooler")
    environ = {"TS_SOCKET": str(conformer.folder / "tsp"), "TS_SLOTS": "50", "TMPDIR": str(conformer.folder)}
    conformer.running.callback(
        subprocess.run, ["tsp", "-K"], env={**os.environ, **environ}, stdout=subprocess.DEVNULL, check=False
    )
    file = inspect.getfile(task_spooler)
    return conformer.start([sys.executable, file, str(conformer.address), str(conformer.jobs)], environ)


def test_it_is_one_file_of_less_than_200_lines() -> None:
    """With all that is needed to run it."""
    assert len(inspect.getsource(task_spooler).splitlines()) < 200
