"""`interlink plugin NAME`"""

from pathlib import Path

import click

from interlink.apps import local_plugin
from interlink.cli import programs
from interlink.cli.slurm import slurm
from interlink.plugins.local import settings as local_settings


@click.group()
def plugin() -> None:
    """Turn pods into jobs of a site."""


@plugin.command()
@programs.config_option
def local(config: Path | None) -> None:
    """Run pods as processes of this host.

    Without a ContainerRuntime containers are programs of the host: their image is not used, so each needs a command.
    Volumes appear at their mount paths. Jobs survive the plugin: a restarted one finds them in DataRootFolder.

    \b
    Example:
      SIDECARPORT=4000 interlink plugin local
    \b
    The keys of the file are in docs/reference/configuration.md. None is needed beside SidecarPort or Socket.
    """
    programs.run(
        config,
        lambda text, env, source: local_settings.load(text, env, source=source),
        local_plugin.run,
        service="InterLink-Sidecar",
    )


plugin.add_command(slurm)
