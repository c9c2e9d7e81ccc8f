"""Containers by Charliecloud in jobs of this host's Slurm."""

import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlink.testing import images
from interlink.testing.errors import UnavailableError
from interlink.testing.slurm import SlurmSite
from tests.support.slurm import Bench


@pytest.fixture
async def bench(site: SlurmSite, tmp_path: Path) -> AsyncIterator[Bench]:
    """The plugin with Charliecloud, and an image in its table."""
    if shutil.which("ch-run") is None:
        pytest.skip("no Charliecloud: run tools/setup.sh containers as root on Debian (package charliecloud)")
    try:
        image = images.busybox_root(tmp_path / "image")
    except UnavailableError as error:
        pytest.skip(str(error))
    folder = Path(site.folder) / f"jobs-{secrets.token_hex(4)}"
    site.await_idle()
    found = Bench(site, folder, ContainerRuntime="charliecloud", Images={"bb:*": str(image)})
    yield found
    await found.end()
    shutil.rmtree(folder, ignore_errors=True)


def container(script: str, **extra: Any) -> dict[str, Any]:
    return {"name": "c0", "image": "bb:1", "command": ["/bin/sh", "-c", script], **extra}


async def test_a_pod_runs_in_its_image(bench: Bench) -> None:
    """With its volumes and its exit code; Slurm's own variables stay outside."""
    script = "cat /etc/of-the-image; echo x > /data/f; env | grep -c SLURM; exit 42"
    mounted = container(script, volumeMounts=[{"name": "v", "mountPath": "/data"}])
    uid = await bench.start(containers=[mounted], volumes=[{"name": "v", "emptyDir": {}}])
    await bench.wait(uid, "42 Error")

    assert await bench.logs(uid) == "busybox\n0\n"


async def test_a_readiness_probe_in_the_image(bench: Bench) -> None:
    """It sees the container's /tmp; deleted, the program gets TERM."""
    probe = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1}
    script = "trap 'echo bye; exit 0' TERM; touch /tmp/up; while :; do sleep 0.1; done"
    uid = await bench.start(containers=[container(script, readinessProbe=probe)])
    await bench.wait(uid, "running")
    await bench.until_ready(uid)

    await bench.delete(uid, grace_s=20)

    await bench.wait(uid, "0 Completed")
    assert await bench.logs(uid) == "bye\n"


async def test_the_sites_own_gpus_are_told(bench: Bench) -> None:
    """Which of the node's GPUs are the job's reaches the container."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    uid = await bench.start(containers=[container("echo $CUDA_VISIBLE_DEVICES", **limits)])
    await bench.wait(uid, "0 Completed")

    assert await bench.logs(uid) == "0,1\n"
