"""The summary's checks: pure functions of the evidence. A check that fails says what is wrong and where to look."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from tools.demo import expectations, ledger
from tools.demo.evidence import Evidence

SHOWN = 3


class Check(msgspec.Struct, frozen=True):
    """`numbers` is what was found, `problems` what is wrong with it; without problems the check has passed."""

    title: str
    numbers: str
    problems: list[str]
    look_at: str

    @property
    def has_passed(self) -> bool:
        return not self.problems


def all_of(evidence: Evidence, folder: Path, *, has_kubernetes: bool) -> list[Check]:
    functions: list[Callable[[Evidence, Path], Check]] = [
        started_once,
        job_complete if has_kubernetes else job_succeeded,
        exit_codes,
        logs,
        deleted,
        annotations if has_kubernetes else job_ids,
        only_forward,
        none_left,
        secrets,
        programs,
    ]
    return [function(evidence, folder) for function in functions]


def brief(problems: Sequence[str]) -> str:
    """The first few."""
    rest = f" and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    return "; ".join(problems[:SHOWN]) + rest


def started_once(evidence: Evidence, folder: Path) -> Check:
    tally = ledger.tally(evidence.starts, evidence.workloads)
    problems = [
        *(f"started {text}" for text in tally.repeated),
        *(f"never started: {text}" for text in tally.missing),
        *(f"too many: {text}" for text in tally.surplus),
    ]
    numbers = f"{tally.started} of {tally.expected} payloads, {len(evidence.starts)} starts"
    return Check(
        "every payload started exactly once", numbers, problems, f"{folder}/ledger/starts, {folder}/plugin.log"
    )


def job_complete(evidence: Evidence, folder: Path) -> Check:
    job = evidence.job
    succeeded = evidence.view.completed_jobs.get(job.name)
    problems = [f"{pod.name} is {pod.phase}" for pod in evidence.pods_of(job) if pod.phase != "Succeeded"]
    if succeeded != job.pods:
        problems.append("it is not complete" if succeeded is None else f"{succeeded} succeeded")
    where = f"{folder}/pods.yaml, {folder}/virtual-kubelet.log"
    return Check(
        "the Job is complete, no pod of it failed", f"{succeeded or 0} of {job.pods} succeeded", problems, where
    )


def job_succeeded(evidence: Evidence, folder: Path) -> Check:
    job = evidence.job
    wrong = [pod for pod in evidence.pods_of(job) if pod.phase != "Succeeded"]
    succeeded = len(evidence.pods_of(job)) - len(wrong)
    problems = [f"{pod.name} is {pod.phase}" for pod in wrong]
    if succeeded + len(wrong) != job.pods:
        problems.append(f"the server has {succeeded + len(wrong)} pods of it")
    return Check("the Job's pods succeeded", f"{succeeded} of {job.pods}", problems, f"{folder}/server.log")


def exit_codes(evidence: Evidence, folder: Path) -> Check:
    phases = {pod.name: pod.phase for pod in evidence.view.pods}
    problems = []
    for name, expected in expectations.PODS.items():
        if phases.get(name) != expected.phase:
            problems.append(f"{name} is {phases.get(name, 'missing')}, not {expected.phase}")
        if evidence.exit_codes.get(name) != expected.exit_codes:
            problems.append(f"{name} has {evidence.exit_codes.get(name)}, not {expected.exit_codes}")
    numbers = ", ".join(f"{name} {_codes(evidence.exit_codes.get(name, {}))}" for name in expectations.PODS)
    return Check("phases and exit codes are right", numbers, problems, f"{folder}/pods.yaml, {folder}/server.log")


def _codes(codes: dict[str, int]) -> str:
    return "+".join(map(str, codes.values())) or "none"


def logs(evidence: Evidence, folder: Path) -> Check:
    tasks = {name: expectations.task_number(text) for name, text in evidence.job_logs.items()}
    numbers = [number for number in tasks.values() if number]
    problems = [
        *(f"{name} wrote {evidence.job_logs[name]!r}" for name, number in tasks.items() if number is None),
        *_wrong_logs(evidence),
    ]
    if len(set(numbers)) != len(numbers):
        problems.append("two tasks have the same number")
    if not tasks:
        problems.append("no log of the Job could be read")
    count = len(tasks) + sum(map(len, evidence.logs.values()))
    return Check(
        "logs are right", f"{count} logs read", problems, f"{folder}/jobs/*/logs, {folder}/virtual-kubelet.log"
    )


def _wrong_logs(evidence: Evidence) -> Iterable[str]:
    for name, expected in expectations.PODS.items():
        for container, text in expected.logs.items():
            found = evidence.logs.get(name, {}).get(container)
            if found != text:
                yield f"{name}/{container} wrote {found!r}, not {text!r}"


def deleted(evidence: Evidence, folder: Path) -> Check:
    name = expectations.DELETED
    problems = []
    if any(pod.name == name for pod in evidence.view.pods):
        problems.append("the pod is still there")
    if evidence.deleted_log != expectations.DELETED_LOG:
        problems.append(f"it wrote {evidence.deleted_log!r}, not {expectations.DELETED_LOG!r}")
    problems += [f"{payload} lives" for payload in evidence.living_payloads if payload.startswith(f"{name}/")]
    numbers = "got TERM, wrote bye; pod and process are gone" if not problems else ""
    return Check("the deleted pod has ended", numbers, problems, f"{folder}/jobs, {folder}/server.log")


def annotations(evidence: Evidence, folder: Path) -> Check:
    return _job_ids("JobID is on every pod and never changed", evidence, f"{folder}/pods.yaml, {folder}/server.log")


def job_ids(evidence: Evidence, folder: Path) -> Check:
    return _job_ids("every pod kept its job id", evidence, f"{folder}/server.log")


def _job_ids(title: str, evidence: Evidence, look_at: str) -> Check:
    changed = [f"{uid} had {sorted(ids)}" for uid, ids in evidence.job_ids.items() if len(ids) > 1]
    without = [f"{pod.name} has none" for pod in evidence.view.pods if not pod.job_id]
    numbers = f"{len(evidence.job_ids)} pods, over {sum(evidence.kills.values())} kills"
    return Check(title, numbers, [*changed, *without], look_at)


def only_forward(evidence: Evidence, folder: Path) -> Check:
    numbers = f"looked at {evidence.looks} times"
    where = f"{folder}/virtual-kubelet.log, {folder}/server.log"
    return Check("no pod's phase ever went back", numbers, evidence.steps_back, where)


def none_left(evidence: Evidence, folder: Path) -> Check:
    problems = [*(f"the job of pod {uid} lives" for uid in sorted(evidence.alive)), *evidence.living_payloads]
    numbers = f"{len(evidence.alive)} jobs, {len(evidence.living_payloads)} processes"
    return Check("no job is left", numbers, problems, f"{folder}/jobs, {folder}/plugin.log")


def secrets(evidence: Evidence, folder: Path) -> Check:
    search = evidence.search
    numbers = f"searched {search.files} files: logs and CachedPods"
    problems = [f"one is in {file}" for file in search.found_in]
    return Check("no Secret value in logs or cache", numbers, problems, ", ".join(search.found_in))


def programs(evidence: Evidence, folder: Path) -> Check:
    numbers = ", ".join(f"{name} {kills}" for name, kills in evidence.kills.items()) + " times"
    problems = [
        *(f"the {name} has ended by itself" for name in evidence.dead_programs),
        *(f"the {name} was never killed" for name, kills in evidence.kills.items() if kills == 0),
    ]
    return Check("killed programs came back", numbers, problems, f"{folder}/*.log")
