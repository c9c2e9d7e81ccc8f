"""What Slurm's commands print, as values; pure.

Columns have fixed widths and are cut by position, because reasons, names and comments may contain anything. A line
that cannot be read is left out: it is a job of somebody else, or of a Slurm that we do not know.
"""

import collections
import re
from collections.abc import Iterator, Sequence

import msgspec

from interlink.model.ids import JobID, Tag, parse_tag
from interlink.wire.messages import Accelerator


class QueuedJob(msgspec.Struct, frozen=True, gc=False):
    """One line of squeue or sacct about a job of ours; times in seconds since the epoch.

    exit_status is as wait(2) has it: the code times 256, plus the signal. submitted_at: also when it was put back into
    the queue. restarts: how often that was. cancelled_by: a user's id, where that is told.
    """

    tag: Tag
    job_id: JobID
    state: str
    reason: str = ""
    exit_status: int = 0
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    is_requeueable: bool = False
    restarts: int = 0
    cancelled_by: int | None = None
    comment: str = ""


_QUEUE = {
    "JobID": 16,
    "State": 20,
    "exit_code": 12,
    "Requeue": 4,
    "RestartCnt": 8,
    "SubmitTime": 24,
    "StartTime": 24,
    "EndTime": 24,
    "Reason": 96,
    "Comment": 300,
    "Name": 300,
}
QUEUE_FORMAT = ",".join(f"{name}:{width}" for name, width in _QUEUE.items())


def queue(text: str) -> list[QueuedJob]:
    """What `squeue -O QUEUE_FORMAT` prints of jobs that carry a tag of ours."""
    found = (_queued(_cut(line, list(_QUEUE.values()))) for line in text.splitlines())
    return [job for job in found if job is not None]


def _cut(line: str, widths: Sequence[int]) -> Iterator[str]:
    start = 0
    for width in widths:
        yield line[start : start + width].strip()
        start += width


def _queued(columns: Iterator[str]) -> QueuedJob | None:
    job_id, state, exit_status, requeue, restarts, submitted, started, ended, reason, comment, name = columns
    tag = parse_tag(name)
    if tag is None or not job_id.isdecimal():
        return None
    return QueuedJob(
        tag=tag,
        job_id=JobID(job_id),
        state=word(state),
        reason="" if reason == "None" else reason,
        exit_status=int(exit_status) if exit_status.isdecimal() else 0,
        submitted_at=_moment(submitted),
        started_at=_moment(started),
        ended_at=_moment(ended),
        is_requeueable=requeue == "1",
        restarts=int(restarts) if restarts.isdecimal() else 0,
        comment="" if comment == "(null)" else comment,
    )


_BY = re.compile(r"CANCELLED by (\d+)")
ACCOUNTING_FIELDS = "JobIDRaw,State,ExitCode,Submit,Start,End,JobName"


def accounting(text: str) -> list[QueuedJob]:
    """What `sacct -P -o ACCOUNTING_FIELDS` prints, in its order: of several records of an id the last one counts."""
    found: list[QueuedJob] = []
    earlier: collections.Counter[tuple[Tag, JobID]] = collections.Counter()
    for line in text.splitlines():
        job = _accounted(line.split("|", 6))
        if job is not None:
            found.append(msgspec.structs.replace(job, restarts=earlier[job.tag, job.job_id]))
            earlier[job.tag, job.job_id] += 1
    return found


def _accounted(columns: Sequence[str]) -> QueuedJob | None:
    if len(columns) != 7:
        return None
    job_id, state, exit_code, submitted, started, ended, name = columns
    tag = parse_tag(name.strip())
    if tag is None or not job_id.isdecimal():
        return None
    code, _, number = exit_code.partition(":")
    return QueuedJob(
        tag=tag,
        job_id=JobID(job_id),
        state=word(state),
        exit_status=(int(code) if code.isdecimal() else 0) * 256 + (int(number) if number.isdecimal() else 0),
        cancelled_by=int(by[1]) if (by := _BY.fullmatch(state.strip())) else None,
        submitted_at=_moment(submitted),
        started_at=_moment(started),
        ended_at=_moment(ended),
    )


def word(state: str) -> str:
    """`CANCELLED by 1000` and `CANCELLED+` are CANCELLED."""
    return state.split()[0].rstrip("+") if state.split() else ""


def _moment(text: str) -> float | None:
    """Times come as seconds since the epoch, because SLURM_TIME_FORMAT is %s."""
    return float(text) if text.isdecimal() and text != "0" else None


def seconds(text: str) -> float:
    """`300 sec`, as the configuration has it; 0 for what is none."""
    found = re.match(r"\d+(?= sec)", text)
    return float(found[0]) if found else 0.0


# --- submissions -----------------------------------------------------------------------------------------------------

_SUBMITTED = re.compile(r"(\d+)(;[\w.-]+)?")


def submitted(stdout: str) -> JobID | None:
    """The id that `sbatch --parsable` prints, alone or before the cluster; whatever a site prints before it."""
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    found = _SUBMITTED.fullmatch(lines[-1]) if lines else None
    return JobID(found[1]) if found else None


def words(stderr: str) -> str:
    """A command's complaint in one line, without its name in front of each."""
    lines = (re.sub(r"^\w+: (error|fatal): ", "", line).strip() for line in stderr.splitlines())
    return "; ".join(line for line in lines if line)[:1000]


# --- nodes -----------------------------------------------------------------------------------------------------------

_NODES = {
    "NodeList": 64,
    "Partition": 64,
    "Available": 8,
    "StateCompact": 24,
    "CPUs": 12,
    "Memory": 16,
    "Time": 24,
    "Gres": 300,
}
NODES_FORMAT = ",".join(f"{name}:{width}" for name, width in _NODES.items())


class SeenNode(msgspec.Struct, frozen=True, gc=False):
    """A node as a member of one partition. time_limit: of the partition's jobs, minutes; None for none."""

    name: str
    partition: str
    is_partition_up: bool
    state: str
    cpus: int
    memory_mb: int
    time_limit: int | None
    gres: dict[str, int]
    is_in_default: bool = False


def nodes(text: str) -> list[SeenNode]:
    """What `sinfo -N -O NODES_FORMAT` prints."""
    found = (_node(list(_cut(line, list(_NODES.values())))) for line in text.splitlines())
    return [node for node in found if node is not None]


def _node(columns: Sequence[str]) -> SeenNode | None:
    name, partition, available, state, cpus, memory, time_limit, gres_text = columns
    if not name or not cpus.isdecimal() or not memory.isdecimal():
        return None
    return SeenNode(
        name=name,
        partition=partition.rstrip("*"),
        is_partition_up=available == "up",
        state=state.rstrip("*~#!%$@^-+").lower() if not state.endswith("*") else "down",
        cpus=int(cpus),
        memory_mb=int(memory),
        time_limit=minutes(time_limit),
        gres=gres(gres_text),
        is_in_default=partition.endswith("*"),
    )


def minutes(text: str) -> int | None:
    """`1-02:03:04`, `02:03:04` or `03:04` in whole minutes; None for `infinite` and what is no time."""
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", text)
    if found is None:
        return None
    days, hours, minutes_, _ = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes_


def time_limits(seen: Sequence[SeenNode]) -> dict[str, int]:
    """In minutes by partition, that of the default one also under ""; one without a limit is left out."""
    named = [(name, node) for node in seen for name in (node.partition, *([""] if node.is_in_default else []))]
    return {name: node.time_limit for name, node in named if node.time_limit is not None}


def gres(text: str) -> dict[str, int]:
    """`gpu:a100:4(S:0-1),gpu:2,(null)` -> {"gpu": 6}: how many of each kind."""
    found: dict[str, int] = {}
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        kind, *rest = part.strip().split(":")
        if kind and rest and rest[-1].isdecimal():
            found[kind] = found.get(kind, 0) + int(rest[-1])
    return found


_USABLE = {"idle", "mix", "mixed", "alloc", "allocated", "comp", "completing", "resv", "reserved", "plnd", "planned"}


class Offer(msgspec.Struct, frozen=True):
    """What the usable nodes have together; a node in several partitions counts once."""

    nodes: int
    cpus: int
    memory_mb: int
    gres: dict[str, int]


def offer(seen: Sequence[SeenNode], partitions: Sequence[str]) -> Offer:
    """Of the named partitions, or of all. Nodes that are down or drained offer nothing, nor do partitions not up."""
    usable = {
        node.name: node
        for node in seen
        if node.is_partition_up and node.state in _USABLE and (not partitions or node.partition in partitions)
    }
    kinds = sorted({kind for node in usable.values() for kind in node.gres})
    return Offer(
        nodes=len(usable),
        cpus=sum(node.cpus for node in usable.values()),
        memory_mb=sum(node.memory_mb for node in usable.values()),
        gres={kind: sum(node.gres.get(kind, 0) for node in usable.values()) for kind in kinds},
    )


def accelerators(offered: Offer, resources: Sequence[tuple[str, str]]) -> list[Accelerator]:
    """`resources`: pairs of a Kubernetes resource and the Gres that it is; each Gres is offered once."""
    taken: set[str] = set()
    found = []
    for resource, kind in resources:
        if kind in offered.gres and kind not in taken:
            taken.add(kind)
            found.append(Accelerator(resource_type=resource, available=str(offered.gres[kind])))
    return found
