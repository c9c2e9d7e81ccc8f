"""`python -m interlink.testing`: a control plane to explore by hand."""

import signal
import sys

import click

from interlink.testing import controlplane, errors


@click.command()
@click.option("--keep", is_flag=True, help="Return at once and leave it running.")
def main(*, keep: bool) -> None:
    """Start a Kubernetes control plane on loopback and keep it until Ctrl-C.

    Example: python -m interlink.testing --keep
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with controlplane.ControlPlane(keep=keep) as plane:
            show(plane, keep=keep)
            if not keep:
                signal.pause()
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    except errors.HarnessError as error:
        sys.exit(f"error: {error}")


def show(plane: controlplane.ControlPlane, *, keep: bool) -> None:
    click.echo(f"export KUBECONFIG={plane.kubeconfig}")
    if plane.missing:
        click.echo(f"without {', '.join(plane.missing)}: not in the folder of programs", err=True)
    if keep:
        click.echo(f"to end it: xargs kill -KILL < {plane.folder}/pids && rm -r {plane.folder}", err=True)
    else:
        click.echo("running until Ctrl-C", err=True)


if __name__ == "__main__":
    main()
