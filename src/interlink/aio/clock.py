"""The one place for time: the wall clock, and seconds that also pass while the machine sleeps."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """Second resolution, as Kubernetes writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def since_boot_s() -> float:
    """Never goes back, and goes on while this process is stopped or the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
