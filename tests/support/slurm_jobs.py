"""What Slurm itself says of a pod's jobs, and what the pod's job left in its directory."""

import json
from pathlib import Path

from interlink.testing.slurm import SlurmSite

FLAGS = "slurm-job.vk.io/flags"
PRE_EXEC = "slurm-job.vk.io/pre-exec"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")


def submitted(site: SlurmSite, pod_uid: str) -> set[str]:
    """The ids of all jobs that the pod ever had, as far as the controller and accounting know."""
    lines = site.run("squeue", "-ho", "%A %j", "--states=all").splitlines()
    if site.has_accounting:
        lines += site.run("sacct", "-XPn", "--allusers", "--delimiter= ", "-o", "JobIDRaw,JobName").splitlines()
    return {line.split()[0] for line in lines if pod_uid in line}


def living(site: SlurmSite, pod_uid: str) -> list[str]:
    """The ids of the pod's jobs that are in the queue and have not ended."""
    lines = site.run("squeue", "-ho", "%A %T %j", "--states=all").splitlines()
    return [line.split()[0] for line in lines if pod_uid in line and line.split()[1] not in ENDED]


def has_ended(site: SlurmSite, job_id: str) -> bool:
    return site.state(job_id) in ("", *ENDED)


def lose_end(directory: Path) -> None:
    """As if the runner had been killed before it could write how its containers ended."""
    file = directory / "state.json"
    document = json.loads(file.read_text()) | {"phase": "running"}
    for container in document["containers"]:
        container["state"] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    file.write_text(json.dumps(document))
