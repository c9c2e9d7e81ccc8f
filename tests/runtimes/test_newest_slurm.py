"""The newest Slurm with Apptainer: jobs of an ordinary user, from images as files and as directories."""

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlink.testing import apptainer, images
from interlink.testing.apptainer import USER, ApptainerRoot
from interlink.testing.errors import UnavailableError
from interlink.testing.newest_slurm import NewestSlurmSite
from tests.support.slurm import Bench

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NewestSlurmSite, Path]]:
    """The site, and a folder that its nodes share with the plugin."""
    try:
        root = apptainer.found()
        folder = tmp_path_factory.mktemp("newest")
        folder.chmod(0o755)
        (folder / "slurm").mkdir()
        images.busybox_root(folder / "image")
    except UnavailableError as error:
        pytest.skip(str(error))
    with ApptainerRoot(root, shared=[folder]) as entered, NewestSlurmSite(entered, folder / "slurm") as site:
        (folder / "pulled").mkdir()
        (folder / "pulled").chmod(0o777)
        entered.run("apptainer", "build", str(folder / "pulled/x.sif"), str(folder / "image"), user=USER)
        yield site, folder


@pytest.fixture
async def there(newest: tuple[NewestSlurmSite, Path]) -> AsyncIterator[Bench]:
    """The Slurm plugin, whose jobs are of an ordinary user; it runs on this machine, as root."""
    site, folder = newest
    programs = {f"{name.capitalize()}Path": program for name, program in site.programs.items()}
    table = {"dir:*": str(folder / "*"), "sif:*": str(folder / "pulled/*.sif")}
    keys: dict[str, Any] = {"ContainerRuntime": "apptainer", "DefaultUID": USER, "Images": table, **programs}
    found = Bench(site, folder / f"jobs-{secrets.token_hex(4)}", PythonPath="/usr/bin/python3", **keys)
    yield found
    await found.end()


def container(script: str, *, image: str = "sif:x", name: str = "c0", **extra: Any) -> dict[str, Any]:
    return {"name": name, "image": image, "command": ["/bin/sh", "-c", script], **extra}


@pytest.mark.parametrize("image", ["dir:image", "sif:x"])
async def test_a_pod_runs_in_its_image(there: Bench, image: str) -> None:
    """As the ordinary user, with the program's own exit code; the log is the program's alone."""
    uid = await there.start(containers=[container("cat /etc/of-the-image; id -u; exit 42", image=image)])
    await there.wait(uid, "42 Error")

    assert await there.logs(uid) == f"busybox\n{USER}\n"


async def test_volumes_and_several_containers(there: Bench) -> None:
    """They share a volume, which belongs to the user of the job."""
    mounts = [{"name": "v", "mountPath": "/data"}]
    pod = {
        "initContainers": [container("echo from-init > /data/i", name="i", volumeMounts=mounts)],
        "containers": [
            container("until [ -e /data/done ]; do sleep 0.1; done; cat /data/i", volumeMounts=mounts),
            container("touch /data/done", name="c1", volumeMounts=mounts),
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    uid = await there.start(**pod)
    await there.wait(uid, "0 Completed")

    assert await there.logs(uid) == "from-init\n"


async def test_a_running_pod_is_deleted_t21(there: Bench) -> None:
    """TERM reaches the program in its container; what it does then is in the log."""
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    uid = await there.start(containers=[container(script)])
    await there.wait(uid, "running")
    await there.until_printed(uid, "up\n")

    await there.delete(uid, grace_s=30)

    await there.wait(uid, "0 Completed")
    assert await there.logs(uid) == "up\nbye\n"


async def test_a_grace_period_that_is_cut_short(there: Bench) -> None:
    """Also for a job of another user than the plugin's."""
    uid = await there.start(containers=[container("trap '' TERM; echo up; while :; do sleep 0.1; done")])
    await there.until_printed(uid, "up\n")

    await there.delete(uid, grace_s=1)

    await there.wait(uid, "137", deadline_s=15)


async def test_an_annotations_options_and_a_gpu_switch(there: Bench) -> None:
    """`--nv` where the pod asks for a GPU, although there is no driver; a bind of the pod's own."""
    annotations = {"slurm-job.vk.io/singularity-mounts": "--bind /usr/share:/shared"}
    limits = {"nvidia.com/gpu": "1"}
    script = "ls -d /shared/doc; echo gpus=$CUDA_VISIBLE_DEVICES"
    uid = await there.start(annotations=annotations, containers=[container(script, resources={"limits": limits})])
    await there.wait(uid, "0 Completed")

    assert await there.logs(uid) == "/shared/doc\ngpus=0\n"
    assert '"--nv"' in (there.folder / uid / "spec.json").read_text()


async def test_an_image_that_is_not_there(there: Bench) -> None:
    """The pod fails, with the runtime's words in its log."""
    uid = await there.start(containers=[container("true", image="/no/such.sif")])
    await there.wait(uid, "255 Error")

    assert "/no/such.sif" in await there.logs(uid)


MPIEXEC = """#!/bin/sh
ranks=$2; shift 2
while [ "${1##*/}" != apptainer ]; do shift; done
for rank in $(seq "$ranks"); do PMI_RANK=$rank "$@" & done
wait
"""


@pytest.mark.parametrize("is_contained", [False, True])
async def test_ranks_run_in_an_image(there: Bench, newest: tuple[NewestSlurmSite, Path], *, is_contained: bool) -> None:
    """`mpiexec` stands outside; what it tells them by variables reaches them where the site does not contain all."""
    program = newest[1] / "bin" / "mpiexec"
    program.parent.mkdir(exist_ok=True)
    program.write_text(MPIEXEC)
    program.chmod(0o755)
    there.restart(CommandPrefix=f"export PATH={program.parent}:$PATH")
    options = {} if is_contained else {"slurm-job.vk.io/singularity-options": "--containall=false"}
    annotations = {"slurm-job.vk.io/flags": "--ntasks=2", "slurm-job.vk.io/mpi-flags": "--x y", **options}
    uid = await there.start(
        containers=[container("cat /etc/of-the-image; echo rank $PMI_RANK")], annotations=annotations
    )
    await there.wait(uid, "0 Completed")

    ranks = ["rank", "rank"] if is_contained else ["rank 1", "rank 2"]
    assert sorted((await there.logs(uid)).splitlines()) == ["busybox", "busybox", *ranks]
