"""A record as bytes: indented JSON, which is valid YAML, under a checksum; and back, trusting nothing.

A record of an older format is brought up to date step by step; one of a newer format is refused, because an older
program would drop what it does not know.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from interlink.model.errors import DamagedRecord, NewerFormat
from interlink.model.records import FORMAT, Record

Migration = Callable[[dict[str, Any]], dict[str, Any]]
_MIGRATIONS: Mapping[int, Migration] = {}
"""From a format to the next one."""


class _Sealed(msgspec.Struct, frozen=True):
    checksum: str
    record: Raw


class _Versioned(msgspec.Struct, frozen=True):
    format: int


def dump(record: Record) -> bytes:
    body = msgspec.json.format(msgspec.json.encode(record), indent=-1)
    sealed = msgspec.json.encode(_Sealed(checksum=_checksum(body), record=Raw(body)))
    return msgspec.json.format(sealed, indent=2) + b"\n"


def load(data: bytes) -> Record:
    """Raises DamagedRecord, with the reason, for anything that is not what `dump` wrote; NewerFormat."""
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        body = msgspec.json.format(bytes(sealed.record), indent=-1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedRecord(f"not a record: {error}") from error
    if _checksum(body) != sealed.checksum:
        raise DamagedRecord("the checksum does not match")
    return migrated(body, FORMAT, _MIGRATIONS)


def migrated(body: bytes, newest: int, migrations: Mapping[int, Migration]) -> Record:
    """The record in `body`, brought to the format `newest`. Raises NewerFormat and DamagedRecord."""
    try:
        found = msgspec.json.decode(body, type=_Versioned).format
        if found > newest:
            raise NewerFormat(
                f"it has format {found}, this program knows formats up to {newest}: use the newer program, or move the"
                " record away (the virtual kubelet brings its pod back)"
            )
        for number in range(found, newest):
            body = msgspec.json.encode(migrations[number](msgspec.json.decode(body)))
        return msgspec.json.decode(body, type=Record)
    except (msgspec.MsgspecError, KeyError) as error:
        raise DamagedRecord(f"not a record of format {newest}: {error}") from error


def _checksum(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()
