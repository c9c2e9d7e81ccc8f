"""What is collected at the end, before anything is stopped."""

import base64
import concurrent.futures
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from interlink.sdk.batch.jobdir import JobDirectory
from tools.demo import expectations
from tools.demo.ledger import Start
from tools.demo.manifests import Workload
from tools.demo.places import AwayError, Place, PodView, View
from tools.demo.scene import Scene

LOGS_AT_ONCE = 4


class Search(msgspec.Struct, frozen=True):
    """Where Secret values were looked for, and the files in which one was found."""

    files: int
    found_in: list[str]


class Evidence(msgspec.Struct, frozen=True):
    workloads: list[Workload]
    view: View
    starts: list[Start]
    alive: frozenset[str]
    exit_codes: dict[str, dict[str, int]]
    logs: dict[str, dict[str, str]]
    job_logs: dict[str, str]
    deleted_log: str
    living_payloads: list[str]
    job_ids: dict[str, set[str]]
    looks: int
    steps_back: list[str]
    kills: dict[str, int]
    dead_programs: list[str]
    search: Search

    def pods_of(self, workload: Workload) -> list[PodView]:
        return [pod for pod in self.view.pods if workload.owns(pod.name)]

    @property
    def job(self) -> Workload:
        return next(workload for workload in self.workloads if workload.is_job)


def is_settled(view: View, workloads: Iterable[Workload], *, has_jobs: bool) -> bool:
    """Every pod has ended, the deleted one is gone and, with Kubernetes, the Job is complete.

    More pods than expected are a fault, but nothing to wait for.
    """
    expected = sum(workload.pods for workload in workloads if workload.name != expectations.DELETED)
    is_complete = not has_jobs or expectations.JOB in view.completed_jobs
    return is_complete and len(view.pods) >= expected and all(pod.has_ended for pod in view.pods)


def gather(
    scene: Scene, place: Place, workloads: list[Workload], *, folder: Path, dead_programs: list[str], search: Search
) -> Evidence:
    """Never raises for what cannot be had: what is missing fails its check."""
    jobs = folder / "jobs"
    singles = [pod for pod in scene.view.pods if pod.name in expectations.PODS]
    job = next(workload for workload in workloads if workload.is_job)
    job_pods = [pod for pod in scene.view.pods if job.owns(pod.name)]
    return Evidence(
        workloads=workloads,
        view=scene.view,
        starts=scene.starts,
        alive=scene.alive,
        exit_codes={pod.name: _exit_codes(place, pod) for pod in singles},
        logs={pod.name: _logs(place, pod) for pod in singles},
        job_logs=_logs_of(place, job, job_pods),
        deleted_log=deleted_log(scene.starts, jobs),
        living_payloads=living(scene.starts),
        job_ids=scene.job_ids,
        looks=scene.looks,
        steps_back=scene.steps_back,
        kills={name: state.kills for name, state in scene.programs.items()},
        dead_programs=dead_programs,
        search=search,
    )


def search_for(values: Sequence[str], paths: Iterable[Path]) -> Search:
    """Look for the values, as they are and in base64, in files and in everything below folders."""
    needles = [needle for value in values for needle in (value.encode(), base64.b64encode(value.encode()))]
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    contents = {file: content for file in files if (content := _content(file)) is not None}
    found = [str(file) for file, content in contents.items() if any(needle in content for needle in needles)]
    return Search(files=len(contents), found_in=found)


def deleted_log(starts: Iterable[Start], jobs: Path) -> str:
    """What the deleted pod wrote, from its job directory: Kubernetes does not know it any more."""
    uid = next((start.pod_uid for start in starts if start.pod == expectations.DELETED), None)
    log = JobDirectory(jobs / uid).log("main", 0) if uid else None
    return text_of(log.read_text()) if log and log.exists() else ""


def text_of(cri: str) -> str:
    """The text of a log whose lines are `time stream tag text`. Pure."""
    return "".join(line.split(" ", 3)[3] for line in cri.splitlines(keepends=True))


def living(starts: Iterable[Start]) -> list[str]:
    """Payloads whose process still lives."""
    return [f"{start.pod}/{start.container} (process {start.process_id})" for start in starts if _lives(start)]


def _lives(start: Start) -> bool:
    """The process id may meanwhile belong to somebody else, who does not have our pod's UID in its environment."""
    with contextlib.suppress(OSError):
        return start.pod_uid.encode() in Path(f"/proc/{start.process_id}/environ").read_bytes()
    return False


def _logs_of(place: Place, job: Workload, pods: Sequence[PodView]) -> dict[str, str]:
    """Several at a time: kubectl alone would wait between one log and the next."""

    def read(pod: PodView) -> str:
        return _log(place, pod, job.containers[-1])

    chosen = pods[: place.most_logs]
    with concurrent.futures.ThreadPoolExecutor(LOGS_AT_ONCE) as executor:
        return {pod.name: log for pod, log in zip(chosen, executor.map(read, chosen), strict=True)}


def _logs(place: Place, pod: PodView) -> dict[str, str]:
    containers = expectations.PODS[pod.name].logs
    return {name: _log(place, pod, name) for name in containers}


def _log(place: Place, pod: PodView, container: str) -> str:
    """The log; where there is none, the reason, which no log can equal."""
    try:
        return place.log(pod, container)
    except AwayError as error:
        return f"(no log: {error})"


def _exit_codes(place: Place, pod: PodView) -> dict[str, int]:
    try:
        return place.exit_codes(pod)
    except AwayError:
        return {}


def _content(file: Path) -> bytes | None:
    """None for a folder, and for a file that goes away meanwhile."""
    with contextlib.suppress(OSError):
        return file.read_bytes() if file.is_file() else None
    return None
