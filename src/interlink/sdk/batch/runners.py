"""Where the runner lies: once for all jobs of a version, in a directory of its own beside theirs.

    <root>/.runner-<version>/
        __main__.py     what Python runs when it is given the directory
        runner.py
        __pycache__/    made by the first job that may: starting takes a third of the time then

The version is its content's, so that a job keeps the runner with which it was submitted; old ones stay.
"""

import hashlib
import threading
from pathlib import Path

from interlink.aio import files

SOURCE = Path(__file__).with_name("runner.py")
_MAIN = b"""import os, sys
try:
    import runner
except Exception:  # its bytecode is damaged, as where the disk was full when it was written
    import importlib.util, types
    path = os.path.join(sys.path[0], "runner.py")
    try:
        os.remove(importlib.util.cache_from_source(path))
    except OSError:
        pass
    runner = types.ModuleType("runner")
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), runner.__dict__)
os._exit(runner.main(sys.argv[1:]))
"""
_CONTENT = SOURCE.read_bytes()
_INSTALLING = threading.Lock()
_READ: dict[Path, tuple[int, ...]] = {}
"""Files that had the right content, as they were then."""
_VERSION = hashlib.sha256(_MAIN + _CONTENT).hexdigest()[:12]


def place(root: Path) -> Path:
    """What Python is to run for the jobs below `root`."""
    return root / f".runner-{_VERSION}"


def install(root: Path) -> None:
    """Durable on return, harmless when it is there and whole; anybody's jobs may read it. Raises OSError.

    Looked at each time, for where old files are cleared away, one of them may go without the other: Python does not
    read `runner.py` as long as it has bytecode, but wants it there. Read only when a file is not the one it was.
    """
    directory = place(root)
    contents = {directory / "runner.py": _CONTENT, directory / "__main__.py": _MAIN}
    with _INSTALLING:
        if all(_is_as_read(path) or _holds(path, content) for path, content in contents.items()):
            return
        files.make_directory(directory)
        directory.chmod(0o755)
        for path, content in contents.items():
            files.write_durably(path, content, mode=0o644)


def _is_as_read(path: Path) -> bool:
    return path in _READ and _READ[path] == _identity(path)


def _holds(path: Path, content: bytes) -> bool:
    before = _identity(path)
    try:
        is_whole = path.read_bytes() == content
    except OSError:
        return False
    if is_whole and before is not None:
        _READ[path] = before
    return is_whole


def _identity(path: Path) -> tuple[int, ...] | None:
    """Another one after every change, whoever made it: the time of the inode's last change can only be set back with
    the machine's clock."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
