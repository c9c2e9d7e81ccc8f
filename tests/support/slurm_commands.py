"""Slurm's commands as a running plugin calls them: each call is noted, and a test may answer in its own way."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

NAMES = ("sbatch", "squeue", "scancel", "sinfo", "sacct")
REFUSED = "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"


def forgetting(*job_ids: str) -> str:
    """squeue's answer where the controller has forgotten these jobs."""
    return f"""squeue "$@" | sed "{"; ".join(f"/^{job_id} /d" for job_id in job_ids)}\""""


_NOTED = r"""#!/bin/bash
set -o pipefail
printf -v line '%s\t' "$EPOCHREALTIME" NAME "$@"
echo "$line" >> CALLS
"""


class Call(msgspec.Struct, frozen=True):
    at: float
    name: str
    words: list[str]


class Commands:
    """Programs in a folder; the plugin's configuration names them by `keys`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._calls = folder / "calls"
        self._calls.touch()
        for name in NAMES:
            self._write(name, f'exec {name} "$@"')

    @property
    def keys(self) -> dict[str, str]:
        return {f"{name.capitalize()}Path": str(self._folder / name) for name in NAMES}

    @contextlib.contextmanager
    def answering(self, **scripts: str) -> Iterator[None]:
        """Inside the context these scripts of bash answer; `squeue "$@"` in one is Slurm's own."""
        for name, script in scripts.items():
            self._write(name, script)
        try:
            yield
        finally:
            for name in scripts:
                self._write(name, f'exec {name} "$@"')

    def calls(self, *names: str, about: str = "") -> list[Call]:
        """All so far of these commands that have a text in one of their words."""
        lines = [line.split("\t") for line in self._calls.read_text().splitlines()]
        found = [Call(at=float(at), name=name, words=words[:-1]) for at, name, *words in lines]
        return [call for call in found if call.name in names and (not about or about in "\t".join(call.words))]

    def _write(self, name: str, script: str) -> None:
        """By renaming: the plugin may be about to run it."""
        new = self._folder / f"{name}.new"
        noted = _NOTED.replace("NAME", name).replace("CALLS", str(self._calls))
        new.write_text(f"{noted}{script}\n")
        new.chmod(0o755)
        new.replace(self._folder / name)
