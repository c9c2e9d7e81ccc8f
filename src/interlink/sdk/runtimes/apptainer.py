"""Apptainer, and SingularityCE: images of registries as SIF files, SIF files, root directories; no root needed.

Variables travel in the runtime's own environment, each behind a prefix, so that they are in no command line and the
runtime itself does not see them; values are never evaluated. A probe or a hook runs in a second instance of the image,
which has the same mounts, the same /tmp and the same environment, and its own processes.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from interlink.model.pods import Container, Pod
from interlink.sdk.batch import registries
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount, Pull
from interlink.sdk.runtimes import common, images, mpi
from interlink.sdk.runtimes.images import Image, ImageSettings

MOUNTS = "slurm-job.vk.io/singularity-mounts"
OPTIONS = "slurm-job.vk.io/singularity-options"
DEFAULT_OPTIONS = ("--containall",)
_WITH_VALUE = {
    "-B", "--bind", "--mount", "-H", "--home", "-S", "--scratch", "-W", "--workdir", "-o", "--overlay", "--env",
    "--env-file", "--pwd", "--cwd", "--app", "--add-caps", "--drop-caps", "--security", "--network", "--network-args",
    "--dns", "--hostname", "--fusemount", "--cpus", "--cpu-shares", "--cpuset-cpus", "--memory", "--memory-swap",
    "--pids-limit", "--device", "--shm-size",
}  # fmt: skip


_WRITABLE = ("--writable", "-w", "--writable-tmpfs", "--overlay", "-o")


class Apptainer:
    """program: its name or path on the machines of the jobs. options: of every container."""

    def __init__(
        self,
        settings: ImageSettings,
        *,
        program: str = "apptainer",
        options: Sequence[str] = DEFAULT_OPTIONS,
        passed: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._program = program
        self._options = list(options)
        self._passed = [*common.GPU_VARIABLES, *passed]
        self._family = "SINGULARITY" if "singularity" in PurePosixPath(program).name else "APPTAINER"

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
        environment, notes = common.split(common.variables(container, pod))
        home = environment.pop("HOME", "")
        scratch = directory.node_tmp / container.name
        has_tmp = common.mounts_at(mounts, "/tmp")  # noqa: S108 -- of the container
        bound = [m for m in mounts if m.target != _TERMINATION_LOG]
        if not has_tmp:
            bound.insert(0, Mount(source=scratch, target="/tmp"))  # noqa: S108 -- as above
        options = [
            *self._options,
            *([] if mpi.is_wanted(container, pod) else ["--cleanenv"]),  # mpiexec tells ranks by variables who they are
            *_gpus(container, self._options),
            *common.annotated(annotations, (MOUNTS, OPTIONS), with_value=_WITH_VALUE),
            *(["--no-home", "--home", home] if home else []),
            *(word for mount in common.paths(bound, forbidden=",:\\") for word in ("--bind", _bind(mount))),
            *(["--pwd", container.working_dir] if container.working_dir else []),
        ]
        image_at = 3 + len(options)
        command = [*(container.command or []), *(container.args or [])]
        return Launch(
            argv=[*self._start("exec" if container.command else "run"), *options, image.location, *command],
            inside=[*self._start("exec"), *options, image.location],
            environment=[
                (f"{self._family}_NO_EVAL", "1"),
                *((f"{self._family}ENV_{name}", value) for name, value in environment.items()),
            ],
            program_at=0,
            image_at=None if image.is_local else image_at,
            pull=None if image.is_local else self._pull(image, container, directory, logins),
            passed=self._of_the_machine() | {name: f"{self._family}ENV_{name}" for name in self._passed},
            files={} if image.is_local else self._files(container, directory, logins),
            scratch=[] if has_tmp else [scratch],
            notes=notes,
            enforced=_enforced(options),
        )

    def _start(self, verb: str) -> list[str]:
        """Only errors of the runtime itself come between what the container prints."""
        return [self._program, "--silent", verb]

    def _of_the_machine(self) -> dict[str, str]:
        own = [f"{self._family}_{name}" for name in ("CACHEDIR", "TMPDIR", "CONFIGDIR")]
        return {name: name for name in (*common.OF_THE_MACHINE, *own)}

    def _pull(self, image: Image, container: Container, directory: JobDirectory, logins: Sequence[Login]) -> Pull:
        """Without the runtime's own cache, which several jobs at once can spoil."""
        login = next(iter(registries.of_image(logins, image.location)), None)
        environment = []
        if login is not None and self._family == "APPTAINER":
            environment = [("APPTAINER_AUTH_FILE", str(_auth_file(container, directory)))]
        elif login is not None:
            environment = [
                ("SINGULARITY_DOCKER_USERNAME", login.username),
                ("SINGULARITY_DOCKER_PASSWORD", login.password),
            ]
        return Pull(
            argv=[self._program, "pull", "--disable-cache", "--force", "{target}", image.location],
            folder=self._settings.folder,
            key=image.key(".sif", f"{login.username}\0{login.password}" if login else ""),
            policy=container.image_pull_policy or "IfNotPresent",
            max_age_s=self._settings.max_age_s,
            environment=environment,
            passed=self._of_the_machine(),
        )

    def _files(self, container: Container, directory: JobDirectory, logins: Sequence[Login]) -> dict[Path, bytes]:
        if not logins or self._family != "APPTAINER":
            return {}
        return {_auth_file(container, directory): registries.docker_config(logins)}


_TERMINATION_LOG = "/dev/termination-log"
"""A contained /dev takes no file: a message at the usual path is lost."""


def _auth_file(container: Container, directory: JobDirectory) -> Path:
    return directory.env / f"{container.name}.registries.json"


def _enforced(options: Sequence[str]) -> list[str]:
    """An image is read-only, and no program in it gains privileges, unless an option says otherwise."""
    read_only = [] if common.has_any(options, _WRITABLE) else ["readOnlyRootFilesystem"]
    return read_only if "--allow-setuid" in options else [*read_only, "allowPrivilegeEscalation"]


def _gpus(container: Container, options: Sequence[str]) -> list[str]:
    switches = (("nvidia.com/gpu", "--nv", "--nvccli"), ("amd.com/gpu", "--rocm", "--rocm"))
    return [
        switch
        for resource, switch, other in switches
        if common.wants(container, resource) and switch not in options and other not in options
    ]


def _bind(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}"
