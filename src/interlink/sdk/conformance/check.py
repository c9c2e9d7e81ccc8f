"""What a check is: a promise of the contract, and a coroutine that finds out whether a plugin keeps it."""

import enum
from collections.abc import Awaitable, Callable

import msgspec

from interlink.sdk.conformance.subject import Subject


class Broken(Exception):
    """The promise is not kept; the text says what was expected and what came."""


class NotApplicable(Exception):
    """The check cannot be made; the text says what is missing."""


class Level(enum.Enum):
    """A server loses, doubles or misreports jobs without a MUST; without a SHOULD its users miss something."""

    MUST = "must"
    SHOULD = "should"


class Check(msgspec.Struct, frozen=True):
    name: str
    promise: str
    level: Level
    run: Callable[[Subject], Awaitable[None]]


CHECKS: list[Check] = []


def must(run: Callable[[Subject], Awaitable[None]]) -> Callable[[Subject], Awaitable[None]]:
    return _added(run, Level.MUST)


def should(run: Callable[[Subject], Awaitable[None]]) -> Callable[[Subject], Awaitable[None]]:
    return _added(run, Level.SHOULD)


def _added(run: Callable[[Subject], Awaitable[None]], level: Level) -> Callable[[Subject], Awaitable[None]]:
    """The function's name and docstring are the check's name and promise."""
    promise = " ".join((run.__doc__ or "").split())
    CHECKS.append(Check(name=run.__name__.replace("_", "-"), promise=promise, level=level, run=run))
    return run


def expect(condition: object, what: str) -> None:
    """Raises Broken with `what` unless the condition holds."""
    if not condition:
        raise Broken(what)
