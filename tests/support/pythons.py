"""The interpreters that the runner is tried with: the oldest and the newest of this machine, and our own.

Looked for on PATH, among pyenv's versions and in the root directory with Apptainer; what lies between the oldest and
the newest behaves like one of them. An interpreter is the words that start it.
"""

import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from interlink.testing import UnavailableError, apptainer

VARIABLE = "INTERLINK_TEST_PYTHON"
AGES = ("oldest", "ours", "newest")
Python = tuple[str, ...]
_OURS: Python = (sys.executable,)
_OLDER = range(6, sys.version_info.minor)
_NEWER = range(20, sys.version_info.minor, -1)


@functools.cache
def find(age: str) -> Python:
    """Of AGES. Raises UnavailableError for what is not here; with VARIABLE there is one interpreter, the given one."""
    given = tuple(shlex.split(os.environ.get(VARIABLE, "")))
    if given or age == "ours":
        return given or _OURS
    minors = _OLDER if age == "oldest" else _NEWER
    found = (words for minor in minors for words in _candidates(f"python3.{minor}") if _works(words))
    python = next(found, None)
    if python is None:
        kind = "older" if age == "oldest" else "newer"
        raise UnavailableError(f"no Python {kind} than 3.{sys.version_info.minor} on PATH or among pyenv's versions")
    return python


def _candidates(name: str) -> Iterator[Python]:
    on_path = shutil.which(name)
    installed = [Path(on_path)] if on_path else []
    for path in (*_pyenv_root().glob(f"versions/*/bin/{name}"), *installed):
        yield (str(path),)
    yield from _of_another_root(apptainer.folder(), name)


def _of_another_root(root: Path, name: str) -> Iterator[Python]:
    """With the C library of that root, and without entering it."""
    program = root / "usr" / "bin" / name
    for loader in root.glob("lib*/ld-linux*.so.*") if program.exists() else ():
        libraries = [str(path) for path in root.glob("usr/lib/*-linux-gnu*")]
        yield (str(loader), "--library-path", ":".join(libraries), str(program))


@functools.cache
def _pyenv_root() -> Path:
    root = os.environ.get("PYENV_ROOT")
    if root is None and shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True).stdout.strip()
    return Path(root or Path.home() / ".pyenv")


def _works(words: Python) -> bool:
    return subprocess.run([*words, "-c", "import ctypes"], capture_output=True).returncode == 0
