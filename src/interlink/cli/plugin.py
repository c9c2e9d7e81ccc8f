"""`interlink plugin NAME`"""

import os
from pathlib import Path

import click

from interlink.apps import local_plugin, slurm_plugin
from interlink.cli import programs
from interlink.plugins.local import settings as local_settings
from interlink.plugins.slurm import settings as slurm_settings


@click.group()
def plugin() -> None:
    """Turn pods into jobs of a site."""


@plugin.command()
@programs.config_option
def local(config: Path | None) -> None:
    """Run pods as processes of this host.

    Containers are programs of the host (their image is not used, so each needs a command); volumes appear at their
    mount paths. Jobs survive the plugin: a restarted one finds them in DataRootFolder.

    \b
    Example:
      SIDECARPORT=4000 interlink plugin local
    \b
    Configuration keys: Socket (unix:///path) or SidecarAddress and SidecarPort, DataRootFolder, MaxPods.
    """
    programs.run(
        config,
        lambda text, env, source: local_settings.load(text, env, source=source),
        local_plugin.run,
        service="InterLink-Sidecar",
    )


@plugin.command()
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
