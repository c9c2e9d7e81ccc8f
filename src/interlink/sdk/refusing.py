"""What the log says of requests that are broken or refused: one line each, without a traceback.

A broken one is a warning, one that was understood and refused is information. That there is no such pod is an ordinary
answer between our programs, and so is that a program has not a route of our own dialect: neither is told.
"""

import logging

import structlog
from aiohttp import http_exceptions, web

from interlink.wire import messages

log = structlog.get_logger(__name__)

_LONGEST_REASON = 300


def broken(request: web.Request, status: int, reason: str) -> None:
    """A request that cannot be read."""
    log.warning("request.invalid", method=request.method, path=request.path, status=status, reason=_short(reason))


def refused(request: web.Request, status: int, reason: str) -> None:
    """A request that can be read, and is not granted. Faults of our own are told where they come from."""
    if 400 <= status < 500 and not _is_ordinary(request.path, status):
        log.info("request.refused", method=request.method, path=request.path, status=status, reason=_short(reason))


def _is_ordinary(path: str, status: int) -> bool:
    return status in (404, 405) and path.startswith(messages.OWN_ROUTES)


def _short(reason: str) -> str:
    """On one line, whatever its client has written into it."""
    return " ".join(reason.split())[:_LONGEST_REASON]


class _Lines(logging.Handler):
    """What aiohttp logs, as lines of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, http_exceptions.HttpProcessingError):
            remote = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
            log.warning("request.invalid", remote=remote, status=error.code, reason=_short(error.message))
        elif record.levelno >= logging.WARNING and not isinstance(error, web.RequestPayloadError):
            log.error("http.failed", reason=record.getMessage(), exc_info=error)


def library_logger() -> logging.Logger:
    """For aiohttp: bytes that are no HTTP never become a request, so only it can tell of them.

    A body that cannot be read is told where it is read.
    """
    logger = logging.Logger("interlink.http", logging.DEBUG)
    logger.addHandler(_Lines())
    return logger
