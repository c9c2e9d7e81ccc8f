"""Bytes to messages and back, tolerant as the existing contract asks: one object or a list of one, null for a list."""

from typing import Any, TypeVar

import msgspec

from interlink.wire import messages

T = TypeVar("T")
encode = msgspec.json.Encoder().encode


class InvalidMessage(Exception):
    """A body that is not the message it should be; the text names the place."""


def decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessage(f"{_name(kind)}: {error}") from error


def decode_one(body: bytes, kind: type[T]) -> T:
    """One object, or a list of exactly one."""
    if not body.lstrip().startswith(b"["):
        return decode(body, kind)
    items = decode(body, list[kind])  # type: ignore[valid-type]
    if len(items) != 1:
        raise InvalidMessage(f"{_name(kind)}: a list of {len(items)}, expected one object or a list of one")
    return items[0]


def decode_list(body: bytes, kind: type[T]) -> list[T]:
    """A list; `null` and an empty body are the empty list."""
    if not body.strip():
        return []
    return decode(body, list[kind] | None) or []  # type: ignore[arg-type, valid-type]


def decode_each(body: bytes, kind: type[T]) -> tuple[list[T], list[str]]:
    """A list whose entries are read one by one: the good ones, and a sentence for each bad one."""
    good: list[T] = []
    bad: list[str] = []
    for raw in decode_list(body, msgspec.Raw):
        try:
            good.append(decode(bytes(raw), kind))
        except InvalidMessage as error:
            bad.append(str(error))
    return good, bad


def problem(kind: str, message: str) -> bytes:
    return encode(messages.Problem(kind=kind, message=message))


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
