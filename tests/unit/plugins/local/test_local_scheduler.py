"""Processes of a host as jobs: what is signalled is a runner, and nothing else."""

import fcntl
import os
import struct
from pathlib import Path

import pytest

from interlink.model.ids import PodUID, Tag
from interlink.plugins.local.scheduler import HostScheduler
from interlink.sdk.batch.jobdir import JobDirectory


async def test_a_runner_that_has_no_number_here_is_not_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel calls the holder of a lock 0 in another PID namespace and -1 where a file holds it: to kill, that is
    the plugin's own group, and every process. The job looks for the mark by itself."""
    signalled: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process_id, _: signalled.append(process_id))
    directory = JobDirectory(tmp_path / "uid-1")
    directory.mark_cancelled(0)
    with (directory.path / "runner.lock").open("a+") as lock:
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))

        await HostScheduler(tmp_path, max_pods=1).cancel(Tag("c", PodUID("uid-1"), 0), directory)

    assert signalled == []
