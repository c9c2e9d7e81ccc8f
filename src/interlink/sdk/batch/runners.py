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
import runner
os._exit(runner.main(sys.argv[1:]))
"""
_CONTENT = SOURCE.read_bytes()
_INSTALLING = threading.Lock()
_VERSION = hashlib.sha256(_MAIN + _CONTENT).hexdigest()[:12]


def place(root: Path) -> Path:
    """What Python is to run for the jobs below `root`."""
    return root / f".runner-{_VERSION}"


def install(root: Path) -> None:
    """Durable on return, harmless when it is there; anybody's jobs may read it. Raises OSError."""
    directory = place(root)
    with _INSTALLING:
        if (directory / "__main__.py").exists():
            return
        files.make_directory(directory)
        directory.chmod(0o755)
        for name, content in (("runner.py", _CONTENT), ("__main__.py", _MAIN)):
            files.write_durably(directory / name, content)
            (directory / name).chmod(0o644)
