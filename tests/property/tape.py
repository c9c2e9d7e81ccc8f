"""The calls that reach the operating system, written down, and the disks that a power cut may leave of them.

What POSIX promises and no more: a file's bytes are there once the file has been synced, a name once its directory has.
Changes of a directory that was not synced are there up to some point, of a file that was not synced some beginning.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest


class Call(msgspec.Struct, frozen=True):
    """`what`: create, write, sync, rename, unlink, sync-directory, or a mark of the test's own."""

    what: str
    of: Any
    more: Any = None


Choose = Callable[[str, int], int]
"""Of what ("directory" or "file") so much, at most, is there."""


class Tape:
    """Calls below one folder, in the order in which they were made. A file is a number, a name is a path."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        calls: list[Call] | None = None,
        before: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`calls`: those that have been made, to be gone on with; `before` each call is told what it will be."""
        self.calls = calls if calls is not None else []
        self._before = before
        self._folder = str(folder)
        self._descriptors: dict[int, int | str] = {}
        for name in ("open", "write", "fsync", "close", "replace", "unlink"):
            monkeypatch.setattr(os, name, self._taped(name, getattr(os, name), getattr(self, f"_on_{name}")))

    def _taped(self, name: str, real: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def call(*args: Any, **keys: Any) -> Any:
            self._before(name)
            result = real(*args, **keys)
            note(result, *args)
            return result

        return call

    def mark(self, what: str, of: Any, more: Any = None) -> None:
        self.calls.append(Call(what, of, more))

    def _on_open(self, descriptor: int, path: object, flags: int, *_: object) -> None:
        if not str(path).startswith(self._folder):
            return
        if flags & os.O_DIRECTORY:
            self._descriptors[descriptor] = str(path)
        elif flags & os.O_CREAT:
            self._descriptors[descriptor] = number = len(self.calls)
            self.mark("create", number, str(path))

    def _on_write(self, count: int, descriptor: int, data: Any) -> None:
        if isinstance(number := self._descriptors.get(descriptor), int):
            self.mark("write", number, bytes(data[:count]))

    def _on_fsync(self, _: None, descriptor: int) -> None:
        match self._descriptors.get(descriptor):
            case int(number):
                self.mark("sync", number)
            case str(path):
                self.mark("sync-directory", path)

    def _on_close(self, _: None, descriptor: int) -> None:
        self._descriptors.pop(descriptor, None)

    def _on_replace(self, _: None, source: object, target: object) -> None:
        if str(target).startswith(self._folder):
            self.mark("rename", str(source), str(target))

    def _on_unlink(self, _: None, path: object, *__: object) -> None:
        if str(path).startswith(self._folder):
            self.mark("unlink", str(path))


def after_a_power_cut(calls: Sequence[Call], choose: Choose) -> dict[str, bytes]:
    """A disk that may be found after these calls: bytes by name."""
    names: dict[str, int] = {}
    changes: list[Call] = []
    written: dict[int, bytes] = {}
    synced: dict[int, bytes] = {}
    for call in calls:
        match call.what:
            case "create":
                written[call.of] = synced[call.of] = b""
                changes.append(call)
            case "write":
                written[call.of] += call.more
            case "sync":
                synced[call.of] = written[call.of]
            case "rename" | "unlink":
                changes.append(call)
            case "sync-directory":
                _apply(changes, names)
                changes = []
    _apply(changes[: choose("directory", len(changes))], names)
    return {name: _found(written[number], synced[number], choose) for name, number in names.items()}


def _apply(changes: Sequence[Call], names: dict[str, int]) -> None:
    for change in changes:
        match change.what:
            case "create":
                names[change.more] = change.of
            case "rename":
                names[change.more] = names.pop(change.of)
            case "unlink":
                del names[change.of]


def _found(written: bytes, synced: bytes, choose: Choose) -> bytes:
    return written[: len(synced) + choose("file", len(written) - len(synced))]
