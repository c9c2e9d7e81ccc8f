"""The only code that runs Slurm's commands: each with a time limit and an environment that holds nothing of ours."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import prometheus_client

from interlink.aio import processes
from interlink.aio.processes import Finished
from interlink.model.ids import JobID, Tag
from interlink.plugins.slurm import parsing
from interlink.plugins.slurm.parsing import QueuedJob, SeenNode
from interlink.sdk.errors import OutcomeUnknown, Rejected, Unreachable

COMMANDS = prometheus_client.Counter("interlink_slurm_commands", "Slurm commands that were run.", ["command"])

QUESTION_TIMEOUT_S = 30.0
SUBMIT_TIMEOUT_S = 60.0
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "LD_LIBRARY_PATH")
_ALWAYS = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "%s"}
_NOT_SENT = ("unable to contact slurm controller", "connection refused", "no route to host", "host is down")
_LATER = (
    "temporarily unable",
    "munge",
    "authentication",
    "maxsubmitjob",
    "job submit limit",
    "maximum job count",
    "in standby mode",
    "resource temporarily unavailable",
)
_UNKNOWN = (
    "socket timed out",
    "zero bytes",
    "unexpected message",
    "connection reset",
    "transport endpoint",
    "timed out",
)
_NO_JOB = ("invalid job id", "already")
_NO_JOB_CODES = (2017 & 0xFF, 2021 & 0xFF)
"""ESLURM_INVALID_JOB_ID and ESLURM_ALREADY_DONE, which scancel ends with, sometimes without a word."""


class Programs(msgspec.Struct, frozen=True):
    sbatch: str = "sbatch"
    scancel: str = "scancel"
    squeue: str = "squeue"
    sinfo: str = "sinfo"
    sacct: str = "sacct"
    scontrol: str = "scontrol"


class Slurm:
    """`user`: whose jobs are asked for, as squeue's --user takes it; empty for everybody's."""

    def __init__(self, programs: Programs, environment: Mapping[str, str], *, user: str) -> None:
        self.programs = programs
        self._environment = {key: environment[key] for key in _KEPT if key in environment} | _ALWAYS
        self._user = [f"--user={user}"] if user else []

    async def submit(self, options: Sequence[str], script: Path) -> JobID:
        """Raises Rejected with Slurm's own words, Unreachable (nothing submitted) or OutcomeUnknown."""
        done = await self._run([self.programs.sbatch, "--parsable", *options, str(script)], timeout_s=SUBMIT_TIMEOUT_S)
        job_id = parsing.submitted(done.stdout.decode(errors="replace"))
        complaint = parsing.words(done.stderr.decode(errors="replace"))
        if done.exit_code < 0 or (done.exit_code != 0 and not complaint):
            raise OutcomeUnknown(
                f"sbatch ended with {done.exit_code}, as if it had been killed: {complaint or 'no word'}"
            )
        if done.exit_code != 0:
            raise refusal(complaint)
        if job_id is None:
            raise OutcomeUnknown(f"sbatch printed no job id: {complaint or 'nothing at all'}")
        return job_id

    async def queue(self) -> list[QueuedJob]:
        """Every job of ours that the controller knows, ended ones included. Raises Unreachable."""
        argv = [self.programs.squeue, "--noheader", "--all", "--states=all", *self._user, "-O", parsing.QUEUE_FORMAT]
        return parsing.queue(await self._ask(argv))

    async def accounting(self, *, job_ids: Sequence[JobID] = (), tags: Sequence[Tag] = ()) -> list[QueuedJob]:
        """What accounting knows of these ids, or of these names in the last 30 days. Raises Unreachable."""
        names = ",".join(map(str, tags))
        which = [f"--jobs={','.join(job_ids)}"] if job_ids else [f"--name={names}", "--starttime=now-30days"]
        who = self._user or ["--allusers"]
        fields = f"--format={parsing.ACCOUNTING_FIELDS}"
        argv = [self.programs.sacct, "-X", "-P", "--noheader", "--duplicates", *who, *which, fields]
        return parsing.accounting(await self._ask(argv))

    async def cancel(self, job_ids: Sequence[JobID], *options: str) -> None:
        """Harmless for jobs that have ended or never were. Raises Unreachable."""
        done = await self._run([self.programs.scancel, *options, *job_ids], timeout_s=QUESTION_TIMEOUT_S)
        complaint = parsing.words(done.stderr.decode(errors="replace"))
        has_no_job = any(words in complaint.lower() for words in _NO_JOB) or done.exit_code in _NO_JOB_CODES
        if done.exit_code != 0 and not has_no_job:
            raise Unreachable(f"scancel: {complaint or f'ended with {done.exit_code}'}")

    async def nodes(self) -> list[SeenNode]:
        """Raises Unreachable."""
        return parsing.nodes(
            await self._ask([self.programs.sinfo, "--noheader", "-N", "-O", parsing.NODES_FORMAT], needs_answer=True)
        )

    async def version(self) -> str:
        return (await self._ask([self.programs.sbatch, "--version"], needs_answer=True)).strip()

    async def configuration(self) -> dict[str, str]:
        """The controller's configuration, keys in lower case. Raises Unreachable."""
        text = await self._ask([self.programs.scontrol, "show", "config"], needs_answer=True)
        pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
        return {key.strip().lower(): value.strip() for key, _, value in pairs}

    async def _ask(self, argv: Sequence[str], *, needs_answer: bool = False) -> str:
        """An empty answer together with a complaint is a complaint: it proves nothing about any job."""
        try:
            done = await self._run(argv, timeout_s=QUESTION_TIMEOUT_S)
        except OutcomeUnknown as error:
            raise Unreachable(str(error)) from error
        name = Path(argv[0]).name
        complaint = parsing.words(done.stderr.decode(errors="replace"))
        if done.exit_code != 0:
            raise Unreachable(f"{name}: {complaint or f'ended with {done.exit_code}'}")
        text = done.stdout.decode(errors="replace")
        if not text.strip() and (complaint or needs_answer):
            raise Unreachable(f"{name}: {complaint or 'printed nothing'}")
        return text

    async def _run(self, argv: Sequence[str], *, timeout_s: float) -> Finished:
        name = Path(argv[0]).name
        COMMANDS.labels(name).inc()
        started = time.monotonic()
        try:
            return await processes.run(argv, env=self._environment, timeout_s=timeout_s, is_env_complete=True)
        except TimeoutError as error:  # which is an OSError, so it comes first
            raise OutcomeUnknown(f"{name} did not end within {time.monotonic() - started:.0f} s") from error
        except OSError as error:
            raise Unreachable(f"cannot run {argv[0]}: {error.strerror}") from error


def refusal(complaint: str) -> Rejected | Unreachable | OutcomeUnknown:
    """What a failed submission means. Slurm has no codes for it, so its words decide; unknown words are a refusal."""
    lowered = complaint.lower()
    if any(words in lowered for words in _NOT_SENT) and not any(words in lowered for words in _UNKNOWN):
        return Unreachable(f"sbatch: {complaint}")
    if any(words in lowered for words in _UNKNOWN):
        return OutcomeUnknown(f"sbatch: {complaint}")
    if any(words in lowered for words in _LATER):
        return Unreachable(f"sbatch: {complaint}")
    return Rejected(f"Slurm refused the job: {complaint}")
