"""Files in a directory whose content somebody else may change meanwhile, as a job does in its own: no symbolic link on
the way is followed, and nothing waits for the other end of a pipe."""

import contextlib
import errno
import hashlib
import os
import stat
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from interlink.aio import files


class Beneath:
    """Paths are below `root`, which itself nobody else can replace. All calls block and raise OSError; with a symbolic
    link in the way that is ELOOP or ENOTDIR. ValueError for a path that is not below the root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def open(self, path: Path) -> BinaryIO:
        """A regular file, to be read."""
        with self._folder(path) as folder:
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=folder)
        file = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            file.close()
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file

    def write(self, path: Path, data: bytes, *, mode: int, owner: int | None = None) -> None:
        """Replace the file at once, and make its directories; never readable by others than in the end. Not synced."""
        # Of a length that any file system takes, whatever the file's own; the same each time, so that none is left.
        temporary = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:24]}.tmp"
        with self._folder(path, is_made=True) as folder:
            descriptor = files.create(temporary, 0o600, folder=folder)
            try:
                files.write_all(descriptor, data)
                if owner is not None:
                    os.fchown(descriptor, owner, -1)
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)

    def make_directory(self, path: Path) -> None:
        """And its missing parents, 0700; harmless when it exists."""
        with self._folder(path / "x", is_made=True):
            pass

    def give(self, owner: int, *, kept: Collection[str] = ()) -> None:
        """Everything belongs to this user afterwards, the root included; links themselves, not what they point to.

        kept: names of files that stay whose they are, wherever they lie.
        """
        for _, directories, names, folder in os.fwalk(self._root):
            for name in (*directories, *(name for name in names if name not in kept)):
                with contextlib.suppress(FileNotFoundError):
                    os.chown(name, owner, -1, dir_fd=folder, follow_symlinks=False)
        os.chown(self._root, owner, -1, follow_symlinks=False)

    def remove(self) -> None:
        """Everything, however deep it is, and the root; what cannot be removed stays."""
        with contextlib.suppress(OSError):
            with self._folder(self._root / "x") as top:
                _remove_all(os.listdir(top), top)  # noqa: PTH208 -- of a descriptor
            self._root.rmdir()

    def discard(self, path: Path) -> None:
        """A file or a directory with everything in it; absent is fine, and what cannot be removed stays."""
        with contextlib.suppress(OSError), self._folder(path) as folder:
            _remove_all([path.name], folder)

    @contextlib.contextmanager
    def _folder(self, path: Path, *, is_made: bool = False) -> Iterator[int]:
        """The open directory that holds `path`."""
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in path.parent.relative_to(self._root).parts:
                if part == "..":
                    raise ValueError(f"{path} is not below {self._root}")
                if is_made:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folder)
                deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = deeper
            yield folder
        finally:
            os.close(folder)


def _remove_all(waiting: list[str], top: int) -> None:
    """What cannot be removed stays."""
    while waiting:
        with contextlib.suppress(OSError):
            _remove(waiting.pop(), top, waiting)


def _remove(name: str, top: int, waiting: list[str]) -> None:
    """A file, or a directory; directories in it are moved to the top, where they wait, so that no depth is too deep."""
    if _is_unlinked(name, top):
        return
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        os.fchmod(folder, 0o700)
        for part in os.listdir(folder):  # noqa: PTH208 -- as above
            if not _is_unlinked(part, folder):
                moved = uuid.uuid4().hex
                os.rename(part, moved, src_dir_fd=folder, dst_dir_fd=top)
                waiting.append(moved)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _is_unlinked(name: str, folder: int) -> bool:
    """False for a directory."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        return False
    return True
