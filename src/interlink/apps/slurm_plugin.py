"""The Slurm plugin, put together: job directories on a shared file system, Slurm's commands, a runtime, HTTP."""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from interlink.aio import files
from interlink.apps import runtimes
from interlink.apps.excluding import only_one
from interlink.model.errors import ConfigurationError
from interlink.model.pods import Container, Pod
from interlink.plugins.slurm import parsing
from interlink.plugins.slurm.capacity import Capacity
from interlink.plugins.slurm.checking import Check, checks
from interlink.plugins.slurm.commands import Slurm
from interlink.plugins.slurm.scheduler import SlurmScheduler
from interlink.plugins.slurm.settings import Script, SlurmSettings
from interlink.sdk import serving
from interlink.sdk.batch.jobdir import LOCK, JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.batch.runtime import Launch, Login, Mount, Runtime
from interlink.sdk.errors import SDKError
from interlink.sdk.runtimes.mpi import Ranks

log = structlog.get_logger(__name__)

_LEARN_WITHIN_S = 5.0
_SAVE_S = 5.0
"""How often the controller writes its state down."""


class Facts(msgspec.Struct, frozen=True):
    """What is to be known of a Slurm before its plugin starts. lost_after_s: LostJobGrace, and never shorter than a
    message of Slurm may be on its way. kept_s: for how long the controller knows a job that has ended."""

    uses_accounting: bool
    lost_after_s: float
    kept_s: float = 0.0


async def run(settings: SlurmSettings) -> None:
    """Serve until SIGTERM or SIGINT; the jobs go on. Raises ConfigurationError."""
    root, address = settings.root, settings.listening.address
    with only_one(root, kind="plugin", key="DataRootFolder", lock=LOCK, address=address):
        make_root(settings)
        if settings.expects_no_sharing:
            log.warning(
                "slurm.shared-folder-needed", key="SHARED_FS", consequence="jobs need DataRootFolder on the nodes"
            )
        facts = await learned(commands(settings, os.environ), settings)
        plugin, _ = build(settings, os.environ, facts)
        await _learn_limits(plugin)
        await serving.run(plugin, settings.listening)


async def _learn_limits(plugin: BatchPlugin) -> None:
    """For the first jobs; from a Slurm that is away they are learned later, when the node's capacity is asked for."""
    with contextlib.suppress(SDKError, TimeoutError):
        async with asyncio.timeout(_LEARN_WITHIN_S):
            await plugin.capacity()


def build(settings: SlurmSettings, environment: Mapping[str, str], facts: Facts) -> tuple[BatchPlugin, Slurm]:
    """The plugin, and the commands that it uses. Raises ConfigurationError."""
    slurm = commands(settings, environment)
    scheduler = SlurmScheduler(
        slurm,
        policy=settings.policy,
        script=settings.script,
        capacity=Capacity(slurm, settings),
        uses_accounting=facts.uses_accounting,
        memory_is_fatal=settings.memory_is_fatal,
        unknown_for_s=facts.lost_after_s,
        kept_s=facts.kept_s,
    )
    plugin = BatchPlugin(
        settings.root,
        scheduler=scheduler,
        runtime=runtime(settings),
        settle_s=settings.settle_s,
        lost_after_s=facts.lost_after_s,
        keep_deleted_s=settings.keep_deleted_jobs_s,
        log_limits=settings.log_limits,
        runs_probes=settings.runs_probes,
        exports_volumes=settings.exports_volumes,
    )
    return plugin, slurm


async def check(settings: SlurmSettings) -> list[Check]:
    """What works at this site."""
    return await checks(commands(settings, os.environ), settings)


def make_root(settings: SlurmSettings) -> None:
    """Jobs of other users must be able to pass through it, but not to list it. Raises ConfigurationError."""
    try:
        files.make_directory(settings.root)
        if settings.policy.may_change_user:
            settings.root.chmod(0o711)
    except OSError as error:
        raise ConfigurationError(f"DataRootFolder: cannot use {settings.root}: {error.strerror}") from error


def commands(settings: SlurmSettings, environment: Mapping[str, str]) -> Slurm:
    """Where jobs may belong to several users everybody's are listed, else only our own."""
    return Slurm(settings.programs, environment, user="" if _has_users(settings) else str(os.geteuid()))


def _has_users(settings: SlurmSettings) -> bool:
    policy = settings.policy
    uids = [policy.default_uid, *(f.uid for f in policy.flavors.values()), *(n.uid for n in policy.namespaces)]
    return any(uid is not None for uid in uids)


async def learned(slurm: Slurm, settings: SlurmSettings) -> Facts:
    """As configured, else as Slurm's own configuration says; one that is away now is taken to have no accounting."""
    needs_answer = settings.uses_accounting is None
    try:
        async with asyncio.timeout(None if needs_answer else _LEARN_WITHIN_S):
            return facts(settings, await slurm.configuration())
    except (SDKError, TimeoutError) as error:
        if needs_answer:
            log.warning("slurm.accounting-unknown", error=str(error), consequence="it is not used; set UseAccounting")
        return facts(settings, {})


def facts(settings: SlurmSettings, configuration: Mapping[str, str]) -> Facts:
    """`configuration`: Slurm's own, keys in lower case."""
    has_accounting = "slurmdbd" in configuration.get("accountingstoragetype", "")
    message_timeout_s = parsing.seconds(configuration.get("messagetimeout", ""))
    return Facts(
        uses_accounting=has_accounting if settings.uses_accounting is None else settings.uses_accounting,
        lost_after_s=max(settings.lost_after_s, message_timeout_s + _SAVE_S)
        if message_timeout_s
        else settings.lost_after_s,
        kept_s=parsing.seconds(configuration.get("minjobage", "")),
    )


def runtime(settings: SlurmSettings) -> Runtime:
    """How containers are started, through the proxy where one is set up."""
    made = Ranks(runtimes.make(settings.runtime, python=settings.script.python))
    return _ThroughProxy(made, settings.script) if settings.script.tsocks_library else made


class _ThroughProxy:
    """A runtime whose programs use the SOCKS proxy that the job script sets up (Tsocks)."""

    def __init__(self, inner: Runtime, script: Script) -> None:
        self._inner = inner
        self._script = script

    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        launch = self._inner.launch(container, mounts, pod=pod, directory=directory, logins=logins)
        proxy = [
            ("LD_PRELOAD", self._script.tsocks_library),
            ("TSOCKS_CONF_FILE", str(Path(directory.path) / "tsocks.conf")),
        ]
        return msgspec.structs.replace(launch, environment=[*proxy, *launch.environment])
