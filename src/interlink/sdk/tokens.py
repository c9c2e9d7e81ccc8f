"""A bearer token that callers must show, from a file that may be replaced at any time."""

import hmac
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from interlink.model.errors import ConfigurationError
from interlink.sdk.errors import Unreachable

_OPEN = ("/healthz", "/readyz")


def check(file: Path, *, key: str) -> None:
    """Raises ConfigurationError, naming the key, for a file that holds no token now."""
    try:
        read(file)
    except Unreachable as error:
        raise ConfigurationError(f"{key}: {error}") from error


def read(file: Path) -> bytes:
    """Raises Unreachable: without its token a program serves nobody rather than everybody."""
    try:
        token = file.read_bytes().strip()
    except OSError as error:
        raise Unreachable(f"cannot read the token file {file}: {error.strerror}") from error
    if not token:
        raise Unreachable(f"the token file {file} is empty")
    return token


def guard(file: Path) -> Middleware:
    """Only who shows the token is served; whether the program lives and is ready may be asked by everybody."""

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in _OPEN and not _is_shown(request, read(file)):
            raise web.HTTPUnauthorized(text="a bearer token is needed", headers={"WWW-Authenticate": "Bearer"})
        return await handler(request)

    return checked


def _is_shown(request: web.Request, token: bytes) -> bool:
    """Compared in a time that tells nothing about the token."""
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(errors="surrogateescape"), token)
