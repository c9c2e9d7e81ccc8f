"""The cache on a disk that is full: a real file system of its own, made and mounted by the test."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from interlink.testing.programs import Programs
from tests.support.server_client import ServerClient, pod
from tests.support.strange_plugin import StrangePlugin


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """64 KiB, mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root: run the tests as root to include this one")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("this machine does not let root mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_full_disk(
    small_disk: Path, make_server: Callable[..., Programs], session: aiohttp.ClientSession, plugin: StrangePlugin
) -> None:
    """Creates are answered 503 with the reason, nothing reaches the plugin, and all is well when the disk is."""
    programs = make_server(InterlinkDir=str(small_disk / "interlink"))
    programs.start()
    client = ServerClient(session, programs.server_port)
    assert (await client.create(pod()))[0] == 200
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(b"x" * 65536)

    code, text = await client.create(pod())
    assert (code, "No space left" in text) == (503, True)
    assert "No space left" in await client.ready()
    filler.unlink()
    assert (await client.create(pod()))[0] == 200

    assert await client.ready() == "ok"
    assert plugin.calls["create"] == 2
