"""The story: set up, submit, kill, wait, check, end."""

import concurrent.futures
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from interlink.testing import ControlPlane, HarnessError, waiting
from interlink.testing.programs import Programs
from tools.demo import checks, evidence, expectations, leftovers, manifests, screen, stage, summary
from tools.demo.checks import Check
from tools.demo.direct import Direct
from tools.demo.kubernetes import Kubernetes
from tools.demo.manifests import Document, Placement
from tools.demo.options import Options
from tools.demo.places import AwayError, Place
from tools.demo.scene import Scene
from tools.demo.stage import Stage
from tools.demo.striking import DURING_CREATES, Blow, Striker
from tools.demo.watching import Watcher

PAUSE_S = 1.0
LINE_WIDTH = 120
INTERRUPTED = 130


def run(options: Options, folder: Path, *, examples: Path) -> int:
    """The exit code. Whatever happens, nothing runs afterwards, unless it is to be kept and all went to its end."""
    console = Console(width=None if sys.stdout.isatty() else LINE_WIDTH)
    started = time.monotonic()
    with leftovers.locked(folder):
        leftovers.clear(folder)
        try:
            code = Story(options, folder, examples, console).run()
        except KeyboardInterrupt:
            console.print("interrupted; everything has been ended")
            code = INTERRUPTED
        except (HarnessError, AwayError) as error:
            console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
            code = 1
    console.print(f"total time: {time.monotonic() - started:.0f} s", highlight=False)
    return code


class Story:
    def __init__(self, options: Options, folder: Path, examples: Path, console: Console) -> None:
        self._options = options
        self._folder = folder
        self._examples = manifests.load(examples)
        self._console = console
        self._ledger = folder / "ledger" / "starts"
        self._copied_cache = folder / "CachedPods.deleted"
        self._scene = Scene()
        self._workloads = manifests.workloads(self._prepared(stage.OWN_NAME))

    def run(self) -> int:
        if self._options.wants_cluster:
            stage.build()
        with contextlib.ExitStack() as stack:
            try:
                found = self._run(stack)
            finally:
                # Ending takes seconds, in which a second Ctrl-C must not leave anything behind.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            if self._options.is_kept:
                stack.pop_all()
        return 0 if all(check.has_passed for check in found) else 1

    def _run(self, stack: contextlib.ExitStack) -> list[Check]:
        with screen.shown(self._scene, self._workloads, self._console):
            opened = self._open(stack)
            programs = self._start(stack, opened)
            found = self._play(opened, programs, self._place(stack, opened, programs))
        self._conclude(opened, programs, found)
        return found

    def _open(self, stack: contextlib.ExitStack) -> Stage:
        self._scene.tell("starting Kubernetes" if self._options.wants_cluster else "without Kubernetes")
        opened = stage.open_stage(stack, wants_cluster=self._options.wants_cluster, is_kept=self._options.is_kept)
        if isinstance(opened.cluster, ControlPlane):
            leftovers.note_control_plane(self._folder, opened.cluster.folder)
        elif opened.cluster is not None:
            stack.callback(opened.cluster.kubectl, "delete", "node", opened.name, "--ignore-not-found")
        return opened

    def _start(self, stack: contextlib.ExitStack, opened: Stage) -> Programs:
        self._scene.tell("starting the programs")
        programs = Programs(
            self._folder, cluster=opened.cluster, node_name=opened.name, is_detached=self._options.is_kept
        )
        stack.callback(leftovers.end_jobs, programs.jobs)
        stack.callback(self._stop, programs)
        programs.start()
        leftovers.note_programs(self._folder, programs)
        for name in programs.all():
            self._scene.program_runs(name)
        return programs

    def _stop(self, programs: Programs) -> None:
        programs.stop()
        (self._folder / "pids").unlink(missing_ok=True)

    def _place(self, stack: contextlib.ExitStack, opened: Stage, programs: Programs) -> Place:
        if opened.cluster is None:
            return Direct(f"http://127.0.0.1:{programs.server_port}", self._folder)
        place = Kubernetes(opened.cluster, opened.name)
        if not isinstance(opened.cluster, ControlPlane):
            stack.callback(opened.cluster.kubectl, "delete", "namespace", opened.name, "--ignore-not-found")
        place.prepare()
        return place

    def _play(self, opened: Stage, programs: Programs, place: Place) -> list[Check]:
        self._ledger.parent.mkdir()
        watcher = Watcher(
            self._scene,
            place,
            jobs=programs.jobs,
            ledger_file=self._ledger,
            place_every_s=1.0 if opened.cluster else 2.0,
        )
        striker = Striker(
            self._scene,
            programs,
            next(workload for workload in self._workloads if workload.is_job),
            ledger_file=self._ledger,
            on_start=lambda: leftovers.note_programs(self._folder, programs),
        )
        with watcher.watching():
            if opened.cluster is None:
                self._act_without_kubernetes(place, striker)
            else:
                self._act(place, striker, self._prepared(opened.name))
            self._settle(has_jobs=opened.cluster is not None)
        watcher.look()
        return self._check(opened, programs, place)

    def _act(self, place: Place, striker: Striker, documents: list[Document]) -> None:
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            submission = executor.submit(place.submit, documents)
            self._scene.tell(self._submitted(documents))
            for blow in DURING_CREATES:
                striker.strike(blow)
            submission.result()
        self._await_service()
        self._await_job_ids()
        striker.strike(Blow("virtual kubelet"))
        time.sleep(PAUSE_S)
        striker.delete_cache(copy_to=self._copied_cache)
        time.sleep(PAUSE_S)
        striker.strike(Blow("server"), meanwhile=lambda: self._delete_service(place))
        time.sleep(PAUSE_S)
        striker.strike(Blow("plugin"))

    def _act_without_kubernetes(self, place: Place, striker: Striker) -> None:
        documents = self._prepared(stage.OWN_NAME)
        self._scene.tell(self._submitted(documents))
        place.submit(documents)
        self._await_service()
        for program in ("plugin", "server"):
            striker.strike(Blow(program))
            time.sleep(PAUSE_S)
        self._delete_service(place)
        striker.strike(Blow("plugin"))

    def _submitted(self, documents: list[Document]) -> str:
        pods = sum(workload.pods for workload in self._workloads)
        return f"submitting {len(documents)} objects of examples/ with {pods} pods"

    def _await_service(self) -> None:
        """The pod that will be deleted runs."""

        def runs() -> bool:
            return any(pod.name == expectations.DELETED and pod.phase == "Running" for pod in self._scene.view.pods)

        waiting.until(runs, deadline_s=60)

    def _await_job_ids(self) -> None:
        """Every pod has its job: what comes now meets pods that run."""
        expected = sum(workload.pods for workload in self._workloads)
        waiting.until(
            lambda: len(self._scene.job_ids) == expected,
            deadline_s=60 + expected / 2,
        )

    def _delete_service(self, place: Place) -> None:
        pod = next((pod for pod in self._scene.view.pods if pod.name == expectations.DELETED), None)
        if pod is None:
            raise AwayError(f"the pod {expectations.DELETED} is not there; look at {self._folder}/virtual-kubelet.log")
        place.delete(pod)
        self._scene.tell(f"deleted the pod {pod.name}, which runs")

    def _settle(self, *, has_jobs: bool) -> None:
        self._scene.tell("waiting for all pods to end")
        pods = sum(workload.pods for workload in self._workloads)
        deadline_s = 60 + pods / 2

        def is_settled() -> bool:
            return evidence.is_settled(self._scene.view, self._workloads, has_jobs=has_jobs) and not self._scene.alive

        if waiting.until(is_settled, deadline_s=deadline_s):
            self._scene.tell("all pods have ended")
        else:
            self._scene.tell(f"not all pods have ended after {deadline_s:.0f} s; checking all the same")

    def _check(self, opened: Stage, programs: Programs, place: Place) -> list[Check]:
        self._scene.tell("checking")
        logs = [program.log for program in programs.all().values()]
        secrets = manifests.secret_values(self._examples)
        gathered = evidence.gather(
            self._scene,
            place,
            self._workloads,
            folder=self._folder,
            dead_programs=[name for name, program in programs.all().items() if program.pid is None],
            search=evidence.search_for(secrets, [*logs, programs.cache, self._copied_cache]),
        )
        found = checks.all_of(gathered, Path(os.path.relpath(self._folder)), has_kubernetes=opened.cluster is not None)
        if opened.cluster and not all(check.has_passed for check in found):
            text = opened.cluster.kubectl("-n", opened.name, "get", "jobs,pods,events", "-o", "yaml")
            (self._folder / "pods.yaml").write_text(text)
        return found

    def _conclude(self, opened: Stage, programs: Programs, found: list[Check]) -> None:
        summary.show(self._console, found)
        if opened.cluster is None:
            summary.show_left_out(self._console, opened.lacks)
        if self._options.is_kept:
            server = f"http://127.0.0.1:{programs.server_port}"
            summary.show_lines(self._console, "Everything runs on. To explore it:", stage.explore(opened, server))
            end = f"{sys.executable} {Path(__file__).with_name('main.py')} end"
            summary.show_lines(self._console, "To end everything:", [end, *stage.remnants(opened)])

    def _prepared(self, name: str) -> list[Document]:
        placement = Placement(namespace=name, node_name=name, ledger=self._ledger)
        return manifests.prepared(self._examples, placement, completions=self._options.completions)
