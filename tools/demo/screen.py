"""The screen: a live table on a terminal, lines elsewhere. `render` and `line` are pure functions of the scene."""

import collections
import contextlib
import threading
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tools.demo.manifests import Workload
from tools.demo.places import PodView
from tools.demo.scene import Happening, ProgramState, Scene

PHASES = ("Pending", "Running", "Succeeded", "Failed")
WIDE = 118  # columns in which the two tables stand side by side
OTHER_LINES = 24  # of a terminal: the tables
LINE_EVERY_S = 2.0
COLOURS = {"Pending": "yellow", "Running": "cyan", "Succeeded": "green", "Failed": "red"}


@contextlib.contextmanager
def shown(scene: Scene, workloads: Sequence[Workload], console: Console) -> Iterator[None]:
    if console.is_terminal:
        with Live(get_renderable=lambda: render(scene, workloads, console.size), console=console, refresh_per_second=5):
            yield
    else:
        with _lines(scene, console):
            yield


def render(scene: Scene, workloads: Sequence[Workload], size: ConsoleDimensions) -> RenderableType:
    pods, programs = _pods(scene, workloads), _programs(scene)
    happenings = scene.happenings[-max(4, size.height - OTHER_LINES) :]
    if size.width < WIDE:
        return Group(pods, programs, *map(_happening, happenings))
    tables = Table.grid(padding=(0, 4))
    tables.add_row(pods, programs)
    return Group(tables, *map(_happening, happenings))


def line(scene: Scene) -> str:
    """The pods by phase, and the jobs, in one line."""
    phases = _phases(scene.view.pods)
    counted = ", ".join(f"{phases[phase]} {phase}" for phase in PHASES if phases[phase])
    return f"pods: {counted or 'none'}; jobs alive: {len(scene.alive)}; payloads started: {len(scene.starts)}"


@contextlib.contextmanager
def _lines(scene: Scene, console: Console) -> Iterator[None]:
    """What happens at once, the pods every few seconds if anything has changed."""
    has_ended = threading.Event()

    def say(at_s: float, text: str) -> None:
        console.print(f"{at_s:6.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    def run() -> None:
        told = ""
        while not has_ended.wait(LINE_EVERY_S):
            if scene.looks and (news := line(scene)) != told:
                told = news
                say(scene.elapsed_s, news)

    def on_happening(happening: Happening) -> None:
        say(happening.at_s, happening.text)

    scene.listener = on_happening
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def _pods(scene: Scene, workloads: Sequence[Workload]) -> Table:
    phases = [f"[{COLOURS[phase]}]{phase}[/]" for phase in PHASES]
    table = Table("pods", *phases, "jobs alive", "started", box=box.ROUNDED)
    table.columns[0].min_width = len("service (being deleted)")
    table.columns[-1].min_width = len("200 of 200")
    for column in table.columns[1:]:
        column.justify = "right"
    for workload in workloads:
        pods = [pod for pod in scene.view.pods if workload.owns(pod.name)]
        started = sum(workload.owns(start.pod) for start in scene.starts)
        alive = sum(pod.uid in scene.alive for pod in pods)
        table.add_row(_title(workload, pods), *_counts(pods), str(alive), f"{started} of {workload.payloads}")
    total = sum(workload.payloads for workload in workloads)
    table.add_section()
    table.add_row(
        "all", *_counts(scene.view.pods), str(len(scene.alive)), f"{len(scene.starts)} of {total}", style="bold"
    )
    return table


def _title(workload: Workload, pods: Sequence[PodView]) -> Text:
    title = Text(f"Job {workload.name}" if workload.is_job else workload.name)
    return title.append(" (being deleted)", "yellow") if any(pod.is_deleting for pod in pods) else title


def _counts(pods: Sequence[PodView]) -> list[str]:
    phases = _phases(pods)
    return [str(phases[phase] or "") for phase in PHASES]


def _phases(pods: Sequence[PodView]) -> collections.Counter[str]:
    return collections.Counter(pod.phase for pod in pods)


def _programs(scene: Scene) -> Table:
    table = Table("program", f"at {scene.elapsed_s:.0f} s", "kills", box=box.ROUNDED)
    table.columns[1].min_width = len("killed 1.5 s ago")
    for name, state in scene.programs.items():
        table.add_row(name, _state(state, scene.elapsed_s), str(state.kills or ""))
    return table


def _state(state: ProgramState, now_s: float) -> Text:
    if state.is_running:
        return Text(f"runs for {now_s - state.since_s:.0f} s", "green")
    return Text(f"killed {now_s - state.since_s:.1f} s ago", "bold red")


def _happening(happening: Happening) -> Text:
    return Text(f"{happening.at_s:6.1f} s  {happening.text}", "red" if "SIGKILL" in happening.text else "")
