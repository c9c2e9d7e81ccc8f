"""Podman, rootless: images of registries, kept in Podman's own storage on each machine.

A container has a name, so that a probe or a hook runs in the very container. Values of variables are taken by Podman
from its own environment and are in no command line; those of variables that Podman itself would obey come from a file.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from interlink.model.pods import Container, Pod
from interlink.sdk.batch import registries
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.runtime import Launch, Login, Mount, Pull
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import common, images, mpi
from interlink.sdk.runtimes.images import ImageSettings

DEFAULT_OPTIONS = ("--cgroups=disabled",)
"""What the container uses counts for the job whose control group it is started in."""
_OBEYED = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|SHELL|BASH.*|ENV|IFS|LD_.*|XDG_.*|DBUS_.*|SSL_.*|GO.*|CONTAINERS?_.*|PODMAN_.*|"
    r"STORAGE_.*|REGISTRY_.*|BUILDAH_.*|DOCKER_.*|.*_(proxy|PROXY)|NOTIFY_SOCKET|LISTEN_.*"
)
_ENFORCED = {
    ("readOnlyRootFilesystem", True): "--read-only",
    ("allowPrivilegeEscalation", False): "--security-opt=no-new-privileges",
}
"""Settings of a security context that are an option."""
_PULL = 'target=$1 podman=$2 image=$3; shift 3; "$podman" image exists "$image" || {} && : > "$target"'
_FETCH = '"$podman" pull --quiet "$@" "$image" >&2'
_FAIL = '{ echo "the image is not on this machine, and may not be pulled" >&2; false; }'


class Podman:
    def __init__(
        self,
        settings: ImageSettings,
        *,
        program: str = "podman",
        options: Sequence[str] = DEFAULT_OPTIONS,
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
        image = images.resolve(container.image, self._settings, pod.metadata.annotations or {})
        if image.is_local:
            raise Rejected(f"image {image.name!r}: Podman runs images of registries, not {image.location[:80]!r}")
        if mpi.is_wanted(container, pod):
            raise Rejected(f"annotation {mpi.FLAGS}: Podman runs a container once, not as the ranks of an MPI program")
        name = f"interlink-{directory.pod_uid}-{container.name}"
        environment = common.variables(container, pod)
        obeyed = {key: value for key, value in environment.items() if _OBEYED.fullmatch(key)}
        others = {key: value for key, value in environment.items() if key not in obeyed}
        env_file = directory.env / f"{container.name}.podman"
        location = image.location.removeprefix("docker://")
        security = container.security_context or {}
        enforced = {name: option for (name, value), option in _ENFORCED.items() if security.get(name) is value}
        options = [
            *self._options,
            *enforced.values(),
            "--network=host",
            "--http-proxy=false",
            "--pull=never",
            *(f"--device={device}" for device in _devices(container)),
            *(f"--mount={_mount(mount)}" for mount in common.paths(mounts, forbidden=',="')),
            *([f"--workdir={container.working_dir}"] if container.working_dir else []),
            *([f"--env-file={env_file}"] if obeyed else []),
            *(f"--env={key}" for key in others),
            *(f"--env={key}" for key in self._passed if key not in environment),
            *([f"--entrypoint={_list(container.command)}"] if container.command else []),
        ]
        auth = directory.env / f"{container.name}.registries.json"
        has_login = bool(registries.of_image(logins, image.location))
        return Launch(
            argv=[
                self._program,
                "run",
                "--rm",
                "--replace",
                f"--name={name}",
                *options,
                location,
                *(container.args or []),
            ],
            inside=[self._program, "exec", name],
            environment=list(others.items()),
            program_at=0,
            pull=self._pull(location, container, auth if has_login else None),
            passed={key: key for key in (*common.OF_THE_MACHINE, *self._passed) if key not in others},
            files=({env_file: _lines(obeyed, container)} if obeyed else {})
            | ({auth: registries.docker_config(logins)} if has_login else {}),
            enforced=list(enforced),
        )

    def _pull(self, location: str, container: Container, auth: Path | None) -> Pull:
        """Asked for by every job, because the storage is the machine's; what is left in the folder is an empty file."""
        script = _PULL.format(_FAIL if container.image_pull_policy == "Never" else _FETCH)
        auth_option = [f"--authfile={auth}"] if auth else []
        return Pull(
            argv=["sh", "-c", script, "sh", "{target}", self._program, location, *auth_option],
            folder=self._settings.folder,
            key="podman",
            policy="Always",
            max_age_s=0.0,
            passed={name: name for name in common.OF_THE_MACHINE},
        )


def _devices(container: Container) -> list[str]:
    """As the container device interface names them; which of them are the job's, its control group knows."""
    known = (("nvidia.com/gpu", "nvidia.com/gpu=all"), ("amd.com/gpu", "/dev/kfd"), ("amd.com/gpu", "/dev/dri"))
    return [device for resource, device in known if common.wants(container, resource)]


def _mount(mount: Mount) -> str:
    return f"type=bind,source={mount.source},destination={mount.target}{',readonly' if mount.read_only else ''}"


def _lines(environment: Mapping[str, str], container: Container) -> bytes:
    for name, value in environment.items():
        if "\n" in value:
            raise Rejected(f"container {container.name!r}: Podman cannot pass {name}: its value has several lines")
    return "".join(f"{name}={value}\n" for name, value in environment.items()).encode()


def _list(words: Sequence[str]) -> str:
    return msgspec.json.encode(list(words)).decode()
