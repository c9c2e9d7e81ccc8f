"""What a real Slurm offers, from one sinfo an interval."""

import pytest

from interlink.sdk.errors import Unreachable
from interlink.testing.slurm import SlurmSite
from interlink.wire.messages import Accelerator, Resources
from tests.support.slurm import Bench, command


async def test_all_nodes_together(bench: Bench) -> None:
    """CPUs, memory and GPUs; a node in three partitions counts once."""
    answer = await bench.plugin.capacity()

    assert answer.resources == Resources(
        cpu="128", memory="128000Mi", pods="1000", accelerators=[Accelerator("nvidia.com/gpu", "8")]
    )


async def test_a_node_that_is_drained_offers_nothing(bench: Bench, site: SlurmSite) -> None:
    """Until it is back."""
    site.run("scontrol", "update", "nodename=node2", "state=drain", "reason=test")
    try:
        answer = await bench.plugin.capacity()
    finally:
        site.run("scontrol", "update", "nodename=node2", "state=resume")

    assert answer.resources is not None
    assert answer.resources.cpu == "64"


async def test_a_partition_that_is_down_offers_nothing(bench: Bench, site: SlurmSite) -> None:
    """Without any node the resources stay as they were, and a taint keeps pods away."""
    bench.restart(Partitions=["short"], Taints=[{"key": "site", "effect": "NoSchedule"}])
    site.run("scontrol", "update", "partitionname=short", "state=down")
    try:
        answer = await bench.plugin.capacity()
    finally:
        site.run("scontrol", "update", "partitionname=short", "state=up")

    assert answer.resources is None
    assert isinstance(answer.taints, list)
    assert [taint.key for taint in answer.taints] == ["site", "slurm.interlink.eu/no-nodes"]


async def test_one_command_an_interval(bench: Bench) -> None:
    """However often it is asked."""
    calls = bench.folder.with_suffix(".calls")
    bench.restart(SinfoPath=command(bench, f'echo x >> {calls}; sinfo "$@"'), CapacityInterval=600)

    for _ in range(5):
        await bench.plugin.capacity()

    assert calls.read_text() == "x\n"


async def test_a_program_of_the_site_may_answer(bench: Bench) -> None:
    """As in the existing plugin; the configured taints win. One that fails is a plugin that is away."""
    text = '{"status":"ok","resources":{"cpu":"7"},"taints":[{"key":"a","effect":"NoExecute"}]}'
    bench.restart(ResourceScriptPath=command(bench, f"echo '{text}'"), Taints=[])

    answer = await bench.plugin.capacity()

    assert (answer.resources, answer.taints) == (Resources(cpu="7"), [])
    bench.restart(ResourceScriptPath=command(bench, "echo nonsense"))
    with pytest.raises(Unreachable, match="printed no answer to a ping"):
        await bench.plugin.capacity()


async def test_a_deadline_beyond_a_partitions_limit_does_not_wait_for_ever(bench: Bench, site: SlurmSite) -> None:
    """The partition allows ten minutes."""
    await bench.plugin.capacity()
    flags = {"slurm-job.vk.io/flags": "--partition=short"}
    uid = await bench.start("true", annotations=flags, activeDeadlineSeconds=36000)
    shown = site.run("scontrol", "show", "job", bench.job_id(uid))

    assert "TimeLimit=00:10:00" in shown
    await bench.wait(uid, "0 Completed")
