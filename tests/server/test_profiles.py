"""Profiles of the running server, by the keys of the existing one."""

from collections.abc import Callable

import aiohttp

from interlink.testing import ports
from interlink.testing.programs import Programs


async def test_profiles(make_server: Callable[..., Programs], session: aiohttp.ClientSession) -> None:
    """What it spends its time on, and where its tasks stand; wrong questions are refused."""
    port = ports.free()
    make_server(Pprof={"Enabled": True, "Port": port}).start()
    url = f"http://127.0.0.1:{port}/debug/pprof"

    async with session.get(f"{url}/profile?seconds=0.3") as answer:
        assert (answer.status, "cumtime" in await answer.text()) == (200, True)
    async with session.get(f"{url}/goroutine") as answer:
        assert (answer.status, "polling.py" in await answer.text() or "supervising.py" in await answer.text()) == (
            200,
            True,
        )
    async with session.get(f"{url}/profile?seconds=soon") as answer:
        assert answer.status == 400


async def test_profiles_are_off_unless_they_are_wanted(
    make_server: Callable[..., Programs], session: aiohttp.ClientSession
) -> None:
    """The server's own port has none."""
    programs = make_server()
    programs.start()

    async with session.get(f"http://127.0.0.1:{programs.server_port}/debug/pprof/profile") as answer:
        assert answer.status == 404
