"""Job scripts of the existing contract: made from a create request by a builder service, or from a template."""

import asyncio
from pathlib import Path
from typing import Protocol

import aiohttp
import msgspec

from interlink.aio import processes
from interlink.sdk.errors import Rejected, Unreachable
from interlink.wire import codec
from interlink.wire.messages import RetrievedPodData, ScriptBuildConfig

_TIMEOUT_S = 60.0


class ScriptMaker(Protocol):
    async def completed(self, data: RetrievedPodData, url: str) -> RetrievedPodData:
        """The request with its job script, where one is wanted; `url` is the builder that the virtual kubelet names.

        Raises Rejected, Unreachable.
        """
        ...


class NoScripts:
    """For servers that make none."""

    async def completed(self, data: RetrievedPodData, url: str) -> RetrievedPodData:
        if url:
            raise Rejected("the pod asks for a job-script builder, but the server has no JobScriptBuildConfig")
        return data


class BuilderService:
    """Asks the builder's URL, and for pods without one the other maker; both are told the configuration, if any."""

    def __init__(self, config: ScriptBuildConfig | None, otherwise: ScriptMaker) -> None:
        self._config = config
        self._otherwise = otherwise

    async def completed(self, data: RetrievedPodData, url: str) -> RetrievedPodData:
        if self._config is not None:
            data = msgspec.structs.replace(data, job_config=self._config)
        if not url:
            return await self._otherwise.completed(data, "")
        return msgspec.structs.replace(data, job_script=await _built(data, url))


async def _built(data: RetrievedPodData, url: str) -> str:
    headers = {"Content-Type": "application/json"}
    try:
        async with (
            asyncio.timeout(_TIMEOUT_S),
            aiohttp.ClientSession() as session,
            session.post(url, data=_told(data), headers=headers) as response,
        ):
            text = await response.text()
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unreachable(f"cannot reach the job-script builder {url}: {type(error).__name__}") from error
    if 400 <= response.status < 500:
        raise Rejected(f"the job-script builder refuses the pod ({response.status}): {text[:500]}")
    if response.status >= 300:
        raise Unreachable(f"the job-script builder {url} answered {response.status}")
    return text


class GoTemplate:
    """A template of the existing system, rendered by a program that has Go's engine (`tools/gotemplate`)."""

    def __init__(self, program: Path, template: Path) -> None:
        self._program = program
        self._template = template

    async def completed(self, data: RetrievedPodData, url: str) -> RetrievedPodData:
        argv = [str(self._program), str(self._template)]
        try:
            done = await processes.run(argv, stdin=_told(data), timeout_s=_TIMEOUT_S)
        except (OSError, TimeoutError) as error:
            raise Unreachable(
                f"JobScriptTemplate: cannot run {self._program}: {str(error) or 'it did not end in time'}"
            ) from error
        if done.exit_code != 0:
            reason = done.stderr.decode(errors="replace").strip()[:500]
            raise Rejected(f"JobScriptTemplate {self._template} cannot be rendered for this pod: {reason}")
        return msgspec.structs.replace(data, job_script=done.stdout.decode(errors="replace"))


def _told(data: RetrievedPodData) -> bytes:
    """What a maker of scripts is told: the logins for registries are none of its business."""
    return codec.encode(msgspec.structs.replace(data, pull_secrets=msgspec.UNSET))
