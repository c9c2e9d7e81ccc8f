"""What libraries say through `logging`, in the form of our own lines: each record is one line, a traceback included."""

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor


def handler(renderer: Processor) -> logging.Handler:
    """Writes to stderr. Give it to the root logger."""
    made = logging.StreamHandler(sys.stderr)
    made.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _named,
                renderer,
            ],
        )
    )
    return made


def _named(_: object, __: str, event: EventDict) -> EventDict:
    """An event is one of ours; what a library says is its message."""
    return {**event, "event": "library", "message": event["event"]}
