"""A pod's volumes as files and directories of the host; pure."""

import base64
import binascii
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Raw

from interlink.model.pods import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    KeyToPath,
    ProjectedVolumeSource,
    SecretVolumeSource,
    Volume,
)
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.errors import Rejected
from interlink.wire import codec
from interlink.wire.messages import RetrievedPodData

_DEFAULT_MODE = 0o644


class File(msgspec.Struct, frozen=True):
    path: Path
    content: bytes
    mode: int


class MountedVolume(msgspec.Struct, frozen=True):
    """`source` is what containers mount; `directories` and `files` have to be made first.

    note: what the pod asks for and does not get.
    """

    source: Path
    directories: list[Path] = []
    files: list[File] = []
    is_read_only: bool = False
    note: str = ""


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _KeyedData(msgspec.Struct, frozen=True, rename="camel"):
    """A ConfigMap or a Secret as it travels."""

    metadata: _Meta = _Meta()
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class _Projection(msgspec.Struct, frozen=True):
    """Which keys of which object a volume shows."""

    kind: str
    name: str
    contents: dict[str, bytes] | None
    items: list[KeyToPath] | None = None
    default_mode: int | None = None
    is_optional: bool = False


class Volumes:
    """The data that came with one create request, by volume."""

    def __init__(self, request: RetrievedPodData) -> None:
        containers = request.container or []
        self._config_maps = _by_name(raw for c in containers for raw in c.config_maps or [])
        self._secrets = _by_name(raw for c in containers for raw in c.secrets or [])
        self._projected = _by_name(raw for c in containers for raw in c.projected_volume_maps or [])

    def mounted(self, volume: Volume, directory: JobDirectory) -> MountedVolume:
        """Raises Rejected for a volume that cannot be had here."""
        if volume.empty_dir is not None:
            return _empty(volume.empty_dir, volume.name, directory)
        if volume.host_path is not None:
            return MountedVolume(source=Path(volume.host_path.path))
        projection = self._projection(volume)
        secrecy = "config" if projection.kind == "ConfigMap" else "secret"
        path = directory.volume(secrecy, volume.name)
        files = _files(projection, path, volume.name)
        return MountedVolume(source=path, directories=[path], files=files, is_read_only=True)

    def _projection(self, volume: Volume) -> _Projection:
        if (config_map := volume.config_map) is not None:
            contents = _contents(self._config_maps, config_map.name, is_secret=False)
            return _object("ConfigMap", config_map.name, contents, config_map)
        if (secret := volume.secret) is not None:
            contents = _contents(self._secrets, secret.secret_name, is_secret=True)
            return _object("Secret", secret.secret_name, contents, secret)
        if volume.projected is not None:
            contents = _contents(self._projected, volume.name, is_secret=False)
            modes = _modes(volume.projected)
            return _Projection(
                kind="projected data",
                name=volume.name,
                contents=contents,
                items=[KeyToPath(key=path, path=path, mode=modes.get(path)) for path in contents or {}],
                default_mode=volume.projected.default_mode,
            )
        raise Rejected(
            f"volume {volume.name!r} is of a kind that this site cannot mount; use configMap, secret, projected,"
            " emptyDir or hostPath"
        )


def _empty(source: EmptyDirVolumeSource, name: str, directory: JobDirectory) -> MountedVolume:
    """In memory where the pod says so: there it counts as memory of the job."""
    note = f"the sizeLimit of volume {name!r} is not watched" if source.size_limit else ""
    match source.medium or "":
        case "":
            path = directory.volume("empty", name)
            return MountedVolume(source=path, directories=[path], note=note)
        case "Memory":
            path = directory.node_memory / name
            return MountedVolume(source=path, directories=[path], note=note)
        case other:
            raise Rejected(
                f"volume {name!r}: the medium {other[:60]!r} is not to be had here; leave it out or use Memory"
            )


def _object(
    kind: str, name: str, contents: dict[str, bytes] | None, source: ConfigMapVolumeSource | SecretVolumeSource
) -> _Projection:
    return _Projection(
        kind=kind,
        name=name,
        contents=contents,
        items=source.items,
        default_mode=source.default_mode,
        is_optional=bool(source.optional),
    )


def _modes(projected: ProjectedVolumeSource) -> dict[str, int | None]:
    """By path; a projected volume comes as files that are already put together, only their modes are still to be
    read from the pod."""
    found: dict[str, int | None] = {}
    for source in projected.sources or []:
        for part in (source.config_map, source.secret, source.downward_api):
            found |= {item.path: item.mode for item in (part.items if part else None) or []}
    return found


def _by_name(objects: Iterable[Raw]) -> dict[str, _KeyedData]:
    decoded = (codec.decode(bytes(raw), _KeyedData) for raw in objects)
    return {item.metadata.name: item for item in decoded}


def _contents(objects: Mapping[str, _KeyedData], name: str, *, is_secret: bool) -> dict[str, bytes] | None:
    """The bytes under each key, or None when the object did not come."""
    item = objects.get(name)
    if item is None:
        return None
    texts = {} if is_secret else {key: text.encode("utf-8", "surrogatepass") for key, text in (item.data or {}).items()}
    encoded = (item.data if is_secret else item.binary_data) or {}
    return texts | {key: _decoded(text, f"{name}[{key!r}]") for key, text in encoded.items()}


def _decoded(text: str, place: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Rejected(f"{place} is not valid base64") from error


def _files(projection: _Projection, root: Path, volume: str) -> list[File]:
    contents = projection.contents
    if contents is None:
        if projection.is_optional:
            return []
        raise Rejected(f"volume {volume!r}: the {projection.kind} {projection.name!r} did not come with the pod")
    mode = _DEFAULT_MODE if projection.default_mode is None else projection.default_mode
    items = projection.items or [KeyToPath(key=key, path=key) for key in contents]
    missing = [item.key for item in items if item.key not in contents]
    if missing and not projection.is_optional:
        raise Rejected(f"volume {volume!r}: the {projection.kind} {projection.name!r} has no key {missing[0]!r}")
    _check_modes(mode, items, volume)
    _check_apart([item.path for item in items], volume)
    return [
        File(
            path=root / relative_path(item.path, volume),
            content=contents[item.key],
            mode=mode if item.mode is None else item.mode,
        )
        for item in items
        if item.key in contents
    ]


def _check_modes(default: int, items: Iterable[KeyToPath], volume: str) -> None:
    for mode in (default, *(item.mode for item in items)):
        if mode is not None and not 0 <= mode <= 0o777:
            raise Rejected(f"volume {volume!r}: the mode {mode} must be from 0 to 0777")


def _check_apart(paths: Iterable[str], volume: str) -> None:
    """No two files in one place, and no file where another one needs a directory."""
    seen = sorted(PurePosixPath(path) for path in paths)
    for first, second in itertools.pairwise(seen):
        if first == second or first in second.parents:
            raise Rejected(f"volume {volume!r}: the paths {str(first)!r} and {str(second)!r} are in each other's way")


def relative_path(path: str, place: str) -> PurePosixPath:
    """A path below the volume's root. Raises Rejected for one that leads out of it."""
    relative = PurePosixPath(path)
    is_inside = not relative.is_absolute() and ".." not in relative.parts and relative.parts
    if not is_inside or "\0" in path or any(len(part.encode()) > 255 for part in relative.parts):
        raise Rejected(
            f"volume {place!r}: the path {path[:80]!r} must be relative and must not contain '..'; no part of it may"
            " exceed 255 bytes"
        )
    return relative
