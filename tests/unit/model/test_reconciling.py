"""What a complete pod list and a look at the batch system mean for the records."""

from datetime import timedelta
from types import EllipsisType

import pytest

from interlink.model import reconciling, records
from interlink.model.ids import JobID, Owner, PodUID
from interlink.model.reconciling import SeenJob
from interlink.model.records import Record
from tests.unit.builders import NOW, OTHER, OWNER, at, ended, pod, raws, record

Records = dict[PodUID, Record]
UID = PodUID("uid-1")


def known(*found: Record) -> Records:
    return {item.pod_uid: item for item in found}


def over(item: Record) -> Record:
    return records.settled(records.deleting(item, pod(item.pod_uid), NOW), NOW)


def finished(item: Record) -> Record:
    return records.observed(item, raws(ended()), [], "j1", NOW)


BEGUN, LIVE = record(job_id=None), record(job_id="j1")
DELETING = records.deleting(LIVE, pod(), NOW)
THEIRS = record(owner=OTHER)

ANNOUNCEMENTS = [
    # what                                    job id   record               told     adopt  delete forget
    ("an unknown pod with a job", "j1", None, False, True, False, False),
    ("an unknown pod without a job", None, None, False, False, False, False),
    ("an unknown pod with an empty job id", "", None, False, False, False, False),
    ("a pod that is known", "j1", LIVE, True, False, False, False),
    ("a pod whose id only Kubernetes knows", "j1", BEGUN, True, True, False, False),
    ("a pod that is being created", None, BEGUN, True, False, False, False),
    ("a pod that is being deleted", "j1", DELETING, True, False, False, False),
    ("a pod deleted before it had a job", "j1", records.deleting(BEGUN, pod(), NOW), True, False, False, False),
    ("a pod of another owner", "j1", THEIRS, True, False, False, False),
    ("a pod that has gone", ..., LIVE, True, False, True, False),
    ("a finished pod that has gone", ..., finished(LIVE), True, False, True, False),
    ("a pod that has gone while it is deleted", ..., DELETING, True, False, True, False),
    ("a deleted pod that has gone", ..., over(LIVE), True, False, False, True),
    (
        "a deleted finished pod, not confirmed",
        ...,
        records.deleting(finished(LIVE), pod(), NOW),
        True,
        False,
        True,
        False,
    ),
    ("a pod that was not told yet", ..., LIVE, False, False, False, False),
    ("a deleted pod that was not told yet", ..., over(LIVE), False, False, False, False),
    ("another owner's pod that is not listed", ..., THEIRS, True, False, False, False),
    ("a told pod that is forgotten already", ..., None, True, False, False, False),
]


@pytest.mark.parametrize(
    ("job_id", "item", "is_told", "adopt", "delete", "forget"),
    [row[1:] for row in ANNOUNCEMENTS],
    ids=[row[0].replace(" ", "-") for row in ANNOUNCEMENTS],
)
def test_an_announcement_with(
    job_id: str | EllipsisType | None, item: Record | None, is_told: bool, adopt: bool, delete: bool, forget: bool
) -> None:
    """Adopt what only Kubernetes knows, delete what has left Kubernetes, forget what has ended as well."""
    listed = [] if isinstance(job_id, EllipsisType) else [(pod(), job_id)]
    told = [UID] if is_told else []

    plan = reconciling.plan_announcement(OWNER, listed, known(item) if item else {}, told=told)
    assert (bool(plan.adopt), bool(plan.delete), bool(plan.forget)) == (adopt, delete, forget)


def test_an_adoption_names_the_job() -> None:
    """The job id comes from Kubernetes, the record from the pod that was announced."""
    plan = reconciling.plan_announcement(OWNER, [(pod(), "j1")], {}, told=[])

    assert plan.adopt == [(pod(), JobID("j1"))]


def test_an_empty_list_of_one_owner_leaves_the_others_pods() -> None:
    """Two virtual kubelets share a server; the one that has no pods ends none of the other's."""
    both = known(record("uid-1"), record("uid-2", owner=OTHER))

    plan = reconciling.plan_announcement(OWNER, [], both, told=list(both))
    assert (plan.delete, plan.forget) == ([PodUID("uid-1")], [])


def test_a_plan_that_was_applied_plans_nothing_more() -> None:
    """The same announcement again finds nothing to do."""
    applied = known(records.adopted(pod("uid-1"), OWNER, JobID("j1"), NOW))

    plan = reconciling.plan_announcement(OWNER, [(pod("uid-1"), "j1")], applied, told=list(applied))
    assert (plan.adopt, plan.delete, plan.forget) == ([], [], [])


# --- jobs without pods -----------------------------------------------------------------------------------------------

TAG = "il-c-uid-1-a0"
SWEEPS = [
    # what                          tag      node   alive  records          announced   orphan
    ("a job without a pod", TAG, "vk", True, {}, [OWNER], True),
    ("a job with a pod", TAG, "vk", True, known(LIVE), [OWNER], False),
    ("a job of a deleted pod", TAG, "vk", True, known(DELETING), [OWNER], False),
    ("another attempt of a pod", "il-c-uid-1-a7", "vk", True, known(LIVE), [OWNER], False),
    ("a job that has ended", TAG, "vk", False, {}, [OWNER], False),
    ("a job of an owner that has not announced", TAG, "vk", True, {}, [OTHER], False),
    ("a job of nobody who announced", TAG, "vk", True, {}, [], False),
    ("a job of another cluster", "il-d-uid-1-a0", "vk", True, {}, [OWNER], False),
    ("a job of no node", TAG, "", True, {}, [OWNER], False),
    ("a job of somebody else", "my-own-job", "vk", True, {}, [OWNER], False),
    ("a job with nearly our name", TAG + "-x", "vk", True, {}, [OWNER], False),
]


@pytest.mark.parametrize(
    ("tag", "node", "is_alive", "items", "announced", "is_orphan"),
    [row[1:] for row in SWEEPS],
    ids=[row[0].replace(" ", "-") for row in SWEEPS],
)
def test_a_sweep_over(
    tag: str, node: str, is_alive: bool, items: Records, announced: list[Owner], is_orphan: bool
) -> None:
    """A living job of ours whose owner has announced and that has no record is an orphan, and nothing else is."""
    jobs = [SeenJob(tag=tag, node=node, is_alive=is_alive)]

    sweep = reconciling.plan_sweep(jobs, items, announced, [tag])
    assert sweep.suspects == ({tag} if is_orphan else set())
    assert [str(orphan.tag) for orphan in sweep.cancel] == ([tag] if is_orphan else [])


def test_an_orphan_is_cancelled_at_the_second_sight() -> None:
    """The first look only remembers it, for its pod's create may be on the way."""
    jobs = [SeenJob(tag=TAG, node="vk", is_alive=True)]

    first = reconciling.plan_sweep(jobs, {}, [OWNER], [])
    second = reconciling.plan_sweep(jobs, {}, [OWNER], first.suspects)
    assert (len(first.cancel), len(second.cancel), second.cancel[0].owner) == (0, 1, OWNER)


def test_a_suspect_that_was_away_begins_anew() -> None:
    """Only two sightings one sweep apart count."""
    jobs = [SeenJob(tag=TAG, node="vk", is_alive=True)]
    first = reconciling.plan_sweep(jobs, {}, [OWNER], [])

    between = reconciling.plan_sweep([], {}, [OWNER], first.suspects)
    assert reconciling.plan_sweep(jobs, {}, [OWNER], between.suspects).cancel == []


# --- tombstones that nobody fetches ----------------------------------------------------------------------------------

LIFETIME = timedelta(seconds=100)


@pytest.mark.parametrize(
    ("item", "age_s", "announced", "is_expired"),
    [
        (over(LIVE), 101, [], True),
        (over(LIVE), 100, [], False),
        (over(LIVE), 101, [OWNER], False),
        (over(LIVE), 101, [OTHER], True),
        (DELETING, 10_000, [], False),
        (records.deleting(finished(LIVE), pod(), NOW), 101, [OWNER], True),
        (records.deleting(finished(LIVE), pod(), NOW), 100, [OWNER], False),
        (finished(LIVE), 10_000, [], False),
        (records.rejected(BEGUN, "no", NOW), 10_000, [], False),
        (LIVE, 10_000, [], False),
    ],
)
def test_a_tombstone_expires(item: Record, age_s: float, announced: list[Owner], is_expired: bool) -> None:
    """A deletion is forgotten by age when its job has ended and nobody will settle it: no owner, or no plugin."""
    assert reconciling.expired(known(item), at(age_s), LIFETIME, announced) == ([UID] if is_expired else [])
