"""Running an HTTP application on an address: sockets, health, metrics, errors as answers, signals."""

import asyncio
import contextlib
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import prometheus_client
import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from interlink.model.errors import ConfigurationError, ModelError
from interlink.sdk import refusing
from interlink.sdk.addresses import Address
from interlink.sdk.errors import NotFound, OutcomeUnknown, Overloaded, Refused, Rejected, SDKError, Unreachable
from interlink.sdk.handshaking import Handshakes
from interlink.wire import codec

log = structlog.get_logger(__name__)

BODY_LIMIT_BYTES = 64 * 1024 * 1024
BODY_WITHIN_S = 100.0
Readiness = Callable[[], Sequence[str]]

REQUESTS = prometheus_client.Histogram(
    "interlink_http_request_seconds", "Time to answer a request.", ["route", "code"], buckets=(0.005, 0.05, 0.5, 5, 50)
)

_ANSWERS: dict[type[SDKError], tuple[int, str]] = {
    Rejected: (422, "rejected"),
    Refused: (409, "conflict"),
    NotFound: (404, "not_found"),
    Unreachable: (503, "unreachable"),
    Overloaded: (429, "unreachable"),
    OutcomeUnknown: (502, "unknown"),
}


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(
    routes: Sequence[web.RouteDef],
    *,
    readiness: Readiness,
    body_limit_bytes: int = BODY_LIMIT_BYTES,
    guard: Middleware | None = None,
) -> web.Application:
    """An application with `routes`, `/healthz`, `/readyz` (503 and the problems while there are any) and `/metrics`.

    `guard` sees every request before its route, those for routes that do not exist as well.
    """

    async def readyz(_: web.Request) -> web.Response:
        problems = readiness()
        return web.Response(text="\n".join(problems) or "ok", status=503 if problems else 200)

    app = web.Application(
        client_max_size=body_limit_bytes,
        middlewares=[_measured, _errors_as_answers, *([guard] if guard else []), _whole],
    )
    app.add_routes([web.get("/healthz", _healthz), web.get("/readyz", readyz), web.get("/metrics", _metrics)])
    app.add_routes(routes)
    app[_WAITING] = _Waiting()
    app.on_shutdown.append(_end_waiting)
    return app


class _Waiting:
    """The tasks of requests that wait for news."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[object]] = set()


_WAITING = web.AppKey("waiting", _Waiting)


@contextlib.contextmanager
def waiting_for_news(request: web.Request) -> Iterator[None]:
    """Mark a request that lasts as long as its client likes: when the program stops it is ended, not waited for."""
    task = asyncio.current_task()
    assert task is not None
    waiting = request.app[_WAITING].tasks
    waiting.add(task)
    try:
        yield
    finally:
        waiting.discard(task)


async def _end_waiting(app: web.Application) -> None:
    for task in list(app[_WAITING].tasks):
        task.cancel()


async def _healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _metrics(_: web.Request) -> web.Response:
    return web.Response(body=prometheus_client.generate_latest(), content_type="text/plain", charset="utf-8")


@web.middleware
async def _measured(request: web.Request, handler: Handler) -> web.StreamResponse:
    started = time.monotonic()
    route = request.match_info.route.resource
    name = route.canonical if route else "unknown"
    code = "500"
    try:
        response = await handler(request)
        code = str(response.status)
        return response
    except web.HTTPException as answer:
        code = str(answer.status)
        raise
    finally:
        REQUESTS.labels(name, code).observe(time.monotonic() - started)


@web.middleware
async def _errors_as_answers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever goes wrong with one request becomes its answer; the process goes on."""
    try:
        return await handler(request)
    except SDKError as error:
        status, kind = _ANSWERS.get(type(error), (502, "unknown"))
        if not isinstance(error, NotFound):
            refusing.refused(request, status, str(error))
        return _problem(status, kind, str(error))
    except (codec.InvalidMessage, ModelError, web.RequestPayloadError) as error:
        refusing.broken(request, 400, str(error))
        return _problem(400, "invalid", str(error))
    except web.HTTPRequestEntityTooLarge as answer:
        refusing.broken(request, answer.status, answer.text or answer.reason)
        raise
    except web.HTTPException as answer:
        refusing.refused(request, answer.status, answer.text or answer.reason)
        raise
    except (asyncio.CancelledError, ConnectionResetError):
        raise
    except Exception as error:  # the outer edge of a request
        log.error("request.failed", path=request.path, error=repr(error), exc_info=True)
        return _problem(500, "unknown", f"internal error: {type(error).__name__}; the log of this program has more")


@web.middleware
async def _whole(request: web.Request, handler: Handler) -> web.StreamResponse:
    """No route begins before its request is there: one whose rest does not come holds nobody, one that cannot be read
    is answered also where the route does not look at it."""
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            await request.read()
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(text=f"the body did not come within {BODY_WITHIN_S:.0f} s") from error
    return await handler(request)


def _problem(status: int, kind: str, message: str) -> web.Response:
    return web.Response(status=status, body=codec.problem(kind, message), content_type="application/json")


@contextlib.asynccontextmanager
async def serving(app: web.Application, address: Address, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve until the context is left, then let requests in flight finish (10 s at most). Yields the port (0: socket).

    Raises ConfigurationError when the address cannot be taken.
    """
    listener = _listener(address)
    runner = web.AppRunner(
        app, access_log=None, logger=refusing.library_logger(), shutdown_timeout=10, handler_cancellation=True
    )
    try:
        await runner.setup()
        async with _accepting(runner, listener, tls):
            yield 0 if address.socket else listener.getsockname()[1]
    finally:
        await runner.cleanup()
        listener.close()
        if address.socket:
            Path(address.socket).unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def _accepting(runner: web.AppRunner, listener: socket.socket, tls: ssl.SSLContext | None) -> AsyncIterator[None]:
    assert runner.server is not None
    handshakes = Handshakes(runner.server, tls) if tls else None
    server = await asyncio.get_running_loop().create_server(handshakes or runner.server, sock=listener, backlog=1024)
    try:
        yield
    finally:
        server.close()
        if handshakes:
            handshakes.close()


def _listener(address: Address) -> socket.socket:
    try:
        if address.socket:
            return _unix_listener(Path(address.socket))
        return socket.create_server((address.host, address.port), backlog=1024, reuse_port=False)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {address}: {error.strerror or error}") from error


def _unix_listener(path: Path) -> socket.socket:
    """A socket file that nobody answers is left over from a crash and is replaced; anything else is left alone."""
    if path.is_socket():
        _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
    except OSError:
        listener.close()
        raise
    return listener


def _remove_stale(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        else:
            raise ConfigurationError(f"another process listens on unix://{path}; stop it or choose another socket")


def stop_signal() -> asyncio.Event:
    """Set at SIGTERM or SIGINT, from now on."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopped)
    return stopped


def _stop(stopped: asyncio.Event) -> None:
    log.info("process.stopping")
    stopped.set()
