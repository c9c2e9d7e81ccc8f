"""Images from a real registry (T25): once for all, whole or not at all, private ones with their login."""

import base64
import json
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from msgspec import Raw

from interlink.sdk.runtimes.apptainer import Apptainer
from interlink.sdk.runtimes.charliecloud import Charliecloud
from interlink.sdk.runtimes.images import ImageSettings
from interlink.testing.apptainer import USER, ApptainerRoot
from interlink.testing.registry import Registry
from tests.runtimes.conftest import NO_CHARLIECLOUD, elsewhere
from tests.support.runtimes import RuntimeBench

pytestmark = pytest.mark.asyncio

PASSWORD = "s3cret-pass"
CONFIG = {"Entrypoint": ["/bin/echo", "entry"], "Cmd": ["cmd"], "Env": ["OF_THE_IMAGE=yes", "PATH=/bin"]}


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def trust(authority: trustme.CA, shared: Path) -> Path:
    path = shared / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return path


def registry(root: Path, authority: trustme.CA, login: str = "") -> Registry:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return Registry(root, context, config=CONFIG, login=login)


@pytest.fixture
def public(image: Path, authority: trustme.CA) -> Iterator[Registry]:
    with registry(image, authority) as found:
        yield found


@pytest.fixture
def private(image: Path, authority: trustme.CA) -> Iterator[Registry]:
    with registry(image, authority, login=f"me:{PASSWORD}") as found:
        yield found


@pytest.fixture
def bench(apptainer_root: ApptainerRoot, shared: Path, trust: Path) -> Iterator[RuntimeBench]:
    """Apptainer as an ordinary user, with a folder of images of this test alone."""
    number = len(list(shared.iterdir()))
    folder, cache = shared / f"jobs-{number}", shared / f"cache-{number}"
    folder.mkdir()
    cache.mkdir()
    cache.chmod(0o777)
    runtime = Apptainer(ImageSettings(folder=str(cache)))
    found = elsewhere(apptainer_root, folder, runtime, SSL_CERT_FILE=str(trust))
    yield found
    found.close()


def cached(bench: RuntimeBench) -> list[str]:
    folder = bench.folder.with_name(bench.folder.name.replace("jobs", "cache")) / str(USER)
    return sorted(path.name for path in folder.iterdir())


def secret(host: str, password: str = PASSWORD) -> Raw:
    config = json.dumps({"auths": {host: {"username": "me", "password": password}}})
    data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
    return Raw(json.dumps({"metadata": {"name": "s"}, "data": data}).encode())


async def test_ten_pods_pull_an_image_once(bench: RuntimeBench, public: Registry) -> None:
    """The others wait for it; what is there at the end is one image."""
    image = f"localhost:{public.port}/some/image:1"
    pods = [
        await bench.start(containers=[bench.container("c0", "cat /etc/of-the-image", image=image)]) for _ in range(10)
    ]

    for uid in pods:
        assert await bench.ended(uid, deadline_s=60) == {"c0": 0}
        assert await bench.logs(uid) == "busybox\n"
    assert public.layers_sent == 1
    assert [name.rpartition(".")[2] for name in cached(bench)] == ["sif", "lock"]


COMMANDS = [
    ({"command": None}, "entry cmd\n"),
    ({"command": None, "args": ["arg", "$x"]}, "entry arg $x\n"),
    ({"command": ["/bin/sh", "-c", "echo $OF_THE_IMAGE"]}, "yes\n"),
]


@pytest.mark.parametrize(("fields", "printed"), COMMANDS)
async def test_the_images_entry_point(
    bench: RuntimeBench, public: Registry, fields: dict[str, object], printed: str
) -> None:
    """Without a command it is run, with the pod's arguments or its own; its environment is there in any case."""
    container = bench.container("c0", "", image=f"docker://localhost:{public.port}/some/image:1") | fields

    assert await bench.run(containers=[container]) == printed


async def test_an_image_that_the_registry_does_not_have(bench: RuntimeBench, public: Registry) -> None:
    """The reason is ErrImagePull, with the registry's text; nothing is left."""
    container = bench.container("c0", "true", image=f"localhost:{public.port}/some/image:no-such-tag")
    uid = await bench.start(containers=[container])

    assert await bench.ended(uid, deadline_s=60) == {"c0": 128}
    ended = (await bench.statuses(uid))["c0"].terminated
    assert ended is not None
    assert ended.reason == "ErrImagePull"
    assert "manifest unknown" in (ended.message or "")
    assert [name.rpartition(".")[2] for name in cached(bench)] == ["lock"]


async def test_a_private_image(bench: RuntimeBench, private: Registry) -> None:
    """With its login, which is in no command line, script or log, and is gone with the job."""
    host = f"localhost:{private.port}"
    container = bench.container("c0", "cat /etc/of-the-image; sleep 1", image=f"{host}/some/image:1")
    with Watch(PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode()) as watch:
        uid = await bench.start(containers=[container], pull_secrets=[secret(host)])
        holders = _files_with(bench.directory(uid), PASSWORD, base64.b64encode(f"me:{PASSWORD}".encode()).decode())
        assert await bench.ended(uid, deadline_s=60) == {"c0": 0}

    assert await bench.logs(uid) == "busybox\n"
    assert watch.seen == set()
    assert holders == {"env/c0.registries.json": 0o600}
    assert not (bench.directory(uid) / "env").exists()

    other = await bench.start(containers=[container])
    assert await bench.ended(other, deadline_s=60) == {"c0": 128}, "a pod without the login does not get the image"


async def test_a_wrong_login(bench: RuntimeBench, private: Registry) -> None:
    """The registry's answer is told, the login is not."""
    host = f"localhost:{private.port}"
    container = bench.container("c0", "true", image=f"{host}/some/image:1")
    uid = await bench.start(containers=[container], pull_secrets=[secret(host, "wrong-pass")])

    await bench.ended(uid, deadline_s=60)
    ended = (await bench.statuses(uid))["c0"].terminated
    assert ended is not None
    assert ended.reason == "ErrImagePull"
    assert "unauthorized" in (ended.message or "")
    assert "wrong-pass" not in (ended.message or "")


async def test_charliecloud_unpacks_an_image_once(shared: Path, public: Registry, trust: Path) -> None:
    """To a directory, from which several pods run."""
    if shutil.which("ch-run") is None:
        pytest.skip(NO_CHARLIECLOUD)
    if (
        subprocess.run(
            ["ch-image", "--version"], capture_output=True, env={"PATH": "/usr/bin:/bin", "USER": "root"}
        ).returncode
        != 0
    ):
        pytest.skip("ch-image lacks its Python packages: run tools/setup.sh containers")
    number = len(list(shared.iterdir()))
    folder = shared / f"jobs-{number}"
    folder.mkdir()
    python = folder.with_suffix(".python")
    python.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin REQUESTS_CA_BUNDLE={trust} exec /usr/bin/python3 "$@"\n')
    python.chmod(0o755)
    runtime = Charliecloud(ImageSettings(folder=str(shared / f"cache-{number}")), python="/usr/bin/python3")
    bench = RuntimeBench(folder, runtime, image=f"localhost:{public.port}/some/image:1", python=str(python))
    try:
        pods = [await bench.start("cat /etc/of-the-image") for _ in range(3)]
        for uid in pods:
            assert await bench.ended(uid, deadline_s=60) == {"c0": 0}, await bench.statuses(uid)
        assert public.layers_sent == 1
        left = [path.suffix for path in (shared / f"cache-{number}" / str(os.geteuid())).iterdir()]
        assert sorted(left) == [".dir", ".lock"]
    finally:
        bench.close()


class Watch:
    """Looks at the command lines of all processes, again and again, for words that must not be there."""

    def __init__(self, *words: str) -> None:
        self.seen: set[str] = set()
        self._words = [word.encode() for word in words]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = path.read_bytes()
                except OSError:
                    continue
                self.seen |= {word.decode() for word in self._words if word in line}


def _files_with(folder: Path, *words: str) -> dict[str, int]:
    """The files that hold one of the words, and their modes."""
    return {
        str(path.relative_to(folder)): path.stat().st_mode & 0o777
        for path in folder.rglob("*")
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words)
    }
