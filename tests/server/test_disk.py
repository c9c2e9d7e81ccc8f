"""The cache on a disk that is full: a real file system of its own, made and mounted by the test."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from interlink.testing.programs import Programs
from interlink.testing.waiting import until_async
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


@pytest.fixture
def cache_mount(tmp_path: Path) -> Iterator[Path]:
    """A directory `CachedPods` that can be made read-only under the running server: a mount of its own."""
    folder = tmp_path / "interlink" / "CachedPods"
    folder.mkdir(parents=True)
    if os.geteuid() != 0:
        pytest.skip("mounting needs root: run the tests as root to include this one")
    done = subprocess.run(["mount", "--bind", str(folder), str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("this machine does not let root make a bind mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,bind,{how}", str(folder)], check=True)


async def test_read_only_disk(
    cache_mount: Path, make_server: Callable[..., Programs], session: aiohttp.ClientSession, plugin: StrangePlugin
) -> None:
    """As on a file system that the kernel made read-only after an error: nothing is promised, pods keep their states,
    and all is well when it is repaired."""
    programs = make_server()
    programs.start()
    client = ServerClient(session, programs.server_port)
    known = pod()
    assert (await client.create(known))[0] == 200
    remount(cache_mount, "ro")

    code, text = await client.create(pod())
    assert (code, "Read-only file system" in text) == (503, True)
    assert "Read-only file system" in await client.ready()
    assert len(await client.status(known)) == 1
    assert plugin.calls["create"] == 1
    remount(cache_mount, "rw")

    assert (await client.create(pod()))[0] == 200
    assert await until_async(lambda: is_ready(client), deadline_s=20)


async def is_ready(client: ServerClient) -> bool:
    """A round of the interval that failed is tried again after a pause."""
    return await client.ready() == "ok"


FAILING_FSYNC = """
import errno, os
_fsync = os.fsync
def fsync(fd):
    if os.path.exists({switch!r}):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return _fsync(fd)
os.fsync = fsync
"""


async def test_failing_fsync(
    tmp_path: Path, make_server: Callable[..., Programs], session: aiohttp.ClientSession, plugin: StrangePlugin
) -> None:
    """A disk that takes data and fails to keep it is no disk: what was not synced is not promised."""
    switch = tmp_path / "fails"
    (tmp_path / "sitecustomize.py").write_text(FAILING_FSYNC.format(switch=str(switch)))
    programs = make_server()
    programs.server.environ["PYTHONPATH"] = str(tmp_path)
    programs.start()
    client = ServerClient(session, programs.server_port)
    assert (await client.create(pod()))[0] == 200
    switch.touch()

    code, text = await client.create(pod())
    assert (code, "Input/output error" in text) == (503, True)
    assert "Input/output error" in await client.ready()
    assert plugin.calls["create"] == 1
    switch.unlink()

    assert (await client.create(pod()))[0] == 200
    assert await until_async(lambda: is_ready(client), deadline_s=20)
