"""`interlink conformance`"""

import asyncio
import json
from collections.abc import Sequence

import click
import msgspec

from interlink.cli import connecting, programs
from interlink.cli.connecting import Credentials
from interlink.cli.tables import output_option
from interlink.model.errors import ConfigurationError
from interlink.sdk.client import PluginClient
from interlink.sdk.conformance import suite
from interlink.sdk.conformance.check import Check
from interlink.sdk.conformance.subject import Options, Subject
from interlink.sdk.conformance.suite import Outcome, Result
from interlink.sdk.errors import SDKError, Unreachable
from interlink.sdk.transport import Link

_MARKS = {Outcome.PASSED: "ok", Outcome.FAILED: "FAILED", Outcome.WARNING: "warning", Outcome.SKIPPED: "skipped"}


def _pair(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value!r}: expected NAME=VALUE")
    return dict(value.split("=", 1) for value in values)


@click.command()
@click.option("--plugin", "url", required=True, metavar="URL", help="http://host:port, https://… or unix:///path.")
@click.option("--image", default="busybox", show_default=True, help="Image of the jobs; it needs `sh` and `sha256sum`.")
@click.option(
    "--annotation", "annotations", multiple=True, callback=_pair, metavar="NAME=VALUE", help="On every pod; repeatable."
)
@click.option("--start", "start_s", default=60.0, show_default=True, help="Seconds a job may take to start, or to end.")
@click.option("--restart", default="", metavar="COMMAND", help="Kills the plugin and starts it again, through sh.")
@connecting.options
@click.option("--list", "is_listing", is_flag=True, help="Show the checks and stop.")
@output_option
@click.argument("names", nargs=-1)
def conformance(
    url: str,
    image: str,
    annotations: dict[str, str],
    start_s: float,
    restart: str,
    credentials: Credentials,
    is_listing: bool,
    output: str,
    names: tuple[str, ...],
) -> None:
    """Look whether a plugin, in any language, is what a server may rely on.

    It runs small jobs through the plugin and deletes them. NAMES choose checks by parts of their names. A promise that
    is not kept is FAILED when jobs could be lost, doubled or misreported without it, else a warning.

    \b
    Exit codes: 0 every MUST is kept, 1 one is not, 2 wrong usage.
    \b
    Example:
      interlink conformance --plugin http://127.0.0.1:4000 --restart 'systemctl restart my-plugin'
    """
    wanted = suite.chosen(names)
    if not wanted:
        raise programs.Mistake(f"no check has {' or '.join(names)} in its name; see --list")
    if is_listing:
        _list(wanted, output)
        return
    options = Options(image=image, annotations=annotations, start_s=start_s, restart=restart)

    async def work() -> list[Result]:
        link = connecting.link(url, credentials, key="--plugin", peer="plugin")
        try:
            await _find(link)
            results = []
            async for result in suite.run(Subject(link, options), wanted):
                results.append(result)
                if output == "table":
                    _tell(result)
            return results
        finally:
            await link.close()

    try:
        results = asyncio.run(work())
    except ConfigurationError as error:
        raise programs.Mistake(str(error)) from error
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(results), indent=2))
    else:
        counts = {outcome: sum(r.outcome is outcome for r in results) for outcome in Outcome}
        click.echo(", ".join(f"{count} {_MARKS[outcome]}" for outcome, count in counts.items() if count))
    if any(result.outcome is Outcome.FAILED for result in results):
        raise SystemExit(1)


def _list(checks: Sequence[Check], output: str) -> None:
    rows = [{"level": check.level.value, "check": check.name, "promise": check.promise} for check in checks]
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo("\n".join(f"{row['level']:7}{row['check']}: {row['promise']}" for row in rows))


async def _find(link: Link) -> None:
    """A plugin that is not there keeps and breaks no promise: say so once. One that answers, however, is looked at."""
    try:
        await PluginClient(link).ping()
    except Unreachable as error:
        raise click.ClickException(str(error)) from error
    except SDKError:
        return


def _tell(result: Result) -> None:
    click.echo(f"{_MARKS[result.outcome]:8} {result.check}  ({result.seconds} s)")
    if result.outcome is not Outcome.PASSED:
        click.echo(f"         promise: {result.promise}\n         {result.message}")
