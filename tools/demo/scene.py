"""What is going on: written by the story and the watcher, read by the screen. Each field has one writer."""

import time
from collections.abc import Callable

import msgspec

from tools.demo.ledger import Start
from tools.demo.places import View


class Happening(msgspec.Struct, frozen=True):
    at_s: float
    text: str


class ProgramState(msgspec.Struct, frozen=True):
    is_running: bool
    since_s: float
    kills: int = 0


class Scene:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = clock()
        self.view = View()
        self.starts: list[Start] = []
        self.alive: frozenset[str] = frozenset()  # the pod UIDs of jobs whose runner lives
        self.happenings: list[Happening] = []
        self.programs: dict[str, ProgramState] = {}
        self.job_ids: dict[str, set[str]] = {}
        self.phases: dict[str, str] = {}
        self.steps_back: list[str] = []
        self.looks = 0
        self.listener: Callable[[Happening], None] = lambda happening: None

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._started

    @property
    def kills(self) -> int:
        return sum(program.kills for program in self.programs.values())

    def tell(self, text: str) -> None:
        happening = Happening(at_s=self.elapsed_s, text=text)
        self.happenings.append(happening)
        self.listener(happening)

    def program_runs(self, name: str) -> None:
        kills = self.programs[name].kills if name in self.programs else 0
        self.programs[name] = ProgramState(is_running=True, since_s=self.elapsed_s, kills=kills)

    def program_killed(self, name: str) -> None:
        kills = self.programs[name].kills + 1
        self.programs[name] = ProgramState(is_running=False, since_s=self.elapsed_s, kills=kills)

    def seen_files(self, starts: list[Start], alive: frozenset[str]) -> None:
        self.starts, self.alive = starts, alive

    def looked(self, view: View) -> None:
        """The view is the newest; every job id that a pod was ever seen with is remembered, and every step back."""
        self.view = view
        self.looks += 1
        for pod in view.pods:
            if pod.job_id:
                self.job_ids.setdefault(pod.uid, set()).add(pod.job_id)
            before = self.phases.get(pod.uid, "Pending")
            if is_step_back(before, pod.phase):
                self.steps_back.append(f"{pod.name} went from {before} to {pod.phase}")
            self.phases[pod.uid] = pod.phase


def is_step_back(before: str, after: str) -> bool:
    """A pod that runs never waits again, and one that has ended never changes."""
    return after != before and (before in ("Succeeded", "Failed") or after == "Pending")
