"""What really runs: looked up in the job directories and the process table, not asked of the programs under test."""

import contextlib
import os
import signal
from pathlib import Path

from interlink.sdk.batch import jobdir


def living_jobs(folder: Path) -> list[str]:
    """The pod UIDs whose runner lives."""
    directories = jobdir.below(folder) if folder.exists() else ()
    return [str(directory.pod_uid) for directory in directories if directory.runner_process() is not None]


def end_jobs(folder: Path) -> None:
    """Nothing of a test outlives it: ask every runner to stop at once."""
    for directory in jobdir.below(folder) if folder.exists() else ():
        process_id = directory.runner_process()
        if process_id is not None:
            directory.mark_cancelled(grace_s=0)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGTERM)
