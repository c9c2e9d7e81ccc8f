"""Pods whose images come from a registry, as jobs of Slurm (T25): Apptainer runs them as an ordinary user."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from interlink.testing import Cluster, apptainer, images
from interlink.testing.apptainer import PATH, USER, ApptainerRoot
from interlink.testing.errors import UnavailableError
from interlink.testing.programs import Programs
from interlink.testing.registry import Registry
from interlink.testing.slurm import SlurmSite
from tests.runtimes.conftest import CHOWN
from tests.runtimes.test_pulling import PASSWORD, Watch, registry
from tests.slurm.kubectl.conftest import ONCE
from tests.support.pods import Document, Pods

pytestmark = [pytest.mark.usefixtures("controllers", "programs"), ONCE]

LOGIN = base64.b64encode(f"me:{PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At the same path wherever jobs run."""
    found = tmp_path_factory.mktemp("pulling")
    found.chmod(0o755)
    for name, mode in (("jobs", 0o755), ("cache", 0o777)):
        (found / name).mkdir()
        (found / name).chmod(mode)
    return found


@pytest.fixture(scope="module")
def image(folder: Path) -> Path:
    try:
        return images.busybox_root(folder / "image")
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def python(folder: Path, authority: trustme.CA) -> Iterator[Path]:
    """What starts the runner of a job: on a machine with Apptainer, which trusts the registry."""
    try:
        root = apptainer.found()
    except UnavailableError as error:
        pytest.skip(str(error))
    authority.cert_pem.write_to_path(folder / "authority.pem")
    environment = ["env", "-i", f"PATH={PATH}", f"SSL_CERT_FILE={folder}/authority.pem"]
    with ApptainerRoot(root, shared=[folder]) as entered:
        yield entered.program(folder / "python", *environment, "/usr/bin/python3", user=USER, prepare=CHOWN)


@pytest.fixture(scope="module")
def shared(cluster: Cluster, slurm: SlurmSite, folder: Path, python: Path) -> Iterator[Programs]:
    """Running programs, with Apptainer."""
    slurm.await_idle()
    keys = {"ContainerRuntime": "apptainer", "PythonPath": str(python), "ImageFolder": str(folder / "cache")}
    name = "slurm-pulling"
    with Programs(folder, cluster=cluster, node_name=name, site=slurm, plugin_keys=keys) as programs:
        yield programs
    slurm.cancel_all()
    cluster.kubectl("delete", "node", name, "--ignore-not-found", "--wait=false")


def container(registry: Registry, script: str = "cat /etc/of-the-image") -> Document:
    return {"name": "c0", "image": f"localhost:{registry.port}/some/image:1", "command": ["/bin/sh", "-c", script]}


def test_ten_pods_pull_an_image_once_t25(pods: Pods, image: Path, authority: trustme.CA, folder: Path) -> None:
    """Ten jobs start at once, one of them pulls, all run from the one image."""
    with registry(image, authority) as public:
        pods.apply(*(pods.pod(f"p{number}", containers=[container(public)]) for number in range(10)))
        pods.wait_all("Succeeded", 10, deadline_s=90)

        assert public.layers_sent == 1
    assert {pods.kubectl("logs", f"p{number}") for number in range(10)} == {"busybox\n"}
    assert len(set(pods.job_ids().values())) == 10
    assert sorted(path.suffix for path in (folder / "cache" / str(USER)).iterdir()) == [".lock", ".sif"]


def test_a_private_image_t25(pods: Pods, image: Path, authority: trustme.CA, shared: Programs) -> None:
    """imagePullSecrets give the login, which no command line has, and no file or log afterwards."""
    with registry(image, authority, login=f"me:{PASSWORD}") as private:
        login = ("--docker-username=me", f"--docker-password={PASSWORD}")
        pods.kubectl("create", "secret", "docker-registry", "s", f"--docker-server=localhost:{private.port}", *login)
        with Watch(PASSWORD, LOGIN) as watch:
            spec = {"containers": [container(private)], "imagePullSecrets": [{"name": "s"}]}
            pods.start("p", **spec)
            pods.wait("p", "Succeeded")
        assert private.layers_sent == 1

    assert pods.kubectl("logs", "p") == "busybox\n"
    assert watch.seen == set()
    assert files_with(shared.folder, PASSWORD, LOGIN) == []


def files_with(folder: Path, *words: str) -> list[Path]:
    """Below a folder, the files that hold one of the words."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if any(word.encode() in path.read_bytes() for word in words)]
