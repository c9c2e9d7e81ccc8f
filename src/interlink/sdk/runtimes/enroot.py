"""Enroot: images of registries as squashed files, which it starts directly where it has the programs for that.

A container's command replaces the image's own start script. A probe or a hook runs in a second instance of the image.
Enroot keeps variables as lines of a file: one whose value has several lines is refused. Values are taken by Enroot from
its own environment and are in no command line, except those of variables that Enroot itself would obey.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from interlink.model.pods import Container, Pod
from interlink.sdk.batch import registries
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount, Pull
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import common, images
from interlink.sdk.runtimes.images import Image, ImageSettings

_OBEYED = re.compile(r"PATH|HOME|SHELL|SHELLOPTS|BASH.*|ENV|IFS|TMPDIR|LD_.*|XDG_.*|ENROOT_.*")
MOUNTS = "slurm-job.vk.io/enroot-mounts"
OPTIONS = "slurm-job.vk.io/enroot-options"
_WITH_VALUE = {"-c", "--conf", "-e", "--env", "--rc", "-m", "--mount"}


class Enroot:
    def __init__(
        self,
        settings: ImageSettings,
        *,
        program: str = "enroot",
        options: Sequence[str] = (),
        passed: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._program = program
        self._options = list(options)
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
        annotations = pod.metadata.annotations or {}
        image = images.resolve(container.image, self._settings, annotations)
        if container.working_dir and not container.command:
            raise Rejected(f"container {container.name!r}: Enroot needs a `command` where there is a workingDir")
        environment, notes = common.split(common.variables(container, pod))
        _check_lines(environment, container)
        obeyed = {key for key in environment if _OBEYED.fullmatch(key)}
        script = directory.path / "mounts" / f"{container.name}.rc"
        scratch = directory.node_tmp / container.name
        has_tmp = common.mounts_at(mounts, "/tmp")  # noqa: S108 -- of the container
        bound = [*([] if has_tmp else [Mount(source=scratch, target="/tmp")]), *mounts]  # noqa: S108 -- as above
        options = [
            *self._options,
            *common.annotated(annotations, (MOUNTS, OPTIONS), with_value=_WITH_VALUE),
            *(f"--mount={_mount(mount)}" for mount in common.paths(bound, forbidden=": \t\\$")),
            *(f"--env={key}={value}" if key in obeyed else f"--env={key}" for key, value in environment.items()),
            *(f"--env={key}" for key in self._passed if key not in environment),
        ]
        start = [self._program, "start", *options]
        # Both command lines are equally long up to the image, which the runner puts in.
        with_own = [*start, f"--rc={script}", image.location]
        as_image = [*start, "--", image.location]
        command = [*(container.command or []), *(container.args or [])]
        return Launch(
            argv=[*(with_own if container.command else as_image), *command],
            inside=with_own,
            environment=[item for item in environment.items() if item[0] not in obeyed],
            program_at=0,
            image_at=None if image.is_local else len(with_own) - 1,
            pull=None if image.is_local else self._pull(image, container, directory, logins),
            passed={
                key: key for key in (*common.OF_THE_MACHINE, *self._passed) if key not in environment or key in obeyed
            },
            files={script: _script(container.working_dir)} | self._credentials(container, directory, logins),
            scratch=[] if has_tmp else [scratch],
            notes=notes,
        )

    def _pull(self, image: Image, container: Container, directory: JobDirectory, logins: Sequence[Login]) -> Pull:
        login = next(iter(registries.of_image(logins, image.location)), None)
        folder = _credentials_folder(container, directory)
        return Pull(
            argv=[self._program, "import", "--output", "{target}", _address(image)],
            folder=self._settings.folder,
            key=image.key(".sqsh", f"{login.username}\0{login.password}" if login else ""),
            policy=container.image_pull_policy or "IfNotPresent",
            max_age_s=self._settings.max_age_s,
            environment=[("ENROOT_CONFIG_PATH", str(folder))] if login else [],
            passed={name: name for name in common.OF_THE_MACHINE},
        )

    def _credentials(self, container: Container, directory: JobDirectory, logins: Sequence[Login]) -> dict[Path, bytes]:
        if not logins:
            return {}
        return {_credentials_folder(container, directory) / ".credentials": _netrc(logins)}


def _credentials_folder(container: Container, directory: JobDirectory) -> Path:
    return directory.env / f"{container.name}.enroot"


def _netrc(logins: Sequence[Login]) -> bytes:
    hub = {"index.docker.io": "auth.docker.io", "docker.io": "auth.docker.io"}
    rows = []
    for login in logins:
        if any(character.isspace() for character in login.username + login.password):
            raise Rejected(f"imagePullSecrets: Enroot cannot use the login for {login.registry}: it holds blanks")
        host = login.registry.split("/", 1)[0]
        rows.append(f"machine {hub.get(host, host)} login {login.username} password {login.password}\n")
    return "".join(rows).encode()


def _address(image: Image) -> str:
    """Enroot parts the registry from the image's name by `#`."""
    scheme, _, rest = image.location.partition("://")
    if scheme != "docker":
        raise Rejected(f"image {image.name!r}: Enroot pulls docker:// only, not {image.location[:80]!r}")
    host, slash, name = rest.partition("/")
    is_registry = slash and (any(mark in host for mark in ".:") or host == "localhost")
    return f"docker://{host}#{name}" if is_registry else image.location


def _check_lines(environment: Mapping[str, str], container: Container) -> None:
    for name, value in environment.items():
        if "\n" in value:
            raise Rejected(f"container {container.name!r}: Enroot cannot pass {name}: its value has several lines")


def _mount(mount: Mount) -> str:
    """A target that is missing is made; its kind is not known here, so Enroot is to look."""
    kind = "x-create=auto"
    return f"{mount.source}:{mount.target}:none:{kind},rbind{',ro' if mount.read_only else ''}"


def _script(working_directory: str | None) -> bytes:
    enter = f"cd {shlex.quote(working_directory)} || exit 126\n" if working_directory else ""
    return f'{enter}exec "$@"\n'.encode()
