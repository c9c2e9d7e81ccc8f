"""Ready-made job scripts of the existing contract: a script that comes with a pod and runs its containers; pure.

It runs once, in place of the containers' own commands, with `$workingPath` and `$SANDBOX` as the job's directory. There
it writes `run-<container>.out` and `run-<container>.status`, for an init container `init-<container>.…`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from interlink.model.pods import Container
from interlink.sdk.batch.jobdir import SCRIPT, JobDirectory
from interlink.sdk.batch.volumes import File
from interlink.sdk.errors import Rejected
from interlink.wire.messages import RetrievedPodData

_LONGEST_BYTES = 1024 * 1024


def text(request: RetrievedPodData) -> str | None:
    """The script; None where the containers' own commands run, as with a template that makes nothing for this pod.

    Raises Rejected for one that no shell can run.
    """
    script = request.job_script
    if script is msgspec.UNSET or not script.strip():
        return None
    if "\0" in script:
        raise Rejected("jobScript: it holds a zero byte, so it is no script")
    size_bytes = len(script.encode())
    if size_bytes > _LONGEST_BYTES:
        raise Rejected(f"jobScript: it has {size_bytes} bytes; at most {_LONGEST_BYTES} are taken")
    return script


def files(script: str, directory: JobDirectory) -> list[File]:
    """The script among the environments, because it may hold secrets, and those go when the job ends."""
    environment = [(name, str(directory.path)) for name in ("workingPath", "SANDBOX")]
    contents = {
        directory.env / SCRIPT: script.encode(),
        directory.env / f"{SCRIPT}.json": msgspec.json.encode(environment),
    }
    return [File(path=path, content=content, mode=0o600) for path, content in contents.items()]


def program(script: str, directory: JobDirectory, variables: Sequence[str] | None) -> dict[str, Any]:
    """The script as the runner's program. variables: of the job, that it gets; None means all."""
    return {
        "name": SCRIPT,
        "argv": [*_interpreter(script), str(directory.env / SCRIPT)],
        "program_at": 0,
        "cwd": str(directory.path),
        "stops_group": True,
        "has_job_environment": variables is None,
        "passed": {name: name for name in variables or []},
        "env_file": f"env/{SCRIPT}.json",
    }


def _interpreter(script: str) -> list[str]:
    """As the kernel reads the first line, but also where files cannot be executed; without one it is bash."""
    first, _, _ = script.partition("\n")
    return first[2:].strip().split(None, 1) if first.startswith("#!") and first[2:].strip() else ["bash"]


def notes(containers: Iterable[Container]) -> list[str]:
    """What the pod asks for and does not get."""
    names = [
        c.name
        for c in containers
        if c.startup_probe or c.readiness_probe or c.liveness_probe or c.lifecycle is not None
    ]
    return [f"probes and hooks of {', '.join(names)}: a job script runs the containers"] if names else []


def shadow(container: Container) -> dict[str, Any]:
    """A container as the runner knows it that does not run it."""
    return {"name": container.name, "image": container.image, "sidecar": container.is_sidecar}
