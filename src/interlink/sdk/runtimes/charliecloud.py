"""Charliecloud: root directories run without any privilege; images of registries are unpacked to one.

`ch-run` mounts only where the image has a directory already, and never read-only. So the runner's `enter` first puts
the volumes into a view of the image of its own, where missing directories are there, and `ch-run` runs from that.
A probe or a hook runs in a second instance, with the same mounts and the same /tmp; processes are the host's.

The image's entry point is not known to `ch-run`: a container needs a command. Of variables only those are in a command
line that `ch-run` would change or obey (PATH, TMPDIR, LD_…).
"""

import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from interlink.model.pods import Container, Pod
from interlink.sdk.batch import registries
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount, Pull
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import common, images
from interlink.sdk.runtimes.images import Image, ImageSettings

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BY_OPTION = ("PATH", "TMPDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT")
_OF_THE_HOST = ("/dev", "/proc", "/sys")
_TMP = "/tmp"  # noqa: S108 -- of the container
_PULL = 'export CH_IMAGE_STORAGE="$1.store" && ch-image pull -- "$2" >&2 && ch-convert -i ch-image -o dir "$2" "$1" >&2'
"""`$1` is the directory to make; what is beside it goes with it."""


_WRITABLE = ("--write", "-w", "--write-fake", "-W")


class Charliecloud:
    """program: ch-run's name or path on the machines of the jobs. python: the interpreter there."""

    def __init__(
        self,
        settings: ImageSettings,
        *,
        program: str = "ch-run",
        options: Sequence[str] = (),
        python: str = sys.executable,
        passed: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._program = program
        self._options = list(options)
        self._python = python
        self._passed = [*common.GPU_VARIABLES, *passed]

    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        if not container.command:
            raise Rejected(
                f"container {container.name!r} has no command: Charliecloud does not use the image's entry point; set"
                " `command` in the pod"
            )
        image = images.resolve(container.image, self._settings, pod.metadata.annotations or {})
        if not image.is_local and not image.location.startswith("docker://"):
            raise Rejected(f"image {image.name!r}: Charliecloud pulls docker:// only, not {image.location[:80]!r}")
        if registries.of_image(logins, image.location):
            raise Rejected(f"image {image.name!r}: Charliecloud cannot use imagePullSecrets here")
        scratch = directory.node_tmp / container.name
        table = directory.path / "mounts" / f"{container.name}.json"
        environment = {"PATH": _PATH, "HOME": "/", **common.variables(container, pod)}
        exact = [f"--set-env={name}={_unstripped(environment[name])}" for name in _BY_OPTION if name in environment]
        entrance = [self._python, "-I", "-S", str(directory.runner), "enter", str(table), "--"]
        run = [
            self._program,
            *self._options,
            "--no-passwd",
            "--env-no-expand",
            *exact,
            *([f"--cd={container.working_dir}"] if container.working_dir else []),
            image.location,
        ]
        inside = [*entrance, *run, "--"]
        return Launch(
            argv=[*inside, *container.command, *(container.args or [])],
            inside=inside,
            environment=[
                *((k, v) for k, v in environment.items() if k not in _BY_OPTION[1:]),
                ("TMPDIR", str(scratch)),
            ],
            program_at=len(entrance),
            image_at=None if image.is_local else len(entrance) + len(run) - 1,
            pull=None if image.is_local else self._pull(image, container),
            passed={"USER": "USER"} | {name: name for name in self._passed},
            files={table: _table(mounts, scratch, root_word=len(run) - 1)},
            scratch=[scratch],
            enforced=_enforced(self._options),
        )

    def _pull(self, image: Image, container: Container) -> Pull:
        """An unpacked image is not replaced while jobs may run from it, so `Always` means what IfNotPresent does."""
        always = container.image_pull_policy != "Never"
        return Pull(
            argv=["sh", "-c", _PULL, "sh", "{target}", image.location.removeprefix("docker://")],
            folder=self._settings.folder,
            key=image.key(".dir"),
            policy="IfNotPresent" if always else "Never",
            max_age_s=self._settings.max_age_s,
            passed={name: name for name in common.OF_THE_MACHINE},
        )


def _enforced(options: Sequence[str]) -> list[str]:
    """An image is read-only unless an option says otherwise, and `ch-run` lets no program gain privileges."""
    read_only = [] if common.has_any(options, _WRITABLE) else ["readOnlyRootFilesystem"]
    return [*read_only, "allowPrivilegeEscalation"]


def _unstripped(value: str) -> str:
    """`ch-run` takes quotes off a value that is quoted as a whole."""
    return f"'{value}'" if value.startswith("'") and value.endswith("'") else value


def _table(mounts: Sequence[Mount], scratch: Path, *, root_word: int) -> bytes:
    """Targets lie below the image's root, which is a word of the command, except for what `ch-run` takes from the host:
    /dev, /proc, /sys, and as /tmp the directory that TMPDIR names."""
    rows = [_row(mount, scratch) for mount in mounts]
    return msgspec.json.encode({"mounts": rows, "root_word": root_word})


def _row(mount: Mount, scratch: Path) -> dict[str, object]:
    target = PurePosixPath(mount.target)
    row: dict[str, object] = {"source": str(mount.source), "target": str(target), "read_only": mount.read_only}
    if target.is_relative_to(_TMP):
        return row | {"target": str(scratch / target.relative_to(_TMP))}
    is_in_image = not any(target.is_relative_to(top) for top in _OF_THE_HOST)
    return row | ({"is_in_root": True} if is_in_image else {})
