"""What Slurm's commands print."""

import pytest

from interlink.plugins.slurm import parsing
from interlink.plugins.slurm.commands import refusal
from interlink.sdk.errors import OutcomeUnknown, Rejected, Unreachable

NAME = "il-c-uid-1-a0"


def line(**columns: str) -> str:
    widths = dict(part.split(":") for part in parsing.QUEUE_FORMAT.split(","))
    base = {"JobID": "7", "State": "RUNNING", "exit_code": "0", "Requeue": "0", "Name": NAME}
    return "".join((base | columns).get(name, "").ljust(int(width))[: int(width)] for name, width in widths.items())


def test_a_line_of_the_queue() -> None:
    """Cut by position: a reason may hold anything."""
    text = line(Reason="a | b, c", Comment="x\ty", StartTime="1800000000", EndTime="N/A", exit_code="1280")
    (job,) = parsing.queue(text)

    assert (job.job_id, job.state, job.reason, job.comment) == ("7", "RUNNING", "a | b, c", "x\ty")
    assert (job.started_at, job.ended_at, job.exit_status, str(job.tag)) == (1800000000.0, None, 1280, NAME)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "garbage", line(Name="interactive"), line(JobID="12_[1-3]"), line(Name="il-c-a0")]
)
def test_what_is_not_ours_is_left_out(text: str) -> None:
    """Jobs of others, arrays, lines that cannot be read."""
    assert parsing.queue(text) == []


def test_accounting() -> None:
    """In its order, with codes as code:signal, and states with additions."""
    text = (
        f"7|CANCELLED by 9|0:15|1|1800000000|1800000005|{NAME}\n7.batch|FAILED|1:0|1||||\n8|COMPLETED|0:0|1|||o|name\n"
    )
    (job,) = parsing.accounting(text)

    assert (job.state, job.exit_status, job.ended_at) == ("CANCELLED", 15, 1800000005.0)
    assert (job.cancelled_by, job.submitted_at, job.restarts) == (9, 1.0, 0)


def test_a_job_that_was_put_back_has_several_records() -> None:
    """Of its name; an id may have been somebody else's before."""
    other = NAME.replace("uid-1", "uid-2")
    text = f"7|NODE_FAIL|0:0|1|2|5|{other}\n7|NODE_FAIL|0:0|1|2|5|{NAME}\n7|CANCELLED by 0|0:0|5|5|5|{NAME}\n"

    assert [job.restarts for job in parsing.accounting(text)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("stdout", "job_id"),
    [("12\n", "12"), ("12;cluster-a\n", "12"), ("Welcome!\n12\n", "12"), ("", None), ("Submitted 12 jobs\n", None)],
)
def test_the_id_of_a_submission(stdout: str, job_id: str | None) -> None:
    """Alone or with the cluster, after whatever a site prints before."""
    assert parsing.submitted(stdout) == job_id


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        ("invalid partition specified: nosuch", Rejected),
        ("Batch job submission failed: Requested node configuration is not available", Rejected),
        (
            "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size)",
            Unreachable,
        ),
        ("Batch job submission failed: Unable to contact slurm controller (connect failure)", Unreachable),
        ("Batch job submission failed: Socket timed out on send/recv operation", OutcomeUnknown),
        ("Batch job submission failed: Zero Bytes were transmitted or received", OutcomeUnknown),
        ("Batch job submission failed: Protocol authentication error", Unreachable),
        ("Slurm temporarily unable to accept job, sleeping and retrying", Unreachable),
    ],
)
def test_what_a_failed_submission_means(complaint: str, kind: type[Exception]) -> None:
    """A refusal is definitive; a controller that is away is not; a time-out may have submitted the job."""
    error = refusal(complaint)

    assert type(error) is kind
    assert complaint in str(error)


def test_a_complaint_in_one_line() -> None:
    """Without the command's name before each."""
    assert parsing.words("sbatch: error: one\nsbatch: fatal: two\n\n") == "one; two"


def node(name: str, **columns: str) -> str:
    widths = dict(part.split(":") for part in parsing.NODES_FORMAT.split(","))
    base = {"NodeList": name, "Partition": "main*", "Available": "up", "StateCompact": "idle", "CPUs": "64"}
    base |= {"Memory": "1000", "Time": "infinite", "Gres": "(null)"} | columns
    return "".join(base[column].ljust(int(width)) for column, width in widths.items()) + "\n"


def test_what_the_nodes_offer() -> None:
    """A node in two partitions counts once; those that are down, drained or away count nothing."""
    text = (
        node("n1", Gres="gpu:a100:4(S:0-1),gpu:2")
        + node("n1", Partition="other")
        + node("n2", StateCompact="mix", CPUs="32")
        + "".join(
            node(f"x{i}", StateCompact=state) for i, state in enumerate(["down", "drain", "idle*", "maint", "unk"])
        )
        + node("n3", Partition="closed", Available="down")
    )
    offered = parsing.offer(parsing.nodes(text), [])

    assert (offered.nodes, offered.cpus, offered.memory_mb) == (2, 96, 2000)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("infinite", None), ("n/a", None), ("", None), ("30:00", 30), ("2:00:00", 120), ("1-02:03:59", 1563)],
)
def test_a_partitions_time_limit(text: str, minutes: int | None) -> None:
    """In whole minutes."""
    assert parsing.minutes(text) == minutes


def test_time_limits_by_partition() -> None:
    """The default partition is also the one without a name."""
    text = node("n1", Time="1:00:00") + node("n1", Partition="long") + node("n2", Partition="short", Time="10:00")

    assert parsing.time_limits(parsing.nodes(text)) == {"main": 60, "": 60, "short": 10}


def test_gpus_are_counted_over_their_types() -> None:
    """Whatever is said of their sockets."""
    assert parsing.gres("gpu:a100:4(S:0-1),gpu:2,shard:8,(null)") == {"gpu": 6, "shard": 8}


def test_only_the_partitions_that_are_named() -> None:
    """Others offer nothing."""
    offered = parsing.offer(parsing.nodes(node("n1") + node("n2", Partition="gpu")), ["gpu"])

    assert (offered.nodes, offered.cpus) == (1, 64)
