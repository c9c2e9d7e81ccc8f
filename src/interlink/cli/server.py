"""`interlink server`"""

import os
from pathlib import Path

import click

from interlink.apps import server as app
from interlink.cli import programs
from interlink.server import settings


@click.command()
@programs.config_option
def server(config: Path | None) -> None:
    """Keep a durable cache between virtual kubelets and one plugin.

    Without --config the file that INTERLINKCONFIGPATH names is read, else /etc/interlink/InterLinkConfig.yaml.
    INTERLINKURL, INTERLINKPORT, SIDECARURL, SIDECARPORT and INTERLINK_DIR win over the file.

    \b
    Example:
      INTERLINKURL=http://127.0.0.1 INTERLINKPORT=3000 \\
      SIDECARURL=http://127.0.0.1 SIDECARPORT=4000 INTERLINK_DIR=/var/lib/interlink interlink server
    """
    file = config or programs.default_config(os.environ, "INTERLINKCONFIGPATH", "/etc/interlink/InterLinkConfig.yaml")
    programs.run(
        file, lambda text, env, source: settings.load(text, env, source=source), app.run, service="InterLink-Plugin"
    )
