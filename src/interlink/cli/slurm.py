"""`interlink plugin slurm`, and its checks: `--check`, also as `interlink doctor`."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from interlink.apps import slurm_plugin
from interlink.cli import programs, tables
from interlink.model.errors import ModelError
from interlink.plugins.slurm import settings as slurm_settings
from interlink.plugins.slurm.settings import SlurmSettings

_COLUMNS = {"outcome": "", "name": "check", "detail": "what", "advice": "what to do"}


@click.command()
@programs.config_option
@click.option("--check", is_flag=True, help="Tell what works and what does not, and end.")
@tables.output_option
def slurm(config: Path | None, *, check: bool, output: str) -> None:
    """Run pods as jobs of a Slurm cluster.

    Each pod becomes one job, submitted exactly once. The folder DataRootFolder must lie on a file system that this
    machine and the nodes share; everything else is asked of Slurm.

    \b
    Example:
      interlink plugin slurm --config /etc/interlink/SlurmConfig.yaml
      interlink plugin slurm --config /etc/interlink/SlurmConfig.yaml --check
    """
    if check:
        examine(config, output=output)
        return
    programs.run(_file(config), _load_with, slurm_plugin.run, service="InterLink-Sidecar")


@click.command()
@programs.config_option
@tables.output_option
def doctor(config: Path | None, *, output: str) -> None:
    """Tell what works at a Slurm site, and what to do about what does not.

    The same as `interlink plugin slurm --check`. Exit code 1 when something keeps pods from running.
    """
    examine(config, output=output)


def examine(config: Path | None, *, output: str) -> None:
    path = _file(config)
    try:
        settings = _load_with(programs.read(path), os.environ, str(path or "environment"))
        found = asyncio.run(slurm_plugin.check(settings))
    except ModelError as error:
        raise programs.Mistake(str(error)) from error
    tables.show([msgspec.structs.asdict(item) for item in found], _COLUMNS, output=output)
    if any(item.has_failed for item in found):
        raise SystemExit(1)


def _file(config: Path | None) -> Path | None:
    default = "/etc/interlink/SlurmConfig.yaml"
    return config or programs.default_config(os.environ, "SLURMCONFIGPATH", default)


def _load_with(text: str, environment: Mapping[str, str], source: str) -> SlurmSettings:
    return slurm_settings.load(text, environment, source=source, is_root=os.geteuid() == 0)
