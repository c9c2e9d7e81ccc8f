"""Containers as programs of the host."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlink.model.pods import Container
from interlink.sdk.batch import runners
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Mount
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.none import HostProcesses
from tests.unit.builders import pod

HERE = JobDirectory(Path("/jobs/uid-1"))
MOUNT = Mount(source=Path("/jobs/uid-1/volumes/empty/v"), target="/data/", read_only=True)


def launched(*mounts: Mount, **container: Any) -> Launch:
    spec = msgspec.convert({"name": "c", "image": "ignored", "command": ["sh"]} | container, Container)
    return HostProcesses("/py").launch(spec, mounts, pod=pod(), directory=HERE)


def test_the_command_and_its_arguments_are_the_program() -> None:
    """As they are, without a shell; the image is not used."""
    assert launched(command=["a b", "$x"], args=["", "'"]).argv == ["a b", "$x", "", "'"]


@pytest.mark.parametrize("container", [{"command": None}, {"command": []}, {"command": None, "args": ["x"]}])
def test_a_container_without_a_command_is_refused(container: dict[str, Any]) -> None:
    """There is no image whose entry point could be used."""
    with pytest.raises(Rejected, match=r"container 'c' has no command: .* set `command` in the pod"):
        launched(**container)


def test_the_environment_is_the_containers_own() -> None:
    """With a default path, a home and the pod's name as the host's; nothing of the host's own environment."""
    assert dict(launched().environment) == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "HOSTNAME": "p"
    }  # fmt: skip


def test_a_variable_of_the_container_wins() -> None:
    """The last one where it is set twice; one without a value is empty."""
    env = [{"name": "HOME", "value": "/h"}, {"name": "X", "value": "1"}, {"name": "X", "value": "2"}, {"name": "Y"}]
    found = dict(launched(env=env).environment)

    assert (found["HOME"], found["X"], found["Y"]) == ("/h", "2", "")


@pytest.mark.parametrize("folder", [None, "/elsewhere"])
def test_without_mounts_the_program_is_run_directly(folder: str | None) -> None:
    """In its working directory, and nothing has to be written."""
    found = launched(workingDir=folder)

    assert (found.working_directory, found.files) == (folder, {})


def test_with_mounts_the_program_is_entered_through_a_table() -> None:
    """The runner makes the mounts and then becomes the program; its working directory may lie in one."""
    found = launched(MOUNT, args=["-x"], workingDir="/data/w")

    table = HERE.path / "mounts/c.json"
    assert found.argv == ["/py", "-I", "-S", str(runners.place(Path("/jobs"))), "enter", str(table), "--", "sh", "-x"]
    assert found.inside == found.argv[:7]
    assert found.working_directory is None
    assert msgspec.json.decode(found.files[table]) == {
        "mounts": [{"source": str(MOUNT.source), "target": "/data", "read_only": True}], "cwd": "/data/w"
    }  # fmt: skip


def test_the_interpreter_is_our_own_unless_it_is_said() -> None:
    """Jobs run on this host, where we run."""
    spec = msgspec.convert({"name": "c", "command": ["sh"]}, Container)

    assert HostProcesses().launch(spec, [MOUNT], pod=pod(), directory=HERE).argv[0] == sys.executable
