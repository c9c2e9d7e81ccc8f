"""The job-script builder of the existing contract: a service that turns the create request into a script."""

import asyncio
from typing import Protocol

import aiohttp
import msgspec

from interlink.sdk.errors import Rejected, Unreachable
from interlink.wire import codec
from interlink.wire.messages import RetrievedPodData, ScriptBuildConfig

_TIMEOUT_S = 60.0


class ScriptBuilder(Protocol):
    async def build(self, data: RetrievedPodData, url: str) -> str:
        """The script. Raises Rejected, Unreachable."""
        ...


async def completed(data: RetrievedPodData, url: str, builder: ScriptBuilder) -> RetrievedPodData:
    """The request with its job script, when the virtual kubelet names a builder."""
    return msgspec.structs.replace(data, job_script=await builder.build(data, url)) if url else data


class HTTPScriptBuilder:
    """Asks the builder's URL; `config` is what the configuration file says about scripts."""

    def __init__(self, config: ScriptBuildConfig | None) -> None:
        self._config = config

    async def build(self, data: RetrievedPodData, url: str) -> str:
        if self._config is None:
            raise Rejected("the pod asks for a job-script builder, but the server has no JobScriptBuildConfig")
        body = codec.encode(msgspec.structs.replace(data, job_config=self._config))
        headers = {"Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(_TIMEOUT_S),
                aiohttp.ClientSession() as session,
                session.post(url, data=body, headers=headers) as response,
            ):
                text = await response.text()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(f"cannot reach the job-script builder {url}: {type(error).__name__}") from error
        if 400 <= response.status < 500:
            raise Rejected(f"the job-script builder refuses the pod ({response.status}): {text[:500]}")
        if response.status >= 300:
            raise Unreachable(f"the job-script builder {url} answered {response.status}")
        return text
