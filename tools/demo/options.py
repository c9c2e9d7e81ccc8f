"""What the user chooses, in the environment."""

from collections.abc import Mapping

import msgspec


class InvalidOption(Exception):
    """The text names the variable and what is expected."""


class Options(msgspec.Struct, frozen=True):
    completions: int | None = None
    """Of the Job; None: as the example says."""
    is_kept: bool = False
    wants_cluster: bool = True


def read(environ: Mapping[str, str]) -> Options:
    """KEEP, DEMO_PODS and DEMO_CLUSTER; an empty variable is one that is not set. Raises InvalidOption."""
    pods = environ.get("DEMO_PODS", "")
    if pods and not (pods.isdecimal() and 1 <= int(pods) <= 1000):
        raise InvalidOption(f"DEMO_PODS={pods}: expected a number from 1 to 1000")
    cluster = environ.get("DEMO_CLUSTER", "")
    if cluster not in ("", "none"):
        raise InvalidOption(f"DEMO_CLUSTER={cluster}: expected none, or nothing")
    is_kept = environ.get("KEEP", "") not in ("", "0", "no", "false")
    return Options(completions=int(pods) if pods else None, is_kept=is_kept, wants_cluster=cluster != "none")
