"""Lists for people and for programs: the same rows as a table or as JSON."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

output_option = click.option(
    "--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print it."
)


def show(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, output: str) -> None:
    """`columns`: heading by key. JSON holds whole rows; the table only what the columns name."""
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(*columns.values(), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_text(row[key]) for key in columns))
    Console(width=None if sys.stdout.isatty() else 240, highlight=False).print(table)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return "" if value is None else str(value)
