"""What a complete pod list and a look at the batch system mean for the records."""

from datetime import datetime, timedelta
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

    plan = reconciling.plan_announcement(OWNER, listed, known(item) if item else {}, told=told, given_up_before=NOW)
    assert (bool(plan.adopt), bool(plan.delete), bool(plan.forget)) == (adopt, delete, forget)


def test_an_adoption_names_the_job() -> None:
    """The job id comes from Kubernetes, the record from the pod that was announced."""
    plan = reconciling.plan_announcement(OWNER, [(pod(), "j1")], {}, told=[], given_up_before=NOW)

    assert plan.adopt == [(pod(), JobID("j1"))]


def test_an_empty_list_of_one_owner_leaves_the_others_pods() -> None:
    """Two virtual kubelets share a server; the one that has no pods ends none of the other's."""
    both = known(record("uid-1"), record("uid-2", owner=OTHER))

    plan = reconciling.plan_announcement(OWNER, [], both, told=list(both), given_up_before=NOW)
    assert (plan.delete, plan.forget) == ([PodUID("uid-1")], [])


def test_a_plan_that_was_applied_plans_nothing_more() -> None:
    """The same announcement again finds nothing to do."""
    applied = known(records.adopted(pod("uid-1"), OWNER, JobID("j1"), NOW))

    plan = reconciling.plan_announcement(
        OWNER, [(pod("uid-1"), "j1")], applied, told=list(applied), given_up_before=NOW
    )
    assert (plan.adopt, plan.delete, plan.forget) == ([], [], [])


# --- jobs without pods -----------------------------------------------------------------------------------------------

TAG = "il-c-uid-1-a0"
SWEEPS = [
    # what                          tag      node   alive  records          announced   orphan
    ("a job without a pod", TAG, "vk", True, {}, {OWNER: []}, True),
    ("a job with a pod", TAG, "vk", True, known(LIVE), {OWNER: []}, False),
    ("a job of a deleted pod", TAG, "vk", True, known(DELETING), {OWNER: []}, False),
    ("another attempt of a pod", "il-c-uid-1-a7", "vk", True, known(LIVE), {OWNER: []}, False),
    ("a job of a pod that was announced without its id", TAG, "vk", True, {}, {OWNER: [UID]}, False),
    ("a job of a pod that another owner announced", TAG, "vk", True, {}, {OWNER: [], OTHER: [UID]}, True),
    ("a job that has ended", TAG, "vk", False, {}, {OWNER: []}, False),
    ("a job of an owner that has not announced", TAG, "vk", True, {}, {OTHER: []}, False),
    ("a job of nobody who announced", TAG, "vk", True, {}, {}, False),
    ("a job of another cluster", "il-d-uid-1-a0", "vk", True, {}, {OWNER: []}, False),
    ("a job of no node", TAG, "", True, {}, {OWNER: []}, False),
    ("a job of somebody else", "my-own-job", "vk", True, {}, {OWNER: []}, False),
    ("a job with nearly our name", TAG + "-x", "vk", True, {}, {OWNER: []}, False),
]


@pytest.mark.parametrize(
    ("tag", "node", "is_alive", "items", "announced", "is_orphan"),
    [row[1:] for row in SWEEPS],
    ids=[row[0].replace(" ", "-") for row in SWEEPS],
)
def test_a_sweep_over(
    tag: str, node: str, is_alive: bool, items: Records, announced: dict[Owner, list[PodUID]], is_orphan: bool
) -> None:
    """A living job of ours whose owner has announced and that has no record is an orphan, and nothing else is."""
    jobs = [SeenJob(tag=tag, node=node, is_alive=is_alive)]

    sweep = reconciling.plan_sweep(jobs, items, announced, [tag])
    assert sweep.suspects == ({tag} if is_orphan else set())
    assert [str(orphan.tag) for orphan in sweep.cancel] == ([tag] if is_orphan else [])


def test_an_orphan_is_cancelled_at_the_second_sight() -> None:
    """The first look only remembers it, for its pod's create may be on the way."""
    jobs = [SeenJob(tag=TAG, node="vk", is_alive=True)]

    first = reconciling.plan_sweep(jobs, {}, {OWNER: []}, [])
    second = reconciling.plan_sweep(jobs, {}, {OWNER: []}, first.suspects)
    assert (len(first.cancel), len(second.cancel), second.cancel[0].owner) == (0, 1, OWNER)


def test_a_suspect_that_was_away_begins_anew() -> None:
    """Only two sightings one sweep apart count."""
    jobs = [SeenJob(tag=TAG, node="vk", is_alive=True)]
    first = reconciling.plan_sweep(jobs, {}, {OWNER: []}, [])

    between = reconciling.plan_sweep([], {}, {OWNER: []}, first.suspects)
    assert reconciling.plan_sweep(jobs, {}, {OWNER: []}, between.suspects).cancel == []


@pytest.mark.parametrize(
    ("item", "given_up_before", "is_forgotten"),
    [
        (records.deleting(finished(LIVE), pod(), NOW), at(1), True),
        (records.deleting(finished(LIVE), pod(), NOW), at(0), False),
        (DELETING, at(10_000), False),
        (finished(LIVE), at(10_000), False),
        (over(LIVE), at(-1), True),
    ],
    ids=["ended long ago", "just ended", "not ended", "not deleted", "confirmed"],
)
def test_a_deletion_that_the_plugin_never_takes(item: Record, given_up_before: datetime, is_forgotten: bool) -> None:
    """Of a pod that has left Kubernetes, whose job has ended: it is given up in the end, and never before the end."""
    plan = reconciling.plan_announcement(OWNER, [], known(item), told=[UID], given_up_before=given_up_before)

    assert (bool(plan.forget), bool(plan.delete)) == (is_forgotten, not is_forgotten)


# --- tombstones of owners that cannot confirm ------------------------------------------------------------------------

LIFETIME = timedelta(seconds=100)
UNCONFIRMED = records.deleting(finished(LIVE), pod(), NOW)
REJECTED = records.deleting(records.rejected(BEGUN, "no", NOW), pod(), NOW)
# Times in seconds after the job's end.
EXPIRIES = [
    # what                                        record      began  mentioned heard  expired
    ("asked about others after the lifetime", over(LIVE), -500, None, 101, True),
    ("asked about others within the lifetime", over(LIVE), -500, None, 100, False),
    ("not heard of", over(LIVE), -500, None, None, False),
    ("heard of before the end only", over(LIVE), -500, None, -1, False),
    ("asked about this one too", over(LIVE), -500, 60, 160, False),
    ("asked about this one long before", over(LIVE), -500, 60, 161, True),
    ("asked about this one before its end", over(LIVE), -500, -60, 101, True),
    ("a restart within the lifetime", over(LIVE), 50, None, 150, False),
    ("a restart long before", over(LIVE), 50, None, 151, True),
    ("ended, and the plugin never took the deletion", UNCONFIRMED, -500, None, 101, True),
    ("rejected and deleted", REJECTED, -500, None, 101, True),
    ("not known to have ended", DELETING, -500, None, 10**6, False),
    ("taken by the plugin, not ended", records.confirmed(DELETING, NOW), -500, None, 10**6, False),
    ("ended and not deleted", finished(LIVE), -500, None, 10**6, False),
    ("rejected and not deleted", records.rejected(BEGUN, "no", NOW), -500, None, 10**6, False),
    ("running", LIVE, -500, None, 10**6, False),
]


@pytest.mark.parametrize(
    ("item", "began_s", "mentioned_s", "heard_s", "is_expired"),
    [row[1:] for row in EXPIRIES],
    ids=[row[0].replace(" ", "-") for row in EXPIRIES],
)
def test_a_tombstone_of_an_owner_that_does_not_announce(
    item: Record, began_s: int, mentioned_s: int | None, heard_s: int | None, is_expired: bool
) -> None:
    """It goes once the job has ended and the owner, silent about this pod for the lifetime, asks about others."""
    expired = reconciling.expired(
        known(item),
        heard={} if heard_s is None else {OWNER: at(heard_s)},
        mentioned={} if mentioned_s is None else {UID: at(mentioned_s)},
        began_at=at(began_s),
        lifetime=LIFETIME,
    )

    assert expired == ([UID] if is_expired else [])


def test_a_tombstone_of_an_owner_that_is_not_heard_of() -> None:
    """What others ask says nothing of it: so are the tombstones of owners that announce kept."""
    expired = reconciling.expired(
        known(over(LIVE)), heard={OTHER: at(10**6)}, mentioned={}, began_at=at(0), lifetime=LIFETIME
    )

    assert expired == []
