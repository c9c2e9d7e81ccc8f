"""The blows: which program is killed when, and how long it stays away."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlink.testing import waiting
from interlink.testing.programs import Programs
from tools.demo import ledger, watching
from tools.demo.manifests import Workload
from tools.demo.scene import Scene

PATIENCE_S = 60


class Blow(msgspec.Struct, frozen=True):
    """SIGKILL to a program once this share of the Job's payloads has started."""

    program: str
    after_share: float = 0.0
    down_s: float = 1.5


# In this order each blow meets creates that the one before has left open.
DURING_CREATES = (Blow("server", after_share=0.25), Blow("virtual kubelet"), Blow("plugin"))


class Striker:
    """Kills and restarts. To be used from the main thread: a program dies with the thread that started it."""

    def __init__(
        self, scene: Scene, programs: Programs, job: Workload, *, ledger_file: Path, on_start: Callable[[], None]
    ) -> None:
        self._scene = scene
        self._programs = programs
        self._job = job
        self._ledger_file = ledger_file
        self._on_start = on_start

    def strike(self, blow: Blow, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        """On return the program answers again. `meanwhile` runs while it is away."""
        due = blow.after_share * self._job.payloads
        waiting.until(lambda: self._started() >= due, deadline_s=PATIENCE_S, interval_s=0.01)
        program = self._programs.all()[blow.program]
        program.kill()
        self._scene.program_killed(blow.program)
        self._scene.tell(f"SIGKILL to the {blow.program} ({self._situation()})")
        meanwhile()
        time.sleep(blow.down_s)
        program.start()
        self._on_start()
        self._scene.program_runs(blow.program)
        self._scene.tell(f"the {blow.program} is back")

    def delete_cache(self, *, copy_to: Path) -> None:
        """Delete CachedPods under the running server; the copy is for the search for Secret values."""
        cache = self._programs.cache
        records = len(list(cache.glob("*.yaml")))
        shutil.copytree(cache, copy_to, ignore=shutil.ignore_patterns(".*"))
        shutil.rmtree(cache, ignore_errors=True)
        self._scene.tell(f"deleted CachedPods with {records} records while the server runs")

    def _started(self) -> int:
        return len(ledger.of(ledger.read(self._ledger_file), self._job))

    def _situation(self) -> str:
        """The jobs as they are now, the pods as they were seen last."""
        pods = self._scene.view.pods
        creating = sum(not pod.job_id for pod in pods)
        running = sum(pod.phase == "Running" for pod in pods)
        alive = len(watching.alive(self._programs.jobs))
        return f"{alive} jobs alive, {running} pods Running, {creating} without a job id"
