"""The command `interlink`."""

import sys

import click

import interlink
from interlink.cli import kubelet, plugin, server


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(interlink.__version__, prog_name="interlink")
def cli() -> None:
    """Kubernetes pods on machines Kubernetes does not own.

    Three programs, each restartable at any moment: a virtual kubelet beside Kubernetes, a server near the site and a
    plugin that turns each pod into a job.
    """


cli.add_command(server.server)
cli.add_command(plugin.plugin)
cli.add_command(kubelet.virtual_kubelet)


def main() -> None:
    """A user's mistake ends in one line on stderr and exit code 2, never in a traceback."""
    sys.exit(cli())
