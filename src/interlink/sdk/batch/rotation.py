"""A run's log that is cut by size: `N.log` is being written, `N.log.1` was before it, as far back as files are kept."""

import contextlib
import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from interlink.aio.beneath import Beneath
from interlink.model import quantities
from interlink.model.errors import ModelError
from interlink.sdk.batch.jobdir import JobDirectory

_LEAST_BYTES = 1024
_MOST_FILES = 1000


class LogLimits(msgspec.Struct, frozen=True):
    """max_bytes: None means that logs are not cut."""

    max_bytes: int | None = None
    max_files: int = 5


NO_LIMITS = LogLimits()


def limits(size: str | int | None, files: int) -> LogLimits:
    """size: a Kubernetes quantity. Raises ValueError that begins with the key."""
    if not 1 <= files <= _MOST_FILES:
        raise ValueError(f"ContainerLogMaxFiles: must be between 1 and {_MOST_FILES}, not {files}")
    if size in (None, ""):
        return LogLimits(max_files=files)
    try:
        max_bytes = quantities.ceiling(str(size))
    except ModelError as error:
        raise ValueError(f"ContainerLogMaxSize: {size!r} is no quantity as 10Mi") from error
    if max_bytes < _LEAST_BYTES:
        raise ValueError(f"ContainerLogMaxSize: must be at least {_LEAST_BYTES} bytes, not {size}")
    return LogLimits(max_bytes=max_bytes, max_files=files)


def opened(directory: JobDirectory, path: Path, *, after: BinaryIO | None = None) -> list[BinaryIO]:
    """The files of a log, oldest first; only those that are newer than `after`, if that is given.

    Opened from the newest on and known by their inodes, so that one that is renamed meanwhile is neither missed nor
    there twice. Raises OSError for one that cannot be read; then none is open.
    """
    found: dict[int, BinaryIO] = {}
    known = _inode(after) if after is not None else None
    with contextlib.ExitStack() as on_failure:
        missing = 0
        for number in range(_MOST_FILES + 1):
            try:
                file = Beneath(directory.path).open(_numbered(path, number))
            except FileNotFoundError:
                missing += 1
                if missing == 2:  # one alone is just being renamed
                    break
                continue
            missing = 0
            on_failure.callback(file.close)
            inode = _inode(file)
            if inode == known:
                file.close()
                break
            if inode in found:
                file.close()
            else:
                found[inode] = file
        on_failure.pop_all()
    return list(reversed(found.values()))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino
