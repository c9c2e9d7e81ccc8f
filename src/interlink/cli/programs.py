"""What the long-running commands share: the configuration file, logs, errors in one line."""

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
import structlog

from interlink.aio import failpoints
from interlink.kube.errors import Superseded
from interlink.model.errors import ModelError
from interlink.observe import logging, tracing


class Settings(Protocol):
    @property
    def log_level(self) -> str: ...

    @property
    def unknown_keys(self) -> list[str]: ...


_THREADS = 32
S = TypeVar("S", bound=Settings)


class Mistake(click.ClickException):
    """Something the user has to change: one line on stderr, exit code 2."""

    exit_code = 2


config_option = click.option(
    "--config", "config", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file (YAML)."
)


def _collect_rarely() -> None:
    """Nearly all that these programs drop is in no cycle and is freed without the collector, which would otherwise
    look at every pod's record again and again: a fifth of the server's CPU time with 4,000 pods."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def _with_threads(main: Coroutine[Any, Any, None]) -> None:
    """Threads wait for disks, not for CPUs: as many as there are, and the default, would let a slow one hold up all."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="blocking"))
    await main


def run(
    config: Path | None,
    load: Callable[[str, Mapping[str, str], str], S],
    program: Callable[[S], Coroutine[Any, Any, None]],
    *,
    service: str,
) -> None:
    """Read the configuration, set up logs and traces (under the name `service`), and run the program to its end."""
    try:
        failpoints.configure(os.environ)
        settings = load(read(config), os.environ, str(config or "environment"))
        logging.configure(settings.log_level)
        tracing.configure(os.environ, service=service)
    except (ModelError, ValueError) as error:
        raise Mistake(str(error)) from error
    for key in settings.unknown_keys:
        structlog.get_logger("interlink").warning("configuration.unknown-key", key=key, file=str(config))
    _collect_rarely()
    try:
        asyncio.run(_with_threads(program(settings)))
    except ModelError as error:
        raise Mistake(str(error)) from error
    except Superseded as error:
        raise click.ClickException(str(error)) from error


def read(config: Path | None) -> str:
    if config is None:
        return ""
    try:
        return config.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Mistake(f"--config: cannot read {config}: {reason}") from error


def default_config(environment: Mapping[str, str], variable: str, default: str) -> Path | None:
    """The file that an environment variable names, else the existing system's default where it exists."""
    if named := environment.get(variable):
        return Path(named)
    return Path(default) if Path(default).exists() else None
