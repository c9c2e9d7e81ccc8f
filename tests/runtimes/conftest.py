"""Each runtime that can be had here, with an image made of busybox."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlink.sdk.batch.runtime import Runtime
from interlink.sdk.runtimes.apptainer import Apptainer
from interlink.sdk.runtimes.charliecloud import Charliecloud
from interlink.sdk.runtimes.images import ImageSettings
from interlink.testing import apptainer, images
from interlink.testing.apptainer import PATH, USER, ApptainerRoot
from interlink.testing.errors import UnavailableError
from tests.support.runtimes import RuntimeBench

NO_CHARLIECLOUD = "no Charliecloud: run tools/setup.sh containers as root on Debian (package charliecloud)"
CHOWN = f'for last; do :; done; chown -R {USER}:{USER} "$last"'


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that others may read, and that is at the same path wherever jobs run."""
    folder = tmp_path_factory.mktemp("shared")
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def image(shared: Path) -> Path:
    """A root directory; no test writes into it."""
    try:
        return images.busybox_root(shared / "image")
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def apptainer_root(shared: Path) -> Iterator[ApptainerRoot]:
    """A machine with Apptainer and an ordinary user."""
    try:
        root = apptainer.found()
    except UnavailableError as error:
        pytest.skip(str(error))
    with ApptainerRoot(root, shared=[shared]) as entered:
        yield entered


@pytest.fixture(scope="session")
def sif(apptainer_root: ApptainerRoot, image: Path, shared: Path) -> Path:
    """The same image as one file."""
    path = shared / "image.sif"
    folder = shared / "build"
    folder.mkdir()
    folder.chmod(0o777)
    apptainer_root.run("apptainer", "--quiet", "build", str(folder / path.name), str(image), user=USER)
    (folder / path.name).rename(path)
    return path


@pytest.fixture(params=["charliecloud", "apptainer", "apptainer-sif"])
def bench(request: pytest.FixtureRequest, shared: Path, image: Path) -> Iterator[RuntimeBench]:
    """Containers here by Charliecloud, and by Apptainer as an ordinary user of another machine."""
    folder = shared / f"jobs-{len(list(shared.iterdir()))}"
    folder.mkdir()
    if request.param == "charliecloud":
        if shutil.which("ch-run") is None:
            pytest.skip(NO_CHARLIECLOUD)
        found = RuntimeBench(folder, Charliecloud(_table(image)), image="img")
    else:
        root: ApptainerRoot = request.getfixturevalue("apptainer_root")
        path = image if request.param == "apptainer" else request.getfixturevalue("sif")
        found = elsewhere(root, folder, Apptainer(_table(path)))
    yield found
    found.close()


def elsewhere(root: ApptainerRoot, folder: Path, runtime: Runtime, **environ: str) -> RuntimeBench:
    """The runner is started there, as an ordinary user, who owns the job's directory."""
    variables = [f"{name}={value}" for name, value in environ.items()]
    argv = ["env", "-i", f"PATH={PATH}", *variables, "/usr/bin/python3"]
    python = root.program(folder.with_suffix(".python"), *argv, user=USER, prepare=CHOWN)
    return RuntimeBench(folder, runtime, image="img", python=str(python))


def _table(path: Path) -> ImageSettings:
    return ImageSettings(table={"img": str(path)}, folder="~/images")
