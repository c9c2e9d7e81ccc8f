"""A record on disk: what is written is read back, and nothing else is believed."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlink.model import records, sealing
from interlink.model.errors import DamagedRecord, NewerFormat
from interlink.model.ids import JobID, Owner
from interlink.model.records import FORMAT, Record
from tests.unit.builders import NOW, at, pod, raws, record, running
from tests.unit.guessing import few

names = st.text(st.characters(codec="utf-8"), max_size=20)
known_records = st.builds(
    lambda name, node, job_id, seconds: records.observed(
        records.accepted(
            records.begun(pod(metadata={"name": name}), Owner("c", node), at(seconds)), JobID(job_id), NOW
        ),
        raws(running(name)),
        [],
        job_id,
        at(seconds),
    ),
    names,
    names,
    names,
    st.floats(min_value=0, max_value=1e6),
)
EXAMPLE = records.rejected(record(job_id=None), "größer als erlaubt\n", at(0.123456))
SEALED = sealing.dump(EXAMPLE)
BLANKS = b" \n\t\r"


@few
@given(known_records)
def test_a_record_reads_back_as_it_was_written(known: Record) -> None:
    """Every character of every field survives the way to the disk and back."""
    assert sealing.load(sealing.dump(known)) == known


def test_a_sealed_record_is_yaml_for_people() -> None:
    """The file is indented JSON, which every YAML reader understands."""
    document = yaml.safe_load(SEALED)

    assert document["record"]["rejected"] == "größer als erlaubt\n"
    assert SEALED.count(b"\n") > 10


@few
@given(st.integers(min_value=0, max_value=len(SEALED) - 1))
def test_a_truncated_record_is_damaged(length: int) -> None:
    """A file that ends early is never taken for a record, unless only white space is missing."""
    try:
        found = sealing.load(SEALED[:length])
    except DamagedRecord:
        return
    assert found == EXAMPLE


@few
@given(st.integers(min_value=0, max_value=len(SEALED) - 1), st.integers(min_value=0, max_value=255))
def test_a_record_with_a_changed_byte_is_damaged(place: int, value: int) -> None:
    """One wrong byte anywhere outside white space is noticed, or it changes nothing that the record says."""
    if SEALED[place] in BLANKS:
        return
    try:
        found = sealing.load(SEALED[:place] + bytes([value]) + SEALED[place + 1 :])
    except DamagedRecord:
        return
    assert found == EXAMPLE


@few
@given(st.binary(max_size=60))
def test_no_bytes_break_the_reading(data: bytes) -> None:
    """Whatever lies in the place of a record is damaged, and that is all."""
    with pytest.raises(DamagedRecord):
        sealing.load(data)


DEEP = b'{"checksum": "x", "record": ' + b"[" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'{"checksum": "x"}',
        b'{"checksum": 1, "record": {}}',
        b'{"checksum": "sha256:00", "record": {}}',
        SEALED + SEALED,
        SEALED.replace("größer".encode(), b"kleiner"),
        pytest.param(DEEP, id="deep"),
    ],
)
def test_what_was_not_written_by_us_is_damaged(data: bytes) -> None:
    """Empty, foreign, edited, doubled and endlessly nested files are refused with a reason."""
    with pytest.raises(DamagedRecord, match=r"\w"):
        sealing.load(data)


def test_a_record_of_a_newer_program_is_refused() -> None:
    """An older program would drop what it does not know, so it stops and says what to do."""
    newer = msgspec.structs.replace(EXAMPLE, format=FORMAT + 1)

    with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}.*use the newer program"):
        sealing.load(sealing.dump(newer))


def test_white_space_is_not_part_of_the_seal() -> None:
    """A record that an editor has indented anew is still the record."""
    assert sealing.load(msgspec.json.format(SEALED, indent=8)) == EXAMPLE


# --- migrations ------------------------------------------------------------------------------------------------------

Old = dict[str, Any]
TODAY = msgspec.json.decode(msgspec.json.encode(EXAMPLE))


def old(number: int, **changes: Any) -> bytes:
    return msgspec.json.encode(TODAY | {"format": number} | changes)


def named_kind(old_record: Old) -> Old:
    """From 1 to 2: `rejected` was called `refused`."""
    return {**old_record, "format": 2, "rejected": old_record.pop("refused")}


def counted(old_record: Old) -> Old:
    """From 2 to 3: records got an attempt."""
    return {**old_record, "format": 3, "attempt": len(old_record["rejected"])}


MIGRATIONS = {1: named_kind, 2: counted}


@pytest.mark.parametrize(
    ("body", "attempt"),
    [(old(1, refused="abc", rejected=None), 3), (old(2, rejected="ab"), 2), (old(3, rejected="ab"), 0)],
)
def test_an_old_record_is_brought_up_to_date_step_by_step(body: bytes, attempt: int) -> None:
    """Each migration leads to the next format, and a record enters the chain where its format is."""
    found = sealing.migrated(body, 3, MIGRATIONS)

    assert (found.format, found.attempt) == (3, attempt)


@pytest.mark.parametrize("number", [0, -1])
def test_a_format_that_never_was_is_damage(number: int) -> None:
    """Where no migration begins, the record is set aside and not guessed at."""
    with pytest.raises(DamagedRecord, match="not a record of format 3"):
        sealing.migrated(old(number), 3, MIGRATIONS)


def test_a_record_that_lacks_what_a_migration_needs_is_damage() -> None:
    """A migration that finds its field missing refuses the record."""
    with pytest.raises(DamagedRecord):
        sealing.migrated(old(1), 3, MIGRATIONS)


def test_there_is_a_migration_from_every_format_that_was_ever_written() -> None:
    """A record of any earlier release can be read by this one."""
    assert set(sealing._MIGRATIONS) == set(range(1, FORMAT))
