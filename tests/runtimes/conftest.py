"""Each runtime that can be had here, with an image made of busybox."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlink.sdk.runtimes.charliecloud import Charliecloud
from interlink.sdk.runtimes.images import ImageSettings
from interlink.testing import images
from interlink.testing.errors import UnavailableError
from tests.support.runtimes import RuntimeBench

RUNTIMES = ("charliecloud",)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root directory; no test writes into it."""
    try:
        return images.busybox_root(tmp_path_factory.mktemp("image"))
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(params=RUNTIMES)
def bench(request: pytest.FixtureRequest, tmp_path: Path, image: Path) -> Iterator[RuntimeBench]:
    if shutil.which("ch-run") is None:
        pytest.skip("no Charliecloud: run tools/setup.sh containers as root on Debian (package charliecloud)")
    folder = tmp_path / "jobs"
    folder.mkdir()
    found = RuntimeBench(folder, Charliecloud(ImageSettings(table={"img": str(image)})), image="img")
    yield found
    found.close()
