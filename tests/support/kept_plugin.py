"""A plugin as a process that comes back when it is killed, as under a service manager."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from interlink.testing.daemons import Daemon


def restarting(pid_file: Path) -> str:
    """A shell command that kills the plugin and returns when another one is there."""
    file = shlex.quote(str(pid_file))
    return f'old=$(cat {file}); kill -9 $old; while [ "$(cat {file})" = "$old" ]; do sleep 0.05; done'


@contextlib.contextmanager
def kept(argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Run it until the context is left; yields the file that holds its process id."""
    pid_file = folder / "pid"
    loop = f"while :; do {shlex.join(argv)} & echo $! > {shlex.quote(str(pid_file))}; wait; done"
    daemon = Daemon(["sh", "-c", loop], log=folder / "plugin.log", environ={**os.environ, **environ})
    daemon.start()
    try:
        yield pid_file
    finally:
        daemon.stop()
