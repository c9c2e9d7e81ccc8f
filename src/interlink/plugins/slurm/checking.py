"""What works at a site, and what to do about what does not: one line a check, none depends on another one's success.

The last one submits a tiny job that writes a file into DataRootFolder and reads one: it proves that a node shares the
folder and has the runtime, and tells which Python it has. Nothing is left behind.
"""

import asyncio
import contextlib
import re
import secrets
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from interlink.model.ids import JobID
from interlink.plugins.slurm import parsing
from interlink.plugins.slurm.commands import Slurm
from interlink.plugins.slurm.settings import SlurmSettings
from interlink.sdk.errors import SDKError

_JOB_WITHIN_S = 120.0
_SKEW_S = 5.0
_OLDEST = (20, 11)


class Check(msgspec.Struct, frozen=True):
    """`advice` says what to do; a warning does not keep pods from running."""

    name: str
    outcome: str
    detail: str
    advice: str = ""

    @property
    def has_failed(self) -> bool:
        return self.outcome == "failed"


class Problem(Exception):
    """A check that did not succeed."""

    def __init__(self, detail: str, advice: str, *, is_warning: bool = False) -> None:
        super().__init__(detail)
        self.check = ("warning" if is_warning else "failed", detail, advice)


async def checks(slurm: Slurm, settings: SlurmSettings) -> list[Check]:
    """All of them, in order."""
    return [check async for check in _checks(slurm, settings)]


async def _checks(slurm: Slurm, settings: SlurmSettings) -> AsyncIterator[Check]:
    if settings.unknown_keys:
        names = ", ".join(settings.unknown_keys)
        yield Check("configuration", "warning", f"unknown: {names}", "it has no effect; is the name right?")
    if settings.expects_no_sharing:
        yield Check(
            "configuration", "warning", "SHARED_FS is not true", "share DataRootFolder with the nodes all the same"
        )
    yield await _checked("commands", lambda: _commands(settings))
    yield await _checked("version", lambda: _version(slurm))
    yield await _checked("controller", lambda: _controller(slurm))
    yield await _checked("queue", lambda: _queue(slurm))
    yield await _checked("accounting", lambda: _accounting(slurm, settings))
    yield await _checked("nodes", lambda: _nodes(slurm, settings))
    yield await _checked("runtime", lambda: _runtime(settings))
    folder = await _checked("folder", lambda: _folder(settings))
    yield folder
    if not folder.has_failed:
        yield await _checked("job", lambda: _job(slurm, settings))


async def _checked(name: str, check: Callable[[], Awaitable[str]]) -> Check:
    try:
        return Check(name, "ok", await check())
    except Problem as problem:
        outcome, detail, advice = problem.check
        return Check(name, outcome, detail, advice)
    except SDKError as error:
        return Check(name, "failed", str(error), "make this command work for the plugin's user; is SLURM_CONF right?")


async def _commands(settings: SlurmSettings) -> str:
    programs = settings.programs
    wanted = {
        "SbatchPath": programs.sbatch,
        "ScancelPath": programs.scancel,
        "SqueuePath": programs.squeue,
        "SinfoPath": programs.sinfo,
        "ScontrolPath": programs.scontrol,
    }
    missing = [f"{key} ({program})" for key, program in wanted.items() if shutil.which(program) is None]
    if missing:
        raise Problem(f"not found: {', '.join(missing)}", "install Slurm's client commands or set these keys")
    return ", ".join(str(shutil.which(program)) for program in wanted.values())


async def _version(slurm: Slurm) -> str:
    text = await slurm.version()
    found = re.search(r"(\d+)\.(\d+)", text)
    if found and (int(found[1]), int(found[2])) < _OLDEST:
        raise Problem(text, "Slurm 20.11 or newer is needed")
    return text


async def _controller(slurm: Slurm) -> str:
    configuration = await slurm.configuration()
    name, names = configuration.get("clustername", "?"), configuration.get("jobsubmitplugins", "(null)")
    if names not in ("(null)", ""):
        detail = f"cluster {name}, with JobSubmitPlugins={names}"
        raise Problem(detail, "make sure that it leaves job names as they are", is_warning=True)
    return f"cluster {name}"


async def _queue(slurm: Slurm) -> str:
    jobs = await slurm.queue()
    return f"{len(jobs)} jobs of pods"


async def _accounting(slurm: Slurm, settings: SlurmSettings) -> str:
    if settings.uses_accounting is False:
        return "not used (UseAccounting: false)"
    if "slurmdbd" not in (await slurm.configuration()).get("accountingstoragetype", ""):
        advice = "ends of jobs that Slurm forgets before the plugin saw them are lost; keep MinJobAge at 300 or more"
        raise Problem("Slurm has none", advice, is_warning=True)
    await slurm.accounting(job_ids=[JobID("1")])
    return "sacct answers"


async def _nodes(slurm: Slurm, settings: SlurmSettings) -> str:
    offered = parsing.offer(await slurm.nodes(), settings.partitions)
    if offered.nodes == 0:
        raise Problem("no node can take a job", "see sinfo; are the names in Partitions right?")
    gres = "".join(f", {count} {kind}" for kind, count in offered.gres.items())
    return f"{offered.nodes} nodes, {offered.cpus} CPUs, {offered.memory_mb} MB{gres}"


async def _runtime(settings: SlurmSettings) -> str:
    if settings.runtime.kind == "none":
        return "none: programs of the nodes"
    program = settings.runtime.program_name
    if shutil.which(program) is None:
        detail = f"{program} is not on this machine"
        raise Problem(detail, "no matter if the nodes have it", is_warning=True)
    return str(shutil.which(program))


async def _folder(settings: SlurmSettings) -> str:
    try:
        settings.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = settings.root / f".check-{secrets.token_hex(4)}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise Problem(f"{settings.root}: {error.strerror}", "make DataRootFolder writable for the plugin") from error
    return str(settings.root)


_SCRIPT = """\
#!{bash}
export PATH="${{PATH:-/usr/local/bin:/usr/bin:/bin}}"
{prefix}
{{ [ -z {runtime} ] || command -v {runtime}; }} > {folder}/runtime 2>&1 || echo missing > {folder}/runtime
{python} -c 'import sys; print("%d.%d" % sys.version_info[:2])' > {folder}/python 2>&1
cat {folder}/seen > {folder}/read 2>&1
date +%s > {folder}/time
hostname > {folder}/node
mv {folder}/node {folder}/done
"""


async def _job(slurm: Slurm, settings: SlurmSettings) -> str:
    folder = settings.root / f"check-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    job_id = None
    try:
        (folder / "seen").write_text("shared\n")
        script = folder / "job.sh"
        script.write_text(_script(settings, folder))
        options = ["--job-name=interlink-check", "--time=1", "--export=NIL", f"--output={folder}/out", "--chdir=/"]
        if settings.partitions:
            options.append(f"--partition={settings.partitions[0]}")
        job_id = await slurm.submit([*options, *map(str, settings.policy.fixed)], script)
        return await _verdict(folder, job_id, settings)
    finally:
        if job_id is not None:
            with contextlib.suppress(SDKError):
                await slurm.cancel([job_id])
        shutil.rmtree(folder, ignore_errors=True)


def _script(settings: SlurmSettings, folder: Path) -> str:
    """With what surrounds the runner in every job, for that may bring the runtime along."""
    return _SCRIPT.format(
        bash=settings.script.bash,
        python=settings.script.python,
        prefix=settings.script.prefix,
        runtime=shlex.quote("" if settings.runtime.kind == "none" else settings.runtime.program_name),
        folder=folder,
    )


async def _verdict(folder: Path, job_id: str, settings: SlurmSettings) -> str:
    deadline = time.monotonic() + _JOB_WITHIN_S
    while not (folder / "done").exists():
        if time.monotonic() > deadline:
            detail = f"job {job_id} left nothing in {settings.root} within {_JOB_WITHIN_S:.0f} s"
            raise Problem(detail, "is the queue full (squeue)? else DataRootFolder is not shared with the nodes")
        list(folder.iterdir())  # asks a network file system again
        await asyncio.sleep(0.2)
    read = {name: (folder / name).read_text().strip() for name in ("python", "read", "time", "runtime", "done")}
    if read["read"] != "shared":
        raise Problem(f"a node cannot read what the plugin writes: {read['read']}", "share DataRootFolder")
    if not re.fullmatch(r"3\.\d+", read["python"]) or int(read["python"].split(".")[1]) < 6:
        raise Problem(f"no Python on node {read['done']}: {read['python'][:200]}", "set PythonPath: 3.6 or newer")
    if read["runtime"] == "missing":
        detail = f"{settings.runtime.program_name} is not on node {read['done']}"
        raise Problem(detail, "install it there, set RuntimePath, or load it in CommandPrefix")
    skew_s = abs(time.time() - float(read["time"]))
    if skew_s > _SKEW_S:
        raise Problem(f"the clock of {read['done']} differs by {skew_s:.0f} s", "synchronise clocks", is_warning=True)
    return f"ran on {read['done']} with Python {read['python']}; the folder is shared, the clock is right"
