"""Files that survive: atomic, durable writes, and a lock that dies with its holder. All calls block."""

import contextlib
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import IO

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_MOST_BYTES = 64 * 1024 * 1024
_OPEN_AT_ONCE = 128
"""Files that are open while they are written together: far below what a process may open."""


class LockedError(Exception):
    """Another process holds the lock; `holder` is what it wrote about itself."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is locked by {holder or 'another process'}")
        self.holder = holder


def write_durably(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` by `data`, or leave it as it was.

    Durable on return: the file and its directory entry are on disk. Raises OSError; then nothing has changed.
    """
    write_together({path: data}, mode=mode)


def write_together(contents: dict[Path, bytes], *, mode: int = 0o600) -> None:
    """Write several files durably with one directory sync for each directory; each file on its own is atomic."""
    items = list(contents.items())
    for start in range(0, len(items), _OPEN_AT_ONCE):
        _replace(dict(items[start : start + _OPEN_AT_ONCE]), mode)
    for directory in {path.parent for path in contents}:
        sync_directory(directory)


def _replace(contents: dict[Path, bytes], mode: int) -> None:
    """All are written before the first is synced, so that the disk takes them together."""
    temporaries = {path: path.with_name(f".{path.name}.tmp") for path in contents}
    try:
        with contextlib.ExitStack() as opened:
            descriptors = [_written(temporaries[path], data, mode, opened) for path, data in contents.items()]
            for descriptor in descriptors:
                os.fsync(descriptor)
        for path, temporary in temporaries.items():
            temporary.replace(path)
    except OSError:
        for temporary in temporaries.values():
            with contextlib.suppress(OSError):
                temporary.unlink()
        raise


def _written(path: Path, data: bytes, mode: int, opened: contextlib.ExitStack) -> int:
    """The descriptor of the file with its data, not synced yet."""
    descriptor = create(path, mode)
    opened.callback(os.close, descriptor)
    os.fchmod(descriptor, mode)
    write_all(descriptor, data)
    return descriptor


def create(path: str | Path, mode: int, *, folder: int | None = None) -> int:
    """The descriptor of a new file, in the open directory `folder` if that is given; what is there in its place, left
    by a crash or laid as a trap, is taken away."""
    try:
        return os.open(path, _NEW, mode, dir_fd=folder)
    except FileExistsError:
        os.unlink(path, dir_fd=folder)
        return os.open(path, _NEW, mode, dir_fd=folder)


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_regular(path: Path, *, most_bytes: int = _MOST_BYTES) -> bytes:
    """A regular file's bytes. Raises OSError for anything else, for more than any of our records has, and never waits
    for a pipe's other end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return data


def remove_durably(paths: Iterable[Path]) -> None:
    """Remove files, absent ones included; durable on return."""
    directories = set()
    for path in paths:
        path.unlink(missing_ok=True)
        directories.add(path.parent)
    for directory in directories:
        sync_directory(directory)


def make_directory(path: Path, *, mode: int = 0o700) -> None:
    """Create a directory and its missing parents; durable on return, harmless when it exists."""
    if path.is_dir():
        return
    make_directory(path.parent, mode=mode)
    path.mkdir(mode=mode, exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_exclusively(path: Path, holder: str) -> IO[str]:
    """Take the lock file `path` until the returned file is closed or the process dies; raises LockedError, and OSError
    where there are no locks.

    A POSIX record lock: it works on network file systems, and the process must not open the file a second time.
    """
    file = path.open("a+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        current = file.read().strip()
        file.close()
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        raise LockedError(path, current) from error
    file.seek(0)
    file.truncate()
    file.write(holder)
    file.flush()
    return file


_FLOCK = struct.Struct("hhqqi4x")


def lock_holder(path: Path) -> int | None:
    """The process id that holds the lock file, or None; asks without taking the lock, so it disturbs nobody.

    A holder on another host of a shared file system is reported with that host's process id, one that has no number
    here, as in another PID namespace, with 0 or less.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            question = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            answer = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, question))
    except FileNotFoundError:
        return None
    kind, _, _, _, process_id = answer
    return None if kind == fcntl.F_UNLCK else process_id
