"""An image without a registry: a root directory with busybox for everything."""

import shutil
import subprocess
from pathlib import Path

from interlink.testing.errors import UnavailableError

ADVICE = "no static busybox: run tools/setup.sh containers as root on Debian (package busybox-static)"


def busybox_root(folder: Path) -> Path:
    """Fill the folder; it has what a Debian image has where programs and runtimes look. Raises UnavailableError."""
    program = shutil.which("busybox")
    if program is None or b"not a dynamic executable" not in _linked(program):
        raise UnavailableError(ADVICE)
    for name in ("bin", "dev", "proc", "sys", "etc", "run", "root", "home", "usr/bin", "var/tmp", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, folder / "bin/busybox")
    for applet in subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            (folder / "bin" / applet).symlink_to("busybox")
    (folder / "var/run").symlink_to("/run")
    (folder / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\n")
    (folder / "etc/of-the-image").write_text("busybox\n")
    folder.chmod(0o755)
    return folder


def _linked(program: str) -> bytes:
    done = subprocess.run(["ldd", program], capture_output=True, check=False)
    return done.stdout + done.stderr
