"""Running the checks, one after the other."""

import enum
import time
from collections.abc import AsyncGenerator, Sequence

import msgspec

from interlink.sdk.conformance import checks
from interlink.sdk.conformance.check import CHECKS, Broken, Check, Level, NotApplicable
from interlink.sdk.conformance.subject import Subject
from interlink.sdk.errors import SDKError

__all__ = ["Outcome", "Result", "chosen", "run", "run_one"]

_ = checks  # importing it has filled the list


class Outcome(enum.Enum):
    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    SKIPPED = "skipped"


class Result(msgspec.Struct, frozen=True):
    """`message`: what was wrong, or why the check was not made."""

    check: str
    promise: str
    level: Level
    outcome: Outcome
    message: str
    seconds: float


def chosen(names: Sequence[str]) -> list[Check]:
    """The checks whose names contain one of these words; all when there are none."""
    return [check for check in CHECKS if not names or any(name in check.name for name in names)]


async def run(subject: Subject, wanted: Sequence[Check]) -> AsyncGenerator[Result]:
    """A result for each check as soon as it is there."""
    for check in wanted:
        yield await run_one(subject, check)


async def run_one(subject: Subject, check: Check) -> Result:
    started = time.monotonic()
    outcome, message = Outcome.PASSED, ""
    try:
        async with subject.one_check():
            await check.run(subject)
    except NotApplicable as reason:
        outcome, message = Outcome.SKIPPED, str(reason)
    except Broken as reason:
        outcome, message = _unkept(check), str(reason)
    except (SDKError, msgspec.MsgspecError) as error:
        outcome, message = _unkept(check), f"{type(error).__name__}: {error}"
    return Result(
        check=check.name,
        promise=check.promise,
        level=check.level,
        outcome=outcome,
        message=message,
        seconds=round(time.monotonic() - started, 2),
    )


def _unkept(check: Check) -> Outcome:
    return Outcome.FAILED if check.level is Level.MUST else Outcome.WARNING
