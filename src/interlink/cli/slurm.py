"""`interlink plugin slurm`"""

import os
from pathlib import Path

import click

from interlink.apps import slurm_plugin
from interlink.cli import programs
from interlink.plugins.slurm import settings as slurm_settings


@click.command()
@programs.config_option
def slurm(config: Path | None) -> None:
    """Run pods as jobs of a Slurm cluster.

    Each pod becomes one job, submitted exactly once. The folder DataRootFolder must lie on a file system that this
    machine and the nodes share; everything else is asked of Slurm.

    \b
    Example:
      interlink plugin slurm --config /etc/interlink/SlurmConfig.yaml
    """
    programs.run(
        config or programs.default_config(os.environ, "SLURMCONFIGPATH", "/etc/interlink/SlurmConfig.yaml"),
        lambda text, env, source: slurm_settings.load(text, env, source=source, is_root=os.geteuid() == 0),
        slurm_plugin.run,
        service="InterLink-Sidecar",
    )
