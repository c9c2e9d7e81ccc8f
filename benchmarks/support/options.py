"""What every benchmark can be told: how many pods, where to write, how to print. `BENCH_QUICK=1` makes them small."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from interlink.cli.tables import output_option

__all__ = ["directory_option", "interval_option", "is_quick", "output_option", "pods_option"]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

directory_option = click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=tempfile.gettempdir(),
    show_default=True,
    help="Where the cache is written: the disk that is measured.",
)
interval_option = click.option(
    "--interval", "interval_s", type=float, default=2.0, show_default=True, help="The server's StatusInterval, seconds."
)


def is_quick() -> bool:
    return os.environ.get("BENCH_QUICK", "") not in ("", "0")


def pods_option(*, full: list[int], quick: list[int], help_: str = "How many pods; may be repeated.") -> Decorator:
    """`--pods N`, which may be repeated."""
    default = quick if is_quick() else full
    return click.option("--pods", type=click.IntRange(min=0), multiple=True, default=default, help=help_)
