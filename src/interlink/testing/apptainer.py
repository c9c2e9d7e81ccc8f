"""The newest Debian with Apptainer and Slurm, in a root directory of its own, where containers run as an ordinary user.

Apptainer wants a root that is a mount point, so the root is entered in a mount namespace with pivot_root. It is built
once, kept in the user's cache directory, and only read; what is written lies in tmpfs or in folders that are shared
with the host. Needs root and `debootstrap`; `tools/setup.sh apptainer-site` builds it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from interlink.testing.errors import DaemonError, UnavailableError

ADVICE = "run tools/setup.sh apptainer-site as root on Debian"
USER = 4711
PACKAGES = ("apptainer", "slurm-wlm", "munge", "python3", "ca-certificates", "squashfuse", "fuse2fs")
_BUILD_TIMEOUT_S = 900


def folder() -> Path:
    """Where the root is, or will be: another list of packages is another root."""
    key = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:12]
    return Path.home() / ".cache" / "interlink" / "apptainer" / key


def found() -> Path:
    """The root, which is not built here: that takes a minute. Raises UnavailableError with the way to get it."""
    if not (folder() / "etc").is_dir():
        raise UnavailableError(f"no root directory with Apptainer: {ADVICE}")
    if os.geteuid() != 0:
        raise UnavailableError("entering a root directory with Apptainer needs root")
    return folder()


def build() -> Path:
    """The root, made if it is not there: about 300 MB are loaded. Raises UnavailableError with the reason."""
    root = folder()
    if (root / "etc").is_dir():
        return root
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise UnavailableError(f"no root directory with Apptainer: {ADVICE}")
    root.parent.mkdir(parents=True, exist_ok=True)
    with (root.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return root if (root / "etc").is_dir() else _built(root)


def _built(root: Path) -> Path:
    part = root.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    wanted = ["--variant=minbase", f"--include={','.join(PACKAGES)}", "sid", str(part)]
    try:
        done = subprocess.run(["debootstrap", *wanted], capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"debootstrap took longer than {_BUILD_TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise UnavailableError(f"debootstrap failed: {' '.join(done.stdout.splitlines()[-2:])}; is there a network?")
    (part / "etc/passwd").open("a").write(f"ordinary:x:{USER}:{USER}::/home/ordinary:/bin/sh\n")
    (part / "etc/group").open("a").write(f"ordinary:x:{USER}:\n")
    for archive in (part / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    part.rename(root)
    return root


class ApptainerRoot:
    """A mount namespace with the root, as long as the context lasts. shared: folders of the host, at the same paths."""

    def __init__(self, root: Path, *, shared: Sequence[Path]) -> None:
        self._root = root
        self._shared = list(shared)
        self._holder: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        argv = ["unshare", "--mount", "--propagation=private", "sh", "-euc", _ENTER, "sh", str(self._root)]
        self._holder = subprocess.Popen(
            [*argv, *map(str, self._shared)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert self._holder.stdout is not None
        line = self._holder.stdout.readline()
        if line != b"ready\n":
            rest = self._holder.stdout.read()
            self.__exit__(None, None, None)
            raise DaemonError(f"cannot enter {self._root}: {(line + rest).decode().strip()}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._holder is not None
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.wait(10)
        self._holder.stdout.close()

    def inside(self, *argv: str, user: int = 0) -> list[str]:
        """The command line that runs another one in there."""
        assert self._holder is not None
        target = f"--mount=/proc/{self._holder.pid}/ns/mnt"
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        return ["nsenter", target, *become, *argv]

    def run(self, *argv: str, user: int = 0, timeout_s: float = 60) -> str:
        """What a command prints in there. Raises DaemonError with its words if it fails."""
        environ = {"PATH": PATH, "HOME": "/home/ordinary" if user else "/root"}
        done = subprocess.run(
            self.inside(*argv, user=user), capture_output=True, text=True, env=environ, timeout=timeout_s, check=False
        )
        if done.returncode != 0:
            raise DaemonError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def program(self, path: Path, *argv: str, user: int = 0, prepare: str = "") -> Path:
        """Write a program that runs a command in there, with its own arguments behind."""
        line = " ".join(self.inside(*argv, user=user))
        path.write_text(f'#!/bin/sh\n{prepare}\nexec {line} "$@"\n')
        path.chmod(0o755)
        return path


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENTER = r"""
root=$1; shift
mount --bind "$root" "$root"
mount -t tmpfs -o mode=755 dev "$root/dev"
for name in null zero full random urandom tty; do
  : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"
done
mknod -m 666 "$root/dev/fuse" c 10 229
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%%:*}" "$root/dev/${number#*:}"; done
mkdir "$root/dev/shm" "$root/dev/pts"
mount --bind /dev/shm "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount --rbind /sys "$root/sys"
for name in tmp run home var/tmp var/log; do mount -t tmpfs -o mode=1777 tmpfs "$root/$name"; done
mkdir "$root/home/ordinary"; chown 4711:4711 "$root/home/ordinary"
for folder; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
cd "$root"
mkdir -p tmp/.old
mount -t proc proc proc
pivot_root . tmp/.old
umount -l /tmp/.old
rmdir /tmp/.old
echo ready
exec cat > /dev/null
"""


def main() -> int:
    """Build the root, for the setup; one line if there is something to do."""
    if not (folder() / "etc").is_dir():
        sys.stderr.write(f"setup: building {folder()}: Debian sid with {', '.join(PACKAGES)} (minutes)\n")
    try:
        build()
    except UnavailableError as error:
        sys.stderr.write(f"setup: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
