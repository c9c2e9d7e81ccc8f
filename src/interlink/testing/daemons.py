"""Daemons of a test: each in a session of its own, input closed, output in a log file.

A daemon is ended by its process group and by nothing wider. Unless it is detached, the kernel kills it when
the thread that started it ends, however that happens: start daemons from a thread that lives long enough.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from interlink.testing.errors import DaemonError

PR_SET_PDEATHSIG = 1
LONGEST_LINE = 400
LIBC = ctypes.CDLL(None)


class Daemon:
    """One program that can be started, killed and started again; its log goes on in the same file."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        environ: Mapping[str, str] | None = None,
        is_detached: bool = False,
    ) -> None:
        self.argv = list(argv)
        self.name = Path(argv[0]).name
        self.log = log
        self._environ = environ
        self._before_exec = None if is_detached else _die_with(os.getpid())
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs, else None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start it; does nothing if it runs already."""
        if self.pid is not None:
            return
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environ,
                start_new_session=True,
                preexec_fn=self._before_exec,
            )

    def stop(self, *, deadline_s: float = 10) -> None:
        """TERM, and KILL after the deadline. On return it has ended; does nothing if it does not run."""
        self._end(signal.SIGTERM, deadline_s=deadline_s)

    def terminate(self, *, deadline_s: float) -> int | None:
        """TERM; the exit code, or None if it has not ended by the deadline. Raises DaemonError if it does not run."""
        self.check()
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGTERM)
        return self.await_exit(deadline_s=deadline_s)

    def await_exit(self, *, deadline_s: float) -> int | None:
        """The exit code, or None if it has not ended by the deadline."""
        assert self._process is not None
        try:
            return self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """KILL at once. On return it has ended; does nothing if it does not run."""
        self._end(signal.SIGKILL, deadline_s=10)

    def check(self) -> None:
        """Raise DaemonError with the end of its log if it does not run."""
        if self.pid is None:
            code = None if self._process is None else self._process.returncode
            raise DaemonError(f"{self.name} does not run (exit code {code}); end of {self.log}:\n{self.tail()}")

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log, long ones cut."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(line[:LONGEST_LINE] for line in text.splitlines()[-lines:])

    def _end(self, number: signal.Signals, *, deadline_s: float) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        os.killpg(self._process.pid, number)
        try:
            self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _die_with(parent: int) -> Callable[[], None]:
    """What a child does before exec: ask the kernel to be killed with its parent, and mind one that is gone."""

    def ask() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask
