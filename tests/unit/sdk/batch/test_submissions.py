"""Whether the outcome of a submission is known: the mark of the attempt against the id."""

import os
from pathlib import Path

import pytest

from interlink.model.ids import JobID
from interlink.sdk.batch.jobdir import JobDirectory


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    return JobDirectory(tmp_path)


def tried(directory: JobDirectory, at_s: float) -> None:
    directory.begin_submission()
    os.utime(directory.path / "submitting", (at_s, at_s))


def answered(directory: JobDirectory, at_s: float) -> None:
    directory.remember(JobID("7"))
    os.utime(directory.path / "job-id", (at_s, at_s))


def test_an_attempt_without_an_id_has_an_unknown_outcome(directory: JobDirectory) -> None:
    """Somebody died between the two."""
    assert directory.unknown_submission_at() is None
    tried(directory, 100.0)

    assert directory.unknown_submission_at() == 100.0


@pytest.mark.parametrize("answered_at_s", [100.0, 100.5])
def test_an_id_makes_it_known(directory: JobDirectory, answered_at_s: float) -> None:
    """Also in the same instant, as file systems count time."""
    tried(directory, 100.0)
    answered(directory, answered_at_s)

    assert directory.unknown_submission_at() is None


def test_an_attempt_after_the_id_is_another_one(directory: JobDirectory) -> None:
    """A job that was forgotten and submitted again."""
    tried(directory, 100.0)
    answered(directory, 100.5)
    tried(directory, 200.0)

    assert directory.unknown_submission_at() == 200.0


def test_a_refused_attempt_is_none(directory: JobDirectory) -> None:
    """Nothing can come of it any more."""
    tried(directory, 100.0)
    directory.end_submission()

    assert directory.unknown_submission_at() is None


def test_an_answered_submission_removes_no_file(directory: JobDirectory) -> None:
    """A file system that loses a file for each job it takes becomes slow at making new ones."""
    directory.begin_submission()
    before = set(directory.path.iterdir())
    directory.remember(JobID("7"))

    assert set(directory.path.iterdir()) == before | {directory.path / "job-id"}
