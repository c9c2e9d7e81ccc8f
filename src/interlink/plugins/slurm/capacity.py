"""What a site offers: the nodes of one sinfo, or what the site's own program says."""

import time
from collections.abc import Mapping, Sequence

import msgspec

from interlink.aio import processes
from interlink.plugins.slurm import parsing
from interlink.plugins.slurm.commands import Slurm
from interlink.plugins.slurm.parsing import Offer
from interlink.plugins.slurm.settings import SlurmSettings
from interlink.sdk.errors import Unreachable
from interlink.wire.messages import PingAnswer, Resources, Taint

_NO_NODES = Taint(key="slurm.interlink.eu/no-nodes", effect="NoSchedule")
_SCRIPT_TIMEOUT_S = 30.0


class Capacity:
    """Answers from one command an interval, however often it is asked. time_limits: of partitions, as they were seen
    last, by `parsing.time_limits`."""

    def __init__(self, slurm: Slurm, settings: SlurmSettings) -> None:
        self._slurm = slurm
        self._settings = settings
        self._answer: PingAnswer | None = None
        self._asked_at = 0.0
        self.time_limits: Mapping[str, int] = {}

    async def __call__(self) -> PingAnswer:
        """Raises Unreachable."""
        now = time.monotonic()
        if self._answer is None or now - self._asked_at >= self._settings.capacity_interval_s:
            self._answer = await self._ask()
            self._asked_at = now
        return self._answer

    async def _ask(self) -> PingAnswer:
        settings = self._settings
        if settings.resource_script:
            answer = await _of_script(settings.resource_script)
            return answer if settings.taints is None else msgspec.structs.replace(answer, taints=settings.taints)
        nodes = await self._slurm.nodes()
        self.time_limits = parsing.time_limits(nodes)
        return answer_for(parsing.offer(nodes, settings.partitions), settings)


def answer_for(offered: Offer, settings: SlurmSettings) -> PingAnswer:
    """Pure. Without a usable node the resources stay as they were told last, and a taint keeps pods away."""
    taints: Sequence[Taint] = settings.taints or []
    if offered.nodes == 0:
        return PingAnswer(status="ok", taints=[*taints, _NO_NODES])
    gpus = [(gpu.resource, gpu.gres) for gpu in settings.policy.gpus]
    return PingAnswer(
        status="ok",
        resources=Resources(
            cpu=str(offered.cpus),
            memory=f"{offered.memory_mb}Mi",
            pods=str(settings.max_pods),
            accelerators=parsing.accelerators(offered, gpus) or None,
        ),
        taints=list(taints),
    )


async def _of_script(program: str) -> PingAnswer:
    try:
        done = await processes.run([program], timeout_s=_SCRIPT_TIMEOUT_S)
    except (OSError, TimeoutError) as error:
        raise Unreachable(
            f"ResourceScriptPath: cannot run {program}: {str(error) or 'it did not end in time'}"
        ) from error
    if done.exit_code != 0:
        complaint = parsing.words(done.stderr.decode(errors="replace"))
        raise Unreachable(f"ResourceScriptPath: {program} ended with {done.exit_code}: {complaint}")
    try:
        return msgspec.json.decode(done.stdout, type=PingAnswer)
    except msgspec.MsgspecError as error:
        raise Unreachable(f"ResourceScriptPath: {program} printed no answer to a ping: {error}") from error
