"""`interlink cache`: look at a server's directory, whether or not the server runs."""

from pathlib import Path
from typing import Any

import click
import msgspec

from interlink.cli import tables
from interlink.model import statuses
from interlink.model.errors import ModelError
from interlink.model.records import Record
from interlink.server.service import state_of
from interlink.server.store import files
from interlink.server.store.store import Restored

_COLUMNS = {
    "pod": "POD",
    "uid": "UID",
    "owner": "OWNER",
    "state": "STATE",
    "job_id": "JOB",
    "exit_codes": "EXIT CODES",
    "updated": "UPDATED",
}

directory_argument = click.argument(
    "directory", envvar="INTERLINK_DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)


@click.group()
def cache() -> None:
    """Look at a server's directory, whether or not the server runs.

    Nothing is changed. DIRECTORY is the server's InterlinkDir; INTERLINK_DIR stands for it.

    \b
    Example:
      interlink cache list /var/lib/interlink
      interlink cache verify /var/lib/interlink --output json
    """


@cache.command("list")
@directory_argument
@tables.output_option
def list_(directory: Path, output: str) -> None:
    """The records: one pod a line."""
    tables.show([_row(record) for record in _look(directory).records], _COLUMNS, output=output)


@cache.command()
@directory_argument
@click.argument("uid")
def show(directory: Path, uid: str) -> None:
    """One record, as JSON."""
    for record in _look(directory).records:
        if record.pod_uid == uid:
            click.echo(msgspec.json.format(msgspec.json.encode(record), indent=2))
            return
    raise click.ClickException(f"there is no record of pod {uid}; see `interlink cache list`")


@cache.command()
@directory_argument
@tables.output_option
def verify(directory: Path, output: str) -> None:
    """Read every record and check its seal. Exit code 1 when one is damaged, here or already set aside."""
    found = _look(directory)
    aside = [path.name for path in sorted((directory / "CachedPods" / "damaged").glob("*"))]
    rows = [
        *({"record": f"{r.pod_uid}.yaml", "verdict": "good", "reason": ""} for r in found.records),
        *({"record": d.name, "verdict": "damaged", "reason": d.reason} for d in found.damaged),
        *(
            {"record": f"damaged/{name}", "verdict": "set aside", "reason": "by a server, at its start"}
            for name in aside
        ),
    ]
    tables.show(rows, {"record": "RECORD", "verdict": "VERDICT", "reason": "REASON"}, output=output)
    if found.damaged or aside:
        raise SystemExit(1)


def _look(directory: Path) -> Restored:
    folder = directory / "CachedPods"
    if not folder.is_dir():
        raise click.ClickException(f"there is no {folder}; name the directory that holds CachedPods")
    try:
        return files.look(folder)
    except (ModelError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _row(record: Record) -> dict[str, Any]:
    return {
        "pod": record.pod.full_name,
        "uid": record.pod_uid,
        "owner": str(record.owner),
        "state": state_of(record),
        "job_id": record.job_id,
        "exit_codes": statuses.exit_codes([statuses.read(raw) for raw in record.containers]),
        "updated": record.updated_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
