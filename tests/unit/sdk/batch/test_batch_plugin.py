"""Any scheduler as a plugin: jobs are created once and deleted for good, whatever the scheduler says."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog.testing
from msgspec import Raw

from interlink.aio import files
from interlink.model.errors import InvalidID
from interlink.model.ids import JobID, PodUID, Tag
from interlink.model.pods import Container, Pod
from interlink.model.statuses import Remark, read
from interlink.sdk.batch.jobdir import Ending, JobDirectory
from interlink.sdk.batch.plugin import BatchPlugin
from interlink.sdk.batch.runtime import Launch, Login, Mount
from interlink.sdk.batch.scheduler import Life, Observation, Recalled
from interlink.sdk.errors import NotFound, OutcomeUnknown, Refused, Rejected, SDKError, Unreachable
from interlink.wire.messages import Job, JobStatus, LogOptions, LogRequest, Origin, PingAnswer, RetrievedPodData
from tests.unit.builders import Document, document, ended, pod, running

UID = "uid-1"
TAG = Tag("c", PodUID(UID), 0)
ORIGIN = Origin("c", "vk", 0)


class Runtime:
    def launch(
        self,
        container: Container,
        mounts: Sequence[Mount],
        *,
        pod: Pod,
        directory: JobDirectory,
        logins: Sequence[Login] = (),
    ) -> Launch:
        return Launch(["true"], [])


class Scheduler:
    """A batch system in memory. `fails` is raised by the next submit, after the job was taken if `takes` says so."""

    def __init__(self) -> None:
        self.jobs_by_tag: dict[Tag, JobID] = {}
        self.lives: dict[Tag, Life] = {}
        self.calls: list[str] = []
        self.fails: SDKError | None = None
        self.takes = True
        self.gate: asyncio.Event | None = None
        self.is_submitting = asyncio.Event()
        self.during_poll: Callable[[], None] = lambda: None
        self.lost: dict[PodUID, Recalled] = {}
        self.has_given_up = False
        self.remark = ""
        self.past: JobID | None = None
        self.ending: Ending | None = None

    def prepare(self, pod: Pod, tag: Tag, directory: JobDirectory, *, node: str) -> Mapping[Path, bytes]:
        return {}

    async def recall(self, pods: Sequence[Pod]) -> Mapping[PodUID, Recalled]:
        return {uid: job for uid, job in self.lost.items() if uid in [pod.uid for pod in pods]}

    async def tidy(self, tags: Sequence[Tag]) -> None:
        self.calls.append(f"tidy {len(tags)}")

    def user(self, pod: Pod) -> int:
        return 1000

    async def submit(self, tag: Tag, directory: JobDirectory) -> JobID:
        self.calls.append("submit")
        self.is_submitting.set()
        assert directory.spec.exists(), "what is to run is there before it is submitted"
        if self.gate is not None:
            await self.gate.wait()
        error, self.fails = self.fails, None
        if error is None or self.takes:
            self.jobs_by_tag[tag] = JobID(f"job-{len(self.jobs_by_tag) + 1}")
            self.lives[tag] = Life.RUNNING
        if error is not None:
            raise error
        return self.jobs_by_tag[tag]

    async def find(self, tag: Tag, directory: JobDirectory) -> JobID | None:
        self.calls.append("find")
        return self.jobs_by_tag.get(tag)

    async def find_ended(self, tag: Tag, *, made_at: datetime | None) -> JobID | None:
        return self.past

    async def poll(self, jobs: Sequence[tuple[Tag, JobDirectory]]) -> Mapping[Tag, Observation]:
        self.calls.append(f"poll {len(jobs)}")
        found = {
            tag: Observation(life=self.lives.get(tag, Life.GONE), reason=self.remark, ending=self.ending)
            for tag, _ in jobs
        }
        if self.has_given_up:
            found = {tag: Observation(life=Life.PENDING, is_to_be_repeated=True) for tag, _ in jobs}
        self.during_poll()
        return found

    async def cancel(self, tag: Tag, directory: JobDirectory) -> None:
        assert directory.is_cancelled(), "the mark is there before the job is asked to end"
        self.calls.append(f"cancel {tag}")

    async def jobs(self) -> Sequence[Job]:
        return [Job(str(tag), job_id, "vk", True) for tag, job_id in self.jobs_by_tag.items()]

    async def capacity(self) -> PingAnswer:
        return PingAnswer(status="ok")


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture
def plugin(tmp_path: Path, scheduler: Scheduler) -> BatchPlugin:
    return BatchPlugin(tmp_path, scheduler=scheduler, runtime=Runtime())


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    """Of the pod `uid-1`."""
    return JobDirectory(tmp_path / UID)


def request(uid: str = UID, *, origin: Origin | None = ORIGIN, **spec: Any) -> RetrievedPodData:
    return RetrievedPodData(
        pod=Raw(msgspec.json.encode(document(uid, **spec))), interlink=msgspec.UNSET if origin is None else origin
    )


def set_state(directory: JobDirectory, *containers: Document, phase: str = "running") -> None:
    files.make_directory(directory.path)
    files.write_durably(directory.path / "state.json", json.dumps({"phase": phase, "containers": containers}).encode())


# --- create ----------------------------------------------------------------------------------------------------------


async def test_a_create_submits_a_job(plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory) -> None:
    """Its tag carries the cluster, the pod and the attempt; its id is kept before it is answered."""
    assert await plugin.create(request()) == "job-1"
    assert (scheduler.jobs_by_tag, directory.job_id()) == ({TAG: "job-1"}, "job-1")


async def test_a_create_again_answers_with_the_job_that_is_there(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """Nothing is submitted a second time."""
    assert [await plugin.create(request()) for _ in range(3)] == ["job-1"] * 3
    assert scheduler.calls.count("submit") == 1


@pytest.mark.parametrize("runs_probes", [True, False])
async def test_a_site_may_leave_out_probes(
    tmp_path: Path, scheduler: Scheduler, directory: JobDirectory, *, runs_probes: bool
) -> None:
    """The existing key `EnableProbes` of the Slurm plugin."""
    plugin = BatchPlugin(tmp_path, scheduler=scheduler, runtime=Runtime(), runs_probes=runs_probes)
    probe = {"exec": {"command": ["true"]}}
    await plugin.create(request(containers=[{"name": "c", "image": "i", "readinessProbe": probe}]))

    assert ("readiness_probe" in json.loads(directory.spec.read_text())["containers"][0]) == runs_probes


async def test_a_site_may_leave_out_the_data_of_pods(
    tmp_path: Path, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """The existing key `ExportPodData`: one line in the log says which, and what did not come is not missed."""
    plugin = BatchPlugin(tmp_path, scheduler=scheduler, runtime=Runtime(), exports_volumes=False)
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    with structlog.testing.capture_logs() as logged:
        await plugin.create(
            request(containers=[container], volumes=[{"name": "v", "configMap": {"name": "never-came"}}])
        )

    assert [line["volumes"] for line in logged if line["event"] == "job.volumes-left-out"] == [["v"]]
    assert not (directory.path / "volumes").exists()


async def test_creates_at_the_same_time_submit_once(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """They take turns, pod by pod."""
    *answers, other = await asyncio.gather(*(plugin.create(request(uid)) for uid in [UID] * 5 + ["uid-2"]))

    assert (len(set(answers)), other in answers, scheduler.calls.count("submit")) == (1, False, 2)


async def test_a_new_plugin_finds_the_job_of_an_old_one(
    tmp_path: Path, plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """Also when the old one was killed between the submission and its note of the id."""
    await plugin.create(request())
    (directory.path / "job-id").unlink()

    assert await BatchPlugin(tmp_path, scheduler=scheduler, runtime=Runtime()).create(request()) == "job-1"
    assert scheduler.calls.count("submit") == 1


async def test_a_submission_with_an_unknown_outcome_is_looked_for(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """A job that is in the queue was submitted, whatever the command said."""
    scheduler.fails = OutcomeUnknown("timed out")

    assert await plugin.create(request()) == "job-1"
    assert scheduler.calls == ["find", "submit", "find"]


FAILURES: list[SDKError] = [OutcomeUnknown("timed out"), Unreachable("no route"), Rejected("no such partition")]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_a_submission_that_failed_may_be_repeated(
    plugin: BatchPlugin, scheduler: Scheduler, error: SDKError
) -> None:
    """The error is the scheduler's; the next create submits anew, and once."""
    scheduler.fails, scheduler.takes = error, False
    with pytest.raises(type(error), match=str(error)):
        await plugin.create(request())

    assert await plugin.create(request()) == "job-1"


async def test_a_refusal_is_told_where_no_log_can_be_written(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """An error in its place would have the pod submitted again, for ever."""
    directory.create()
    (directory.path / "logs").write_text("a file")
    scheduler.fails, scheduler.takes = Rejected("no such partition"), False

    with pytest.raises(Rejected, match="no such partition"):
        await plugin.create(request())


async def test_a_pod_that_cannot_be_run_is_not_submitted(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """And leaves nothing behind."""
    with pytest.raises(Rejected, match="no containers"):
        await plugin.create(request(containers=[]))

    assert ("submit" in scheduler.calls, directory.path.exists()) == (False, False)


@pytest.mark.parametrize("uid", ["../x", "", "a/b"])
async def test_a_hostile_uid_is_refused(plugin: BatchPlugin, tmp_path: Path, uid: str) -> None:
    """It would become a path."""
    with pytest.raises(InvalidID):
        await plugin.create(request(uid))
    with pytest.raises(InvalidID):
        await plugin.delete(pod(uid))

    assert list(tmp_path.iterdir()) == []


async def test_a_server_that_names_no_cluster_means_the_default_one(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """As existing servers do."""
    await plugin.create(request(origin=None))

    assert list(scheduler.jobs_by_tag) == [Tag("default", PodUID(UID), 0)]


async def test_a_create_whose_caller_has_gone_is_finished(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """The id is kept, so that the next create answers with it."""
    scheduler.gate = asyncio.Event()
    task = asyncio.ensure_future(plugin.create(request()))
    async with asyncio.timeout(5):
        await scheduler.is_submitting.wait()
        task.cancel()
        scheduler.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert directory.job_id() == "job-1"


async def test_no_secret_is_kept_in_the_intent(plugin: BatchPlugin, directory: JobDirectory) -> None:
    """It holds the pod's skeleton only."""
    env = [{"name": "PW", "value": "s3cr3t"}]
    await plugin.create(request(containers=[{"name": "c", "env": env, "command": ["s3cr3t"]}]))

    assert b"s3cr3t" not in (directory.path / "pod.json").read_bytes()


# --- delete ----------------------------------------------------------------------------------------------------------


async def test_a_delete_asks_the_job_to_end(plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory) -> None:
    """With the grace period of the deletion, written down for the runner."""
    await plugin.create(request())
    await plugin.delete(pod(metadata={"deletionGracePeriodSeconds": 7}))

    assert scheduler.calls[-1] == f"cancel {TAG}"
    assert json.loads((directory.path / "cancelled").read_bytes()) == {"grace_s": 7}


async def test_a_delete_again_asks_again(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """The first request may have been lost; the grace period may be shorter now."""
    await plugin.create(request())
    await plugin.delete(pod())
    await plugin.delete(pod())

    assert scheduler.calls.count(f"cancel {TAG}") == 2


async def test_a_delete_before_the_create_wins(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """There is no job, and a create that comes late starts none."""
    with pytest.raises(NotFound, match=r"there is no job for pod ns/p \(uid-1\)"):
        await plugin.delete(pod())

    with pytest.raises(Refused, match="has been deleted; its job will not be started"):
        await plugin.create(request())
    assert "submit" not in scheduler.calls


async def test_a_create_after_a_delete_is_refused(plugin: BatchPlugin) -> None:
    """Also when there was a job, and also by a plugin that was started since."""
    await plugin.create(request())
    await plugin.delete(pod())

    with pytest.raises(Refused):
        await plugin.create(request())


async def test_a_delete_waits_for_a_create_in_flight(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """And then ends what it has started."""
    scheduler.gate = asyncio.Event()
    create = asyncio.ensure_future(plugin.create(request()))
    async with asyncio.timeout(5):
        await scheduler.is_submitting.wait()
        delete = asyncio.ensure_future(plugin.delete(pod()))
        await asyncio.sleep(0)
        scheduler.gate.set()
        await asyncio.gather(create, delete)

    assert scheduler.calls[-1] == f"cancel {TAG}"


# --- status ----------------------------------------------------------------------------------------------------------


def states(found: Sequence[JobStatus]) -> dict[str, str]:
    """The first container's state of each pod, in a word."""
    entries = {status.uid: msgspec.json.decode((status.containers or [])[0]) for status in found}
    return {uid: next(iter(entry["state"])) for uid, entry in entries.items()}


async def test_a_status_asks_once_for_all_pods(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """However many there are; unknown ones are left out."""
    uids = [f"uid-{number}" for number in range(20)]
    for uid in uids:
        await plugin.create(request(uid))
    scheduler.calls.clear()

    found = await plugin.status([pod(uid) for uid in [*uids, "unknown"]])
    assert (len(found), scheduler.calls) == (20, ["poll 20"])


async def test_a_status_says_which_job_it_is(plugin: BatchPlugin) -> None:
    """Name, namespace, UID and id."""
    await plugin.create(request())

    found = (await plugin.status([pod()]))[0]
    assert (found.name, found.namespace, found.uid, found.job_id) == ("p", "ns", UID, "job-1")


async def test_a_status_has_what_the_batch_system_says_of_a_running_job(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """Most of the time that is nothing."""
    await plugin.create(request())
    set_state(directory, running("c"))
    assert (await plugin.status([pod()]))[0].remark is msgspec.UNSET

    scheduler.remark = "Suspended"
    assert (await plugin.status([pod()]))[0].remark == Remark(reason="Suspended")

    scheduler.lives[TAG] = Life.PENDING
    assert (await plugin.status([pod()]))[0].remark is msgspec.UNSET


async def test_a_job_without_a_record_waits(plugin: BatchPlugin) -> None:
    """Until its runner has written one."""
    await plugin.create(request())

    assert states(await plugin.status([pod()])) == {UID: "waiting"}


async def test_a_jobs_own_record_is_its_status(plugin: BatchPlugin, directory: JobDirectory) -> None:
    """As the runner writes it."""
    await plugin.create(request())
    set_state(directory, running())

    assert states(await plugin.status([pod()])) == {UID: "running"}


async def test_what_a_failing_probe_says_is_told(plugin: BatchPlugin, directory: JobDirectory) -> None:
    """Beside the Kubernetes status, in a member that other servers ignore; without one it is left out."""
    await plugin.create(request())
    said = {"failing": {"readiness": "no"}}
    set_state(directory, running("c") | {"interlink": said}, running("d"))
    (answer,) = await plugin.status([pod()])

    found = [json.loads(bytes(raw)) for raw in answer.containers or []]
    assert [entry.get("interlink") for entry in found] == [said, None]


async def test_a_killed_job_has_ended(plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory) -> None:
    """Its record said that it runs before the batch system was asked, which does not have it."""
    await plugin.create(request())
    set_state(directory, running())
    scheduler.lives.clear()
    scheduler.calls.clear()

    assert states(await plugin.status([pod()])) == {UID: "terminated"}
    assert scheduler.calls == ["poll 1"]


async def test_a_job_that_began_after_the_poll_is_not_taken_for_killed(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """The batch system was asked before the job began, its record was read after; the next question decides."""
    await plugin.create(request())
    scheduler.lives.clear()
    scheduler.during_poll = lambda: set_state(directory, running())

    assert states(await plugin.status([pod()])) == {UID: "running"}
    assert states(await plugin.status([pod()])) == {UID: "terminated"}


async def test_a_job_that_ended_between_is_not_taken_for_killed(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """Gone from the batch system with a result in its record: the result counts."""
    await plugin.create(request())
    set_state(directory, ended(exit_code=3), phase="ended")
    scheduler.lives.clear()
    scheduler.calls.clear()

    found = await plugin.status([pod()])
    assert msgspec.json.decode((found[0].containers or [])[0])["state"]["terminated"]["exitCode"] == 3
    assert scheduler.calls == ["poll 1"]


async def test_a_lost_submission_is_not_mentioned(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """Neither a record nor a job: nothing is known, and nothing is said."""
    await plugin.create(request())
    scheduler.lives.clear()

    assert await plugin.status([pod()]) == []


async def test_a_tombstone_is_no_job(plugin: BatchPlugin) -> None:
    """A pod that was deleted before it was created is not mentioned."""
    with pytest.raises(NotFound):
        await plugin.delete(pod())

    assert await plugin.status([pod()]) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]"])
async def test_a_record_that_cannot_be_read_is_none(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory, damage: bytes
) -> None:
    """The job waits as long as the batch system has it."""
    await plugin.create(request())
    (directory.path / "state.json").write_bytes(damage)

    assert states(await plugin.status([pod()])) == {UID: "waiting"}


# --- the rest --------------------------------------------------------------------------------------------------------


async def test_a_log_is_read_from_the_jobs_directory(plugin: BatchPlugin, directory: JobDirectory) -> None:
    """Also when the job is over."""
    path = directory.log("c", 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"2026-07-14T10:00:00.0Z stdout F hello\n")
    question = LogRequest(pod_uid=UID, container="c", options=LogOptions())

    assert b"".join([chunk async for chunk in plugin.logs(question)]) == b"hello\n"


async def test_jobs_and_capacity_are_the_schedulers(plugin: BatchPlugin) -> None:
    """They are passed on as they are."""
    await plugin.create(request())

    assert [job.tag for job in await plugin.jobs()] == [str(TAG)]
    assert (await plugin.capacity()).status == "ok"


async def deleted(plugin: BatchPlugin, directory: JobDirectory, *, seconds_ago: float) -> None:
    await plugin.create(request())
    await plugin.delete(pod())
    path = directory.path / "cancelled"
    moment = path.stat().st_mtime - seconds_ago
    os.utime(path, (moment, moment))


@pytest.mark.parametrize(("seconds_ago", "is_removed"), [(100, True), (10, False)])
async def test_a_sweep_removes_what_was_deleted_long_ago(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory, seconds_ago: float, is_removed: bool
) -> None:
    """Until then the logs can be read and no late create starts the job."""
    await deleted(plugin, directory, seconds_ago=seconds_ago)
    scheduler.lives.clear()

    assert (await plugin.sweeper.sweep(keep_s=60), directory.path.exists()) == (int(is_removed), not is_removed)


async def test_a_sweep_leaves_what_lives_and_what_was_not_deleted(plugin: BatchPlugin, directory: JobDirectory) -> None:
    """However old it is; whether it lives, the batch system is asked: a runner may be on another host."""
    await plugin.create(request("uid-2"))
    await deleted(plugin, directory, seconds_ago=1000)

    assert await plugin.sweeper.sweep(keep_s=60) == 0


# --- secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_alive", [True, False])
async def test_the_secrets_of_a_deleted_job_go_with_its_end(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory, *, is_alive: bool
) -> None:
    """One that never began has no runner that would remove them; its logs and its mark stay."""
    await deleted(plugin, directory, seconds_ago=10)
    assert directory.has_secrets()
    if not is_alive:
        scheduler.lives.clear()

    assert await plugin.sweeper.sweep(keep_s=60) == 0
    assert (directory.has_secrets(), directory.is_cancelled()) == (is_alive, True)


async def test_a_refused_job_keeps_no_secrets(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """It never runs; a create that is repeated brings them again."""
    scheduler.fails, scheduler.takes = Rejected("no"), False

    with pytest.raises(Rejected):
        await plugin.create(request())

    assert not directory.has_secrets()
    assert directory.log("c", 0).exists()


async def test_a_job_whose_end_the_batch_system_tells_keeps_no_secrets(
    plugin: BatchPlugin, directory: JobDirectory
) -> None:
    """Its runner was killed, on a machine that may be lost."""
    await plugin.create(request())
    (directory.volume("secret", "s") / "deep").mkdir(parents=True)

    directory.conclude(Ending(reason="NodeLost"))

    assert not directory.has_secrets()
    assert directory.intention() is not None


# --- verifying -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hasty(tmp_path: Path, scheduler: Scheduler) -> BatchPlugin:
    """Submits again what it has missed twice."""
    return BatchPlugin(tmp_path, scheduler=scheduler, runtime=Runtime(), lost_after_s=0.0)


async def test_a_forgotten_job_is_submitted_again(
    hasty: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """Acknowledged and never started: the batch system has lost it."""
    await hasty.create(request())
    scheduler.lives.clear()

    await hasty.verifier.verify()

    assert scheduler.calls.count("submit") == 2
    assert directory.job_id() is not None


async def test_a_job_that_has_ended_and_left_nothing_here_does_not_run_again(
    plugin: BatchPlugin, scheduler: Scheduler
) -> None:
    """Its directory is lost; the batch system remembers it, and its word is all there is."""
    scheduler.past = JobID("9")
    assert await plugin.create(request()) == "9"

    scheduler.lives[TAG] = Life.ENDED
    scheduler.ending = Ending(reason="Completed", is_success=True)
    (status,) = await plugin.status([pod()])
    ended_ = read((status.containers or [])[0]).terminated
    assert ended_ is not None
    assert (ended_.exit_code, ended_.reason) == (0, "Completed")
    assert "submit" not in scheduler.calls


async def test_a_job_whose_directory_is_lost_is_not_submitted_again(hasty: BatchPlugin, scheduler: Scheduler) -> None:
    """There is nothing to be submitted; nobody knows what became of it."""
    scheduler.jobs_by_tag[TAG] = JobID("9")
    await hasty.create(request())

    await hasty.verifier.verify()
    await hasty.verifier.verify()

    assert "submit" not in scheduler.calls


async def test_a_job_that_was_given_up_is_submitted_again(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """At once; where the outcome of that is unknown, not before it may be known."""
    await plugin.create(request())
    scheduler.has_given_up = True
    await plugin.verifier.verify()
    assert scheduler.calls.count("submit") == 2

    (directory.path / "job-id").write_text("job-2")
    os.utime(directory.path / "job-id", (1, 1))
    directory.begin_submission()
    await plugin.verifier.verify()
    assert scheduler.calls.count("submit") == 2


@pytest.mark.parametrize("evidence", ["claim-0", "ending.json"])
async def test_a_job_that_has_started_or_ended_is_not_submitted_again(
    hasty: BatchPlugin, scheduler: Scheduler, directory: JobDirectory, evidence: str
) -> None:
    """However long ago it went from the batch system."""
    await hasty.create(request())
    scheduler.lives.clear()
    if evidence == "claim-0":
        (directory.path / evidence).mkdir()
    else:
        directory.conclude(Ending(reason="Cancelled"))

    await hasty.verifier.verify()
    await hasty.verifier.verify()

    assert scheduler.calls.count("submit") == 1


async def test_a_job_is_missing_for_a_while_before_it_counts_as_forgotten(
    plugin: BatchPlugin, scheduler: Scheduler
) -> None:
    """One look proves nothing."""
    await plugin.create(request())
    scheduler.lives.clear()

    await plugin.verifier.verify()
    await plugin.verifier.verify()

    assert scheduler.calls.count("submit") == 1


async def test_a_cancelled_job_that_is_alive_is_cancelled_again(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """The batch system may have undone it."""
    await plugin.create(request())
    await plugin.delete(pod())

    await plugin.verifier.verify()

    assert scheduler.calls.count(f"cancel {TAG}") == 2


async def test_nothing_is_asked_when_there_is_nothing_to_verify(plugin: BatchPlugin, scheduler: Scheduler) -> None:
    """No jobs, no questions."""
    await plugin.verifier.verify()

    assert scheduler.calls == []


async def test_a_lost_directory_is_made_up_for_by_the_batch_system(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """Status, id and deletion work from what it knows."""
    scheduler.lost[PodUID(UID)] = Recalled(tag=TAG, job_id=JobID("9"), seen=Observation(life=Life.RUNNING))

    found = await plugin.status([pod()])
    await plugin.delete(pod())

    assert (found[0].job_id, states(found)) == ("9", {UID: "running"})
    assert scheduler.calls[-1] == f"cancel {TAG}"


async def test_a_refused_submission_can_be_read_in_the_log(
    plugin: BatchPlugin, scheduler: Scheduler, directory: JobDirectory
) -> None:
    """In the batch system's words."""
    scheduler.fails, scheduler.takes = Rejected("no such partition"), False
    with pytest.raises(Rejected):
        await plugin.create(request())
    question = LogRequest(pod_uid=UID, container="c", options=LogOptions())

    assert b"".join([chunk async for chunk in plugin.logs(question)]) == b"no such partition\n"
