"""The end: a table of checks, what was left out, and how long it took."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tools.demo import checks
from tools.demo.checks import Check

LEFT_OUT = (
    "Kubernetes itself (a Job, scheduling, pod statuses, the JobID annotation, kubectl logs)",
    "the virtual kubelet",
    "kills in the middle of creates, and the loss of CachedPods: the virtual kubelet is what repeats and restores",
)


def show(console: Console, found: Sequence[Check]) -> None:
    table = Table("", "check", "found", title="summary", title_justify="left")
    for check in found:
        mark = "[green]pass[/]" if check.has_passed else "[bold red]FAIL[/]"
        table.add_row(mark, check.title, escape(check.numbers))
    console.print(table)
    for check in found:
        if not check.has_passed:
            text = f"FAIL {check.title}: {checks.brief(check.problems)}\n     look at {check.look_at}"
            console.print(text, style="red", markup=False, highlight=False, soft_wrap=True)


def show_left_out(console: Console, reason: str) -> None:
    lines = ["Left out:", *(f"  - {text}" for text in LEFT_OUT), f"To have it too: {reason}"]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    """To be copied: never wrapped."""
    console.print(title)
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
