"""From a create request to a filled job directory: `plan` decides and is pure, `write` makes it so."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw

from interlink.aio import files
from interlink.aio.beneath import Beneath
from interlink.model.ids import Tag
from interlink.model.pods import Container, Pod, VolumeMount
from interlink.sdk.batch import actions, registries, scripts, security, volumes
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.rotation import NO_LIMITS, LogLimits
from interlink.sdk.batch.runtime import Launch, Login, Mount, Pull, Runtime
from interlink.sdk.batch.volumes import File, MountedVolume, Volumes
from interlink.sdk.errors import Rejected
from interlink.wire.messages import Refresh, RetrievedContainer, RetrievedPodData

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TERMINATION_LOG = "/dev/termination-log"


class JobPlan(msgspec.Struct, frozen=True):
    """Everything that is to lie in a job directory before its runner starts."""

    spec: bytes
    files: list[File]
    directories: list[Path]
    notes: list[str] = []
    """What the pod asks for and does not get."""


def plan(
    request: RetrievedPodData,
    pod: Pod,
    *,
    tag: Tag,
    directory: JobDirectory,
    runtime: Runtime,
    user: int,
    variables: Sequence[str] | None = None,
    log_limits: LogLimits = NO_LIMITS,
) -> JobPlan:
    """user: whom the job will run as. variables: of the job, that a ready-made job script gets; None means all.

    Raises Rejected, naming the place, for a pod that cannot be run here.
    """
    _check_names("container", [c.name for c in (*(pod.spec.init_containers or []), *(pod.spec.containers or []))])
    _check_names("volume", [v.name for v in pod.spec.volumes or []])
    script = scripts.text(request)
    if script is not None:
        return _scripted(script, pod, tag=tag, directory=directory, variables=variables, log_limits=log_limits)
    mounted = _mounted_volumes(request, pod, directory)
    logins = registries.logins(request.pull_secrets or [])
    site = _Site(directory=directory, runtime=runtime, user=user)
    init = [_Prepared.of(c, mounted, pod, site, logins) for c in pod.spec.init_containers or []]
    main = [_Prepared.of(c, mounted, pod, site, logins) for c in pod.spec.containers or []]
    if not main:
        raise Rejected("the pod has no containers")
    directories = [
        *(path for volume in mounted.values() for path in volume.directories),
        *(path for container in (*init, *main) for path in container.directories),
    ]
    on_node = {
        str(top): [str(path.relative_to(top)) for path in directories if top in path.parents]
        for top in (directory.node_memory, directory.node_tmp)
    }
    on_node = {top: names for top, names in on_node.items() if names}
    notes = [
        *security.notes(pod.spec.security_context, user=user),
        *(volume.note for volume in mounted.values() if volume.note),
    ]
    more = {"node_directories": on_node, "notes": notes}
    return JobPlan(
        spec=_encoded(_spec(pod, tag, [c.entry for c in init], [c.entry for c in main], log_limits) | more),
        files=[
            *(file for volume in mounted.values() for file in volume.files),
            *(file for container in (*init, *main) for file in container.files),
        ],
        directories=[path for path in directories if directory.path in path.parents],
        notes=[*notes, *(note for container in (*init, *main) for note in container.notes)],
    )


def _scripted(
    script: str,
    pod: Pod,
    *,
    tag: Tag,
    directory: JobDirectory,
    variables: Sequence[str] | None,
    log_limits: LogLimits,
) -> JobPlan:
    """The script has everything that it needs: no volumes, no environment, no images of ours."""
    init, main = pod.spec.init_containers or [], pod.spec.containers or []
    spec = _spec(pod, tag, [scripts.shadow(c) for c in init], [scripts.shadow(c) for c in main], log_limits)
    spec |= {"script": scripts.program(script, directory, variables), "restart_policy": "Never"}
    return JobPlan(
        spec=_encoded(spec),
        files=scripts.files(script, directory),
        directories=[],
        notes=scripts.notes([*init, *main]),
    )


def _encoded(spec: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(spec))


def _check_names(kind: str, names: list[str]) -> None:
    """They become names of files: each is a DNS label, as Kubernetes has it, and none comes twice."""
    for name in names:
        if not _LABEL.fullmatch(name):
            raise Rejected(f"the {kind} name {name[:80]!r} is no DNS label (a-z, 0-9 and '-', at most 63)")
        if names.count(name) > 1:
            raise Rejected(f"there are several {kind}s of the name {name!r}")


def write(job: JobPlan, directory: JobDirectory, others: Mapping[Path, bytes] = MappingProxyType({})) -> None:
    """Idempotent; the specification is durable on return. Files are never readable by others while they are written."""
    place = Beneath(directory.path)
    for path in job.directories:
        place.make_directory(path)
    for file in job.files:
        place.write(file.path, file.content, mode=file.mode)
    files.write_together({directory.spec: job.spec, **others})


def refresh(message: Refresh, directory: JobDirectory) -> None:
    """Replace the files of projected volumes that are there; none is after a job's end. Raises Rejected, OSError."""
    container = RetrievedContainer(name="", projected_volume_maps=message.projectedvolumesmaps)
    data = Volumes(RetrievedPodData(pod=Raw(b"{}"), container=[container]))
    for volume in message.pod.spec.volumes or []:
        if volume.projected is not None:
            for file in data.mounted(volume, directory).files:
                _replace(Beneath(directory.path), file)


def _replace(place: Beneath, file: File) -> None:
    """At once, as whoever reads it must see the old content or the new; with the owner that it had."""
    try:
        with place.open(file.path) as present:
            content, owner = present.read(len(file.content) + 1), os.fstat(present.fileno()).st_uid
    except FileNotFoundError:
        return
    if content != file.content:
        place.write(file.path, file.content, mode=file.mode, owner=owner)


def _mounted_volumes(request: RetrievedPodData, pod: Pod, directory: JobDirectory) -> dict[str, MountedVolume]:
    containers = [*(pod.spec.init_containers or []), *(pod.spec.containers or [])]
    wanted = {mount.name for container in containers for mount in container.volume_mounts or []}
    data = Volumes(request)
    return {v.name: data.mounted(v, directory) for v in pod.spec.volumes or [] if v.name in wanted}


class _Site(msgspec.Struct, frozen=True):
    directory: JobDirectory
    runtime: Runtime
    user: int


class _Prepared(msgspec.Struct, frozen=True):
    """One container's entry in the specification and the files that it needs."""

    entry: dict[str, Any]
    files: list[File]
    directories: list[Path]

    @property
    def notes(self) -> list[str]:
        return [f"container {self.entry['name']}: {note}" for note in self.entry["notes"]]

    @staticmethod
    def of(
        container: Container, mounted: dict[str, MountedVolume], pod: Pod, site: _Site, logins: Sequence[Login]
    ) -> "_Prepared":
        security.check_user(pod, container, user=site.user)
        directory = site.directory
        mounts = [_mount(container, mount, mounted) for mount in container.volume_mounts or []]
        scratch = [volume.source for volume in mounted.values() if not volume.files and volume.directories]
        directories = [m.source for m in mounts if any(root in m.source.parents for root in scratch)]
        message = directory.path / "termination" / container.name
        target = container.termination_message_path or _TERMINATION_LOG
        if mounts or target != _TERMINATION_LOG:
            mounts.append(Mount(source=message, target=target))
        launch = site.runtime.launch(container, mounts, pod=pod, directory=directory, logins=logins)
        files = {directory.env / f"{container.name}.json": msgspec.json.encode(launch.environment)}
        if launch.pull is not None:
            files[directory.env / f"{container.name}.pull.json"] = msgspec.json.encode(launch.pull.environment)
        return _Prepared(
            entry=_entry(container, launch, message, user=site.user),
            files=[
                *(File(path=path, content=content, mode=0o600) for path, content in files.items()),
                File(path=message, content=b"", mode=0o600),
                *(File(path=path, content=content, mode=0o600) for path, content in launch.files.items()),
            ],
            directories=[*directories, *launch.scratch],
        )


def _entry(container: Container, launch: Launch, message: Path, *, user: int) -> dict[str, Any]:
    unenforced = security.notes(container.security_context, user=user, enforced=launch.enforced)
    return {
        "name": container.name,
        "image": container.image,
        "argv": launch.argv,
        "env_file": f"env/{container.name}.json",
        "cwd": launch.working_directory or "/",
        "sidecar": container.is_sidecar,
        "termination_message_path": str(message),
        "termination_message_policy": container.termination_message_policy or "File",
        "inside": launch.inside,
        "launcher": launch.launcher,
        "program_at": launch.program_at,
        "image_at": launch.image_at,
        "passed": launch.passed,
        "notes": [*launch.notes, *unenforced],
        "pull": _pull(container, launch.pull) if launch.pull else None,
    } | actions.of(container)


def _pull(container: Container, pull: Pull) -> dict[str, Any]:
    found = msgspec.structs.asdict(pull) | {"env_file": f"env/{container.name}.pull.json"}
    del found["environment"]
    return found


def _mount(container: Container, mount: VolumeMount, mounted: dict[str, MountedVolume]) -> Mount:
    volume = mounted.get(mount.name)
    if volume is None:
        raise Rejected(f"container {container.name!r} mounts {mount.name!r}, which is no volume of the pod")
    if not mount.mount_path.startswith("/"):
        raise Rejected(f"container {container.name!r}: the mount path {mount.mount_path!r} must be absolute")
    if mount.sub_path_expr:
        raise Rejected(f"container {container.name!r}: subPathExpr of {mount.name!r} has not been resolved")
    source = volume.source
    if mount.sub_path:
        source = source / volumes.relative_path(mount.sub_path, mount.name)
    return Mount(source=source, target=mount.mount_path, read_only=volume.is_read_only or bool(mount.read_only))


def _spec(
    pod: Pod, tag: Tag, init: list[dict[str, Any]], main: list[dict[str, Any]], log_limits: LogLimits
) -> dict[str, Any]:
    return {
        "tag": str(tag),
        "pod_uid": pod.uid,
        "namespace": pod.metadata.namespace,
        "name": pod.metadata.name,
        "attempt": tag.attempt,
        "restart_policy": pod.spec.restart_policy,
        "grace_s": pod.grace_s,
        "deadline_s": pod.spec.active_deadline_seconds,
        "log_max_bytes": log_limits.max_bytes,
        "log_max_files": log_limits.max_files,
        "init_containers": init,
        "containers": main,
    }
