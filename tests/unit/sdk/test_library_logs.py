"""What libraries log comes out as lines of ours."""

import json
import logging

import structlog

from interlink.sdk import library_logs


def line(message: str, *args: object, error: BaseException | None = None) -> str:
    exc_info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("asyncio", logging.WARNING, "f", 1, message, args, exc_info)
    return library_logs.handler(structlog.processors.JSONRenderer()).format(record)


def test_a_record_is_one_json_object() -> None:
    """Whatever it holds: quotes, line ends, and things put into its text."""
    found = json.loads(line('a "%s"\n%d', "b\x1b", 2))

    assert (found["event"], found["message"], found["logger"], found["level"]) == (
        "library", 'a "b\x1b"\n2', "asyncio", "warning"
    )  # fmt: skip


def test_a_traceback_is_a_part_of_its_object() -> None:
    """So that the line stays one."""
    try:
        int("no number")
    except ValueError as error:
        text = line("broken", error=error)

    assert "\n" not in text
    assert "no number" in json.loads(text)["exception"]
