"""The published OpenAPI document of a plugin, and what the SDK serves held against it with generated requests.

The jobs are in a batch system in memory: what is generated is not run.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

import interlink
from interlink.sdk import hosting, serving
from interlink.sdk.addresses import Address
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.wire import messages, openapi
from tests.support.generated import hold_against
from tests.support.server_client import Document, pod, uid_of
from tests.unit.builders import ended
from tests.unit.sdk.batch.test_batch_plugin import Runtime, Scheduler, set_state
from tests.unit.sdk.batch.test_job_logs import lines, write

DOCUMENT = openapi.plugin(interlink.__version__)


@asynccontextmanager
async def served(plugin: BatchPlugin) -> AsyncIterator[str]:
    async with hosting.serving(serving.application(plugin), Address("http", "127.0.0.1", 0)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("path", DOCUMENT["paths"])
async def test_generated_requests_get_documented_answers(tmp_path: Path, path: str) -> None:
    """Whatever fits the document, and what does not, is answered with a documented code.

    Half of the requests are about a job that is there and has ended, so that a log that is followed ends.
    """
    document = pod()
    known: dict[str, Document] = {
        "/create": {"pod": document, "container": None, "imagePullSecrets": []},
        "/delete": document,
        "/getLogs": {"PodUID": uid_of(document), "ContainerName": "c"},
        messages.REFRESH: {"pod": document},
        messages.USAGE: {"pods": [uid_of(document)]},
    }
    plugin = BatchPlugin(tmp_path, scheduler=Scheduler(), runtime=Runtime())
    async with served(plugin) as url, aiohttp.ClientSession(url) as session:
        async with session.post("/create", json={"pod": document}) as created:
            assert created.status == 200
        directory = JobDirectory(tmp_path / uid_of(document))
        set_state(directory, ended())
        write(directory, lines(5))

        codes = await asyncio.to_thread(hold_against, DOCUMENT, path, url, known.get(path, {}))

    assert 200 in codes
