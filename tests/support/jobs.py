"""What really runs: looked up in the job directories and the process table, not asked of the programs under test."""

import contextlib
import os
import signal
from pathlib import Path

from interlink.sdk.batch.jobdir import JobDirectory


def living_jobs(folder: Path) -> list[str]:
    """The pod UIDs whose runner lives."""
    directories = [JobDirectory(path) for path in folder.iterdir()] if folder.exists() else []
    return [str(directory.pod_uid) for directory in directories if directory.runner_process() is not None]


def end_jobs(folder: Path) -> None:
    """Nothing of a test outlives it: ask every runner to stop at once."""
    for path in folder.iterdir() if folder.exists() else ():
        directory = JobDirectory(path)
        process_id = directory.runner_process()
        if process_id is not None:
            directory.mark_cancelled(grace_s=0)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGTERM)
