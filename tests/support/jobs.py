"""What really runs: looked up in the job directories and the process table, not asked of the programs under test."""

from pathlib import Path

from interlink.sdk.batch.jobdir import JobDirectory


def living_jobs(folder: Path) -> list[str]:
    """The pod UIDs whose runner lives."""
    directories = [JobDirectory(path) for path in folder.iterdir()] if folder.exists() else []
    return [str(directory.pod_uid) for directory in directories if directory.runner_process() is not None]
