"""What a process costs, as the kernel counts it."""

import os
from pathlib import Path

import msgspec

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Memory(msgspec.Struct, frozen=True):
    resident_mb: float
    peak_mb: float


def memory(pid: int | None) -> Memory:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Memory(resident_mb=_mb(fields["VmRSS"]), peak_mb=_mb(fields["VmHWM"]))


def cpu_s(pid: int | None) -> float:
    """Seconds of CPU since its start, in user and kernel mode, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _mb(text: str) -> float:
    return int(text.split()[0]) * 1024 / 1e6
