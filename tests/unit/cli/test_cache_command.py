"""`interlink cache`: a server's directory, looked at from outside."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlink.aio import files
from interlink.cli.main import main
from interlink.model import records, sealing
from interlink.model.records import Record
from tests.unit.builders import at, ended, pod, raws, record, running

LIVE = record("live", job_id="41")
DONE = records.observed(record("done", job_id="42"), raws(ended(exit_code=3)), [], "42", at(5))
DELETED = records.deleting(records.observed(record("gone"), raws(running()), [], "j1", at(5)), pod("gone"), at(6))
REJECTED = records.rejected(record("no", job_id=None), "no such partition", at(7))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "CachedPods"
    path.mkdir()
    return path


def fill(folder: Path, *found: Record) -> None:
    files.write_together({folder / f"{each.pod_uid}.yaml": sealing.dump(each) for each in found})


def run(command: str, folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["cache", command, str(folder.parent), *arguments])


def rows(command: str, folder: Path) -> Any:
    return json.loads(run(command, folder, "--output", "json").stdout)


def test_a_list_has_a_row_for_each_record(folder: Path) -> None:
    """As JSON for programs: pod, owner, state, job and exit codes."""
    fill(folder, LIVE, DONE, DELETED, REJECTED)

    assert {row["uid"]: (row["state"], row["job_id"], row["exit_codes"]) for row in rows("list", folder)} == {
        "live": ("live", "41", []),
        "done": ("ended", "42", [3]),
        "gone": ("deleting", "j1", []),
        "no": ("rejected", None, []),
    }


def test_a_row_tells_whose_pod_it_is(folder: Path) -> None:
    """By name, and when it changed last."""
    fill(folder, DONE)

    row = rows("list", folder)[0]
    assert (row["pod"], row["owner"], row["updated"]) == ("ns/p", "c/vk", "2026-07-14T10:00:05Z")


def test_a_list_is_a_table_for_people(folder: Path) -> None:
    """One pod a line under a heading, in the same order each time."""
    fill(folder, LIVE, DONE)

    heading, *lines = run("list", folder).stdout.splitlines()
    assert heading.split()[:3] == ["POD", "UID", "OWNER"]
    assert [line.split()[1] for line in lines] == ["done", "live"]


def test_an_empty_directory_has_an_empty_list(folder: Path) -> None:
    """Which is no error."""
    assert rows("list", folder) == []


def test_a_record_is_shown_whole(folder: Path) -> None:
    """As JSON."""
    fill(folder, DONE, LIVE)
    result = run("show", folder, "done")

    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["job_id"], shown["pod"]["metadata"]["uid"]) == (0, "42", "done")


def test_a_record_that_is_not_there_is_one_line(folder: Path) -> None:
    """With the way to find those that are."""
    result = run("show", folder, "other")

    assert result.exit_code == 1
    assert result.stderr == "Error: there is no record of pod other; see `interlink cache list`\n"


def test_a_good_directory_is_verified(folder: Path) -> None:
    """Exit code 0."""
    fill(folder, LIVE)

    assert (run("verify", folder).exit_code, rows("verify", folder)[0]["verdict"]) == (0, "good")


def test_damage_is_told_record_by_record(folder: Path) -> None:
    """Here and what a server has set aside; exit code 1."""
    fill(folder, LIVE)
    (folder / "bad.yaml").write_bytes(b"words")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "old.yaml").touch()

    verdicts = {row["record"]: row["verdict"] for row in rows("verify", folder)}
    assert verdicts == {"live.yaml": "good", "bad.yaml": "damaged", "damaged/old.yaml": "set aside"}
    assert run("verify", folder).exit_code == 1


@pytest.mark.parametrize("command", ["list", "verify"])
def test_looking_changes_nothing(folder: Path, command: str) -> None:
    """Damaged records and leftovers stay where they are: the server may be running."""
    fill(folder, LIVE)
    (folder / "bad.yaml").write_bytes(b"words")
    (folder / ".x.yaml.tmp").touch()
    run(command, folder)

    assert {path.name for path in folder.iterdir()} == {"live.yaml", "bad.yaml", ".x.yaml.tmp"}


def test_a_directory_that_is_no_servers_is_one_line(tmp_path: Path) -> None:
    """It has no CachedPods."""
    result = CliRunner().invoke(main, ["cache", "list", str(tmp_path)])

    assert result.exit_code == 1
    assert result.stderr == f"Error: there is no {tmp_path}/CachedPods; name the directory that holds CachedPods\n"


def test_a_directory_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    """Exit code 2."""
    result = CliRunner().invoke(main, ["cache", "list", str(tmp_path / "absent")])

    assert (result.exit_code, "does not exist" in result.stderr) == (2, True)


def test_the_directory_may_come_from_the_environment(folder: Path) -> None:
    """The same variable as the server's."""
    result = CliRunner(env={"INTERLINK_DIR": str(folder.parent)}).invoke(main, ["cache", "list", "-o", "json"])

    assert (result.exit_code, result.stdout) == (0, "[]\n")


def test_a_record_of_a_newer_program_is_one_line(folder: Path) -> None:
    """It names the file and says what to do."""
    newer = sealing.dump(records.replace(LIVE, at(0), format=99))
    (folder / "live.yaml").write_bytes(newer)
    result = run("list", folder)

    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "use the newer program" in result.stderr
