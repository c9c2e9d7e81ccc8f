"""Which process of which machine: a name that another process can check later.

A name is `host/boot/namespace/pid/start`: the boot and the PID namespace make a process id unique, its start time (in
clock ticks since boot) tells it from a later process with the same id.
"""

import os
import socket
from pathlib import Path

_PROC = Path("/proc")


def of_this_process() -> str:
    return "/".join((socket.gethostname(), *_surroundings(), str(os.getpid()), _start(os.getpid()) or ""))


def is_surely_dead(name: str) -> bool:
    """Whether the process of that name has ended. Only known where it could be seen: on this machine since it booted,
    in this PID namespace."""
    _, *surroundings, pid, start = name.rsplit("/", 4) if name.count("/") == 4 else ("", "", "", "", "")
    if tuple(surroundings) != _surroundings() or not pid.isdecimal() or not start:
        return False
    return _start(int(pid)) != start


def _surroundings() -> tuple[str, str]:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return boot, str((_PROC / "self/ns/pid").stat().st_ino)


def _start(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat, counted from behind the program's name; None for no process or a zombie."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]
