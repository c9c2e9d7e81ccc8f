"""What each example must come to: its phase, the exit code of each container, and what it must have written."""

import re

import msgspec


class Expectation(msgspec.Struct, frozen=True):
    """`logs` by container, each the whole log."""

    phase: str
    exit_codes: dict[str, int]
    logs: dict[str, str]


JOB = "tasks"
DELETED = "service"
DELETED_LOG = "ready\nbye\n"
PODS = {
    "containers": Expectation(
        phase="Succeeded",
        exit_codes={"prepare": 0, "multiply": 0, "report": 0},
        logs={"report": "the answer is 42\n"},
    ),
    "failing": Expectation(phase="Failed", exit_codes={"main": 42}, logs={"main": "giving up\n"}),
    "inputs": Expectation(
        phase="Succeeded",
        exit_codes={"main": 0},
        logs={"main": "good morning\n[answer]\nvalue = 42\nthe password has 28 characters\n"},
    ),
}
_TASK = re.compile(r"task (\d*) begins\ntask (\d*) ends\n")


def task_number(log: str) -> str | None:
    """The number of the task that wrote this log, empty where nobody numbers them; None for a log that is wrong."""
    found = _TASK.fullmatch(log)
    return found[1] if found and found[1] == found[2] else None
