"""A plugin of the existing Python SDK under our server and virtual kubelet, as it is."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from interlink.testing import Cluster
from interlink.testing.programs import Programs
from tests.support.existing_plugin import Provider
from tests.support.pods import Pods, exit_codes


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[tuple[Provider, int]]:
    """Running in a thread of its own, as the tests use kubectl."""
    folder = tmp_path / "provider"
    folder.mkdir()
    provider, ports, is_over = Provider(folder), [0], threading.Event()
    is_up = threading.Event()

    async def serve() -> None:
        runner = web.AppRunner(provider.app())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports[0] = runner.addresses[0][1]
        is_up.set()
        await asyncio.to_thread(is_over.wait)
        await provider.end()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_up.wait(10)
    yield provider, ports[0]
    is_over.set()
    thread.join()


@pytest.fixture
def stopped_programs(
    tmp_path: Path, cluster: Cluster, node_name: str, provider: tuple[Provider, int]
) -> Iterator[Programs]:
    """Server and virtual kubelet for that plugin."""
    keys = {"SidecarTakesLists": True}
    with Programs(
        tmp_path, cluster=cluster, node_name=node_name, plugin_port=provider[1], server_keys=keys
    ) as programs:
        yield programs
    cluster.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


def test_pods_of_a_plugin_made_with_the_existing_sdk(
    pods: Pods, provider: tuple[Provider, int], stopped_programs: Programs
) -> None:
    """They run, end with their codes, have logs, are deleted; each is submitted once, also over a server's restart."""
    pods.start("good", "echo hello")
    pods.start("bad", "exit 7")
    pods.start("long", "sleep 600")

    assert exit_codes(pods.wait("good", "Succeeded")["status"]["containerStatuses"]) == {"c0": 0}
    assert exit_codes(pods.wait("bad", "Failed")["status"]["containerStatuses"]) == {"c0": 7}
    assert pods.kubectl("logs", "good") == "hello\n"
    pods.wait("long", "Running")
    stopped_programs.server.restart()
    pods.start("late", "exit 0")
    pods.wait("late", "Succeeded")
    assert pods.get("long")["status"]["phase"] == "Running"
    pods.kubectl("delete", "pod", "long", "--timeout=40s")

    assert len(provider[0].submissions) == 4
    pods.assert_started_once(4)
