"""No container runtime: programs of the host, which see the pod's volumes at their mount paths.

The image is not used, so a container needs a command. The environment is the container's own and nothing of the
host's, with a default PATH.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlink.model.pods import Container, Pod
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import common

_DEFAULTS = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/"}


class HostProcesses:
    def __init__(self, python: str = sys.executable, *, passed: Sequence[str] = ()) -> None:
        self._python = python
        self._passed = {name: name for name in (*common.GPU_VARIABLES, *passed)}

    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        command = [*(container.command or []), *(container.args or [])]
        if not container.command:
            raise Rejected(
                f"container {container.name!r} has no command: this site runs programs of the host and does not use"
                " the image's entry point; set `command` in the pod"
            )
        environment = _environment(container, pod.metadata.name)
        if not mounts:
            return Launch(
                argv=command,
                environment=environment,
                working_directory=container.working_dir,
                passed=self._passed,
            )
        table = directory.path / "mounts" / f"{container.name}.json"
        inside = [self._python, "-I", "-S", str(directory.runner), "enter", str(table), "--"]
        return Launch(
            argv=[*inside, *command],
            environment=environment,
            inside=inside,
            passed=self._passed,
            files={table: _mount_table(mounts, container.working_dir)},
        )


def _environment(container: Container, pod_name: str) -> list[tuple[str, str]]:
    own = {variable.name: variable.value or "" for variable in container.env or []}
    return list({**_DEFAULTS, "HOSTNAME": pod_name, **own}.items())


def _mount_table(mounts: Sequence[Mount], working_directory: str | None) -> bytes:
    """The working directory may lie in a mount, so it is entered after them."""
    rows = [{"source": str(m.source), "target": str(Path(m.target)), "read_only": m.read_only} for m in mounts]
    return msgspec.json.encode({"mounts": rows, "cwd": working_directory})
