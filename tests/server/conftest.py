"""The real server as a process of its own, between a strange plugin and a test that speaks as a virtual kubelet.

Names of tests begin with the failures of the existing implementation that they rule out: C a create, S a start of the
virtual kubelet, R running pods, D a delete, `measured` what was seen there on a real cluster; T are the cases of users.
The other failures are not the server's, and are ruled out elsewhere:

  virtual kubelet   C4, C6, S3             tests/unit/kubelet/inputs/test_resolving.py, tests/unit/kubelet/pods/
                    C13, C14, C15, D2, D3  tests/crash/test_failpoints.py, tests/unit/kubelet/pods/test_publishing.py
                    C16, C17, S1, S2       tests/crash/test_fencing.py, test_restarts.py, tests/unit/kube/
                    S4, R3b                tests/e2e/test_workloads.py
                    R4 and R5, the node    tests/unit/kubelet/node/test_nodes.py, tests/e2e/test_workloads.py
                    R12                    tests/unit/model/test_statuses.py
  plugin            C9, R11                tests/slurm/test_exactly_once.py, test_statuses.py
                    R15b, R16              tests/slurm/test_capacity.py, tests/unit/sdk/batch/
  whole             rates of 1,000 pods    benchmarks/sidebyside.py, benchmarks/slurm_jobs.py

C1, C3, S7, S9 and R6 are no failures there, S5 is what Kubernetes does to every node that is silent, and C2 and D9 are
about tunnels, which are not made here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from interlink.testing.programs import Programs
from tests.support.server_client import ServerClient
from tests.support.strange_plugin import StrangePlugin, serving

QUICK = {"StatusInterval": 0.1, "JobLostGrace": 0.5, "SweepInterval": 0.3}


@pytest.fixture
async def plugin() -> AsyncIterator[StrangePlugin]:
    async with serving(StrangePlugin()) as running:
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A connection for each question: a kept one would be stale after a restart of the server."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0)) as opened:
        yield opened


@pytest.fixture
def make_server(plugin: StrangePlugin, tmp_path: Path) -> Iterator[Callable[..., Programs]]:
    """Builds a server for the plugin, with keys of its configuration file; not started."""
    made: list[Programs] = []

    def make(**keys: object) -> Programs:
        programs = Programs(tmp_path, plugin_port=plugin.port, server_keys={**QUICK, **keys})
        made.append(programs)
        return programs

    yield make
    for programs in made:
        programs.stop()


@pytest.fixture
async def server(make_server: Callable[..., Programs]) -> Programs:
    """Running, with short intervals."""
    programs = make_server()
    await start(programs)
    return programs


@pytest.fixture
async def patient(
    make_server: Callable[..., Programs], session: aiohttp.ClientSession, plugin: StrangePlugin
) -> ServerClient:
    """Of a server with an interval of 2 seconds, whose plugin notices news by itself."""
    plugin.notices = True
    programs = make_server(StatusInterval=2)
    await start(programs)
    return ServerClient(session, programs.server_port)


@pytest.fixture
def client(session: aiohttp.ClientSession, server: Programs) -> ServerClient:
    return ServerClient(session, server.server_port)


@pytest.fixture
async def aiohttp_builder() -> AsyncIterator[Callable[[web.Response], Awaitable[tuple[str, list[Any]]]]]:
    """Makes job-script builders that give one answer; with each its URL and what it was asked."""
    runners: list[web.AppRunner] = []

    async def make(answer: web.Response) -> tuple[str, list[Any]]:
        asked: list[Any] = []

        async def build(request: web.Request) -> web.Response:
            asked.append(await request.json())
            return answer

        app = web.Application()
        app.router.add_post("/", build)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/", asked

    yield make
    for runner in runners:
        await runner.cleanup()


async def start(programs: Programs) -> None:
    """Start from the thread of the test: the kernel ties a daemon's life to it."""
    programs.start()
