"""What a program spends its time on, over HTTP on loopback: off unless it is switched on, by the keys and variables of
the existing programs."""

import asyncio
import contextlib
import cProfile
import io
import pstats
from collections.abc import AsyncIterator, Mapping

import msgspec
from aiohttp import web

from interlink.model.errors import ConfigurationError
from interlink.sdk import addresses, hosting
from interlink.sdk.addresses import Address

_LONGEST_S = 300.0
_LINES = 60


class PprofFile(msgspec.Struct, frozen=True, rename="pascal"):
    enabled: bool = False
    address: str = ""
    port: str | int = ""


def address(file: PprofFile, environment: Mapping[str, str], *, port: int, source: str) -> Address | None:
    """Where to serve; None when it is off. The environment wins. Raises ConfigurationError naming the key."""
    if not (file.enabled or environment.get("ENABLE_PPROF", "").lower() == "true"):
        return None
    host = environment.get("PPROF_ADDRESS") or file.address or "127.0.0.1"
    if "/" in host or ":" in host:
        raise ConfigurationError(f"{source}: Pprof.Address: {host!r} must be a bare host name or IPv4 address")
    wanted = environment.get("PPROF_PORT") or file.port or port
    return addresses.parse(f"http://{host}", wanted, key=f"{source}: Pprof.Port")


@contextlib.asynccontextmanager
async def serving(where: Address | None) -> AsyncIterator[None]:
    """Serve while the context lasts. Raises ConfigurationError when the address cannot be taken."""
    if where is None:
        yield
        return
    found = [web.get("/debug/pprof/profile", _profile), web.get("/debug/pprof/goroutine", _tasks)]
    async with hosting.serving(hosting.application(found, readiness=list), where):
        yield


async def _profile(request: web.Request) -> web.Response:
    """The functions that took most time within `seconds` (30 when not given), of everything on the event loop."""
    text = request.query.get("seconds", "30")
    seconds = float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise web.HTTPBadRequest(text=f"seconds: {text[:20]!r} must be a number up to {_LONGEST_S:.0f}\n")
    profile = cProfile.Profile()
    try:
        profile.enable()
    except ValueError as error:
        raise web.HTTPConflict(text="another profile is being taken; try again later\n") from error
    try:
        await asyncio.sleep(seconds)
    finally:
        profile.disable()
    out = io.StringIO()
    pstats.Stats(profile, stream=out).sort_stats("cumulative").print_stats(_LINES)
    return web.Response(text=out.getvalue())


async def _tasks(_: web.Request) -> web.Response:
    """Where each task stands: what goroutines are elsewhere."""
    out = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        task.print_stack(file=out)
        out.write("\n")
    return web.Response(text=out.getvalue())
