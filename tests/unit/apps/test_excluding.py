"""One program to a directory, and whose it is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlink.apps.excluding import only_one
from interlink.model.errors import ConfigurationError
from interlink.sdk.addresses import Address

HERE = Address(scheme="http", host="127.0.0.1", port=4000)
HOLD = """
import sys
from pathlib import Path
from interlink.apps.excluding import only_one
from interlink.sdk.addresses import Address
with only_one(Path(sys.argv[1]), kind="plugin", key="K", lock=".lock", address=Address("http", "other", 1)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the directory."""
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def take(directory: Path) -> None:
    with only_one(directory, kind="plugin", key="K", lock=".lock", address=HERE):
        pass


def test_a_second_one_is_refused_and_told_of_the_first(tmp_path: Path, other: "subprocess.Popen[str]") -> None:
    """It would submit what the first is just submitting."""
    with pytest.raises(
        ConfigurationError, match=f"another plugin uses {tmp_path}: process {other.pid} at http://other"
    ):
        take(tmp_path)


def test_a_killed_one_holds_nothing(tmp_path: Path, other: "subprocess.Popen[str]") -> None:
    """The next one starts at once."""
    other.kill()
    other.wait()

    take(tmp_path)


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """With the key that it has in the configuration."""
    (tmp_path / "file").touch()

    with pytest.raises(ConfigurationError, match=f"cannot use K {tmp_path}/file/jobs: File exists"):
        take(tmp_path / "file" / "jobs")
