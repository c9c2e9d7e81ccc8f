"""Pods as jobs of Task Spooler (`tsp`), the queue of one machine."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from interlink import sdk

LINE = re.compile(r"(?P<id>\d+) +(?P<state>[a-z]+) +\S+ +(?P<code>-?\d+)?.*?\[(?P<tag>il-[^\]]+)\]")


class Row(NamedTuple):
    """A job in tsp's list; `code` is there when it has finished, -1 when it was killed."""

    job_id: sdk.JobID
    state: str
    code: int | None


def rows(text: str) -> dict[sdk.Tag, Row]:
    """tsp's list by tag; jobs of other people have none."""
    found = {}
    for line in text.splitlines():
        match = LINE.match(line)
        tag = sdk.parse_tag(match["tag"]) if match else None
        if match and tag:
            code = int(match["code"]) if match["code"] else None
            found[tag] = Row(sdk.JobID(match["id"]), match["state"], code)
    return found


class TaskSpooler(sdk.Scheduler):
    def __init__(self, root: Path) -> None:
        self._root = root

    async def submit(self, tag: sdk.Tag, directory: sdk.JobDirectory) -> sdk.JobID:
        runner = [sys.executable, "-I", "-S", str(directory.runner), "run", str(directory.path)]
        return sdk.JobID((await self._tsp("-L", str(tag), *runner)).strip())

    async def find(self, tag: sdk.Tag, directory: sdk.JobDirectory) -> sdk.JobID | None:
        row = (await self._rows()).get(tag)
        return row.job_id if row else None

    async def poll(self, jobs: Sequence[tuple[sdk.Tag, sdk.JobDirectory]]) -> Mapping[sdk.Tag, sdk.Observation]:
        listed = await self._rows()
        return {tag: observed(listed.get(tag), directory) for tag, directory in jobs}

    async def cancel(self, tag: sdk.Tag, directory: sdk.JobDirectory) -> None:
        row = (await self._rows()).get(tag)
        if row and row.state == "queued":
            await self._tsp("-r", row.job_id)
        elif row and row.state == "running":
            await self._tsp("-k", row.job_id)

    async def jobs(self) -> Sequence[sdk.Job]:
        return [
            sdk.Job(tag=str(tag), job_id=row.job_id, node=self._node(tag), is_alive=row.code is None)
            for tag, row in (await self._rows()).items()
        ]

    def _node(self, tag: sdk.Tag) -> str:
        intention = sdk.JobDirectory(self._root / tag.pod_uid).intention()
        return intention.node if intention else ""

    async def capacity(self) -> sdk.PingAnswer:
        return sdk.PingAnswer(status="ok", resources=sdk.Resources(cpu=str(os.cpu_count()), pods="100"))

    async def _rows(self) -> dict[sdk.Tag, Row]:
        return rows(await self._tsp())

    async def _tsp(self, *arguments: str) -> str:
        try:
            done = await sdk.run_program(["tsp", *arguments], timeout_s=10)
        except TimeoutError as error:
            raise sdk.OutcomeUnknown("tsp did not answer in time") from error
        except OSError as error:
            raise sdk.Unreachable(f"cannot run tsp: {error.strerror}") from error
        if done.exit_code != 0:
            raise sdk.OutcomeUnknown(f"tsp: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")


def observed(row: Row | None, directory: sdk.JobDirectory) -> sdk.Observation:
    if row is None:  # tsp forgets all jobs when its server ends; those that run go on
        return sdk.Observation(sdk.Life.RUNNING if directory.runner_process() else sdk.Life.GONE)
    if row.state == "queued":
        return sdk.Observation(sdk.Life.PENDING, reason="Queued")
    if row.code is None:
        return sdk.Observation(sdk.Life.RUNNING)
    if row.code == 0:
        return sdk.Observation(sdk.Life.ENDED, ending=sdk.Ending("Completed", is_success=True))
    return sdk.Observation(sdk.Life.ENDED, ending=sdk.Ending("Error", exit_code=abs(row.code)))


if __name__ == "__main__":
    address, folder = sys.argv[1], Path(sys.argv[2]).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sdk.serve(sdk.BatchPlugin(folder, scheduler=TaskSpooler(folder), runtime=sdk.HostProcesses()), address)
