"""The command `interlink`."""

import importlib

import click

import interlink

_COMMANDS = {
    "server": "interlink.cli.server:server",
    "virtual-kubelet": "interlink.cli.kubelet:virtual_kubelet",
    "plugin": "interlink.cli.plugin:plugin",
    "pods": "interlink.cli.pods:pods",
    "cache": "interlink.cli.cache:cache",
    "conformance": "interlink.cli.conformance:conformance",
    "doctor": "interlink.cli.slurm:doctor",
}


class _LazyGroup(click.Group):
    """Imports a command's module when the command is wanted: each program loads only what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(interlink.__version__, prog_name="interlink")
def main() -> None:
    """Kubernetes pods on machines Kubernetes does not own.

    Three programs, each restartable at any moment: a virtual kubelet beside Kubernetes, a server near the site and a
    plugin that turns each pod into a job.
    """
