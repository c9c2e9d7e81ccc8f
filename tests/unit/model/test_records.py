"""How the record of a pod may change, and what a create means for it."""

import itertools
from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlink.model import records, sealing, statuses
from interlink.model.ids import JobID, Owner
from interlink.model.records import Decision, Intent, Record
from interlink.model.statuses import Remark
from tests.unit.builders import NOW, OTHER, OWNER, Document, at, ended, pod, raws, record, running, silent, waiting
from tests.unit.guessing import few

GRACE = timedelta(seconds=60)


def observed(known: Record, *main: Document, init: tuple[Document, ...] = (), job_id: str = "j1") -> Record:
    return records.observed(known, raws(*main), raws(*init), job_id, at(5))


def reasons(known: Record) -> list[str | None]:
    states = [statuses.read(raw) for raw in known.containers]
    return [status.terminated.reason for status in states if status.terminated]


def test_a_new_record_is_an_intent() -> None:
    """Before the plugin is asked the record says that a job is to be created, for whom, and nothing else."""
    begun = records.begun(pod(), OWNER, NOW)

    assert (begun.intent, begun.owner, begun.job_id, begun.is_live, begun.has_ended) == (
        Intent.CREATE, OWNER, None, False, False
    )  # fmt: skip
    assert str(begun.tag) == "il-c-uid-1-a0"


def test_an_accepted_record_has_a_job() -> None:
    """From here on the plugin is asked about it; the moment of the submission is that of the first acceptance."""
    once = record(job_id="j1")
    again = records.accepted(once, JobID("j2"), at(9))

    assert (once.intent, once.job_id, once.is_live) == (Intent.NONE, "j1", True)
    assert again.submitted_at == once.submitted_at


def test_an_adopted_record_is_an_accepted_one() -> None:
    """A pod that only Kubernetes remembers comes back with the job id that Kubernetes has."""
    assert records.adopted(pod(), OWNER, JobID("j1"), NOW) == record(job_id="j1")


SUSPENDED = Remark(reason="Suspended", message="Slurm has suspended the job")


def test_what_is_said_of_a_running_job_is_kept_until_it_is_said_no_more() -> None:
    """Like its states; it is over when the job is."""
    states = raws(running())
    said = records.observed(record(), states, [], "j1", at(5), remark=SUSPENDED)
    again = records.observed(said, states, [], "j1", at(6), remark=SUSPENDED)
    over = records.observed(said, states, [], "j1", at(6))
    done = records.observed(said, raws(ended()), [], "j1", at(6), remark=SUSPENDED)

    assert [known.remark for known in (said, over, done)] == [SUSPENDED, None, None]
    assert again is said
    assert sealing.load(sealing.dump(said)) == said


def test_an_acceptance_leaves_a_deletion_asked() -> None:
    """A deletion that came while the job was being created stays asked, and the job id is kept to end the job."""
    known = records.accepted(records.deleting(record(job_id=None), pod(), at(1)), JobID("j1"), at(2))

    assert (known.intent, known.job_id, known.is_live) == (Intent.DELETE, "j1", True)


def test_a_rejected_record_has_ended() -> None:
    """Its pod fails with the plugin's words, and the plugin is not asked about it any more."""
    known = records.rejected(record(job_id=None), "no such partition", at(3))

    assert (known.rejected, known.ended_at, known.is_live) == ("no such partition", at(3), False)


def test_a_refusal_leaves_a_deletion_asked() -> None:
    """A deletion that came while the plugin refused the job stays asked."""
    known = records.rejected(records.deleting(record(job_id=None), pod(), at(1)), "no", at(2))

    assert known.intent is Intent.DELETE


def test_a_late_refusal_changes_no_result() -> None:
    """A job that has ended stays what it was when a refusal comes late."""
    done = observed(record(), ended(exit_code=3))

    assert records.rejected(done, "no", at(9)).rejected is None


def test_a_deletion_brings_its_grace_period() -> None:
    """The tombstone keeps when and with which grace period the deletion was asked, and nothing else of that pod."""
    asked = pod(
        metadata={"deletionTimestamp": "2026-07-14T10:00:30Z", "deletionGracePeriodSeconds": 3, "name": "other"}
    )
    known = records.deleting(record(), asked, at(1))

    assert (known.intent, known.pod.grace_s, known.pod.is_deleting) == (Intent.DELETE, 3, True)
    assert known.pod.metadata.name == "p"


def test_a_deletion_asked_again_changes_nothing() -> None:
    """The same deletion gives the same record, so nothing is written."""
    once = records.deleting(record(), pod(), at(1))

    assert records.deleting(once, pod(), at(2)) is once


def test_a_settled_record_has_ended_once() -> None:
    """Settling it again does not move the moment of its end."""
    once = records.settled(records.deleting(record(), pod(), at(1)), at(2))

    assert once.ended_at == at(2)
    assert records.settled(once, at(3)) is once


def test_a_deletion_is_over_when_it_has_ended_and_is_confirmed() -> None:
    """A job that ended by itself is asked about until the plugin has taken the deletion."""
    ended_by_itself = records.deleting(observed(record(), ended()), pod(), at(6))
    confirmed = records.confirmed(ended_by_itself, at(7))

    assert (ended_by_itself.is_over, confirmed.is_over) == (False, True)
    assert records.confirmed(confirmed, at(8)) is confirmed


def test_an_answer_with_news_changes_the_record() -> None:
    """The states are kept as they came."""
    known = observed(record(), running())

    assert known.containers == tuple(raws(running()))
    assert (known.has_ended, known.updated_at, known.revision) == (False, at(5), record().revision + 1)


def test_an_answer_without_news_gives_the_same_record() -> None:
    """Nothing is written while nothing changes."""
    known = observed(record(), running())

    assert observed(known, running()) is known


@pytest.mark.parametrize("news", [(), (silent(),), ({"name": "c"},), ({"name": "c", "state": None},)])
def test_an_answer_that_says_nothing_leaves_what_was_known(news: tuple[Document, ...]) -> None:
    """An empty list and an empty state prove nothing."""
    known = observed(record(), running())

    assert observed(known, *news).containers == known.containers


def test_states_are_merged_by_container() -> None:
    """A container that the plugin does not mention keeps its state; a new one is added."""
    known = observed(record(containers=[{"name": "a"}, {"name": "b"}]), running("a"))
    merged = observed(known, ended("b"))

    assert [statuses.read(raw).name for raw in merged.containers] == ["a", "b"]
    assert statuses.read(merged.containers[0]).running


def test_the_end_of_every_container_is_the_end_of_the_record() -> None:
    """Also when the plugin tells the ends one after the other."""
    two = record(containers=[{"name": "a"}, {"name": "b"}])
    first = observed(two, ended("a"))

    assert not first.has_ended
    assert observed(first, ended("b")).ended_at == at(5)


def test_an_entry_that_is_no_status_is_an_error() -> None:
    """It is the caller who says which pod's answer could not be read."""
    with pytest.raises(msgspec.MsgspecError):
        records.observed(record(), raws(1), [], "j1", NOW)


@pytest.mark.parametrize(("known", "told", "kept"), [(None, "j9", "j9"), ("j1", "j9", "j1"), ("j1", "", "j1")])
def test_a_job_id_is_learned_once(known: str | None, told: str, kept: str) -> None:
    """The id that was answered to the create stays; one that a status brings is taken when there is none."""
    assert observed(record(job_id=known), running(), job_id=told).job_id == kept


@pytest.mark.parametrize(
    ("states", "expected"), [((), False), ((silent(),), False), ((silent(), waiting("b")), True), ((ended(),), True)]
)
def test_a_list_says_something_when_one_state_does(states: tuple[Document, ...], expected: bool) -> None:
    """Empty states are as good as none."""
    assert records.says_something(raws(*states)) is expected


def test_an_unmentioned_job_is_first_only_noted() -> None:
    """Absent is not finished: the state stays, and the moment is kept."""
    known = observed(record(), running())
    missed = records.unmentioned(known, at(10), GRACE)

    assert (missed.absent_since, missed.has_ended, missed.containers) == (at(10), False, known.containers)
    assert records.unmentioned(missed, at(69), GRACE) is missed


def test_a_job_that_stays_unmentioned_is_lost() -> None:
    """After the grace period every container has terminated with reason JobLost, and never with success."""
    missed = records.unmentioned(record(containers=[{"name": "a"}, {"name": "b"}]), at(10), GRACE)
    lost = records.unmentioned(missed, at(70), GRACE)

    assert (lost.ended_at, reasons(lost)) == (at(70), ["JobLost", "JobLost"])
    assert not statuses.is_success([statuses.read(raw) for raw in lost.containers])


def test_a_job_that_is_mentioned_again_was_never_away() -> None:
    """The grace period begins anew."""
    missed = records.unmentioned(observed(record(), running()), at(10), GRACE)

    assert observed(missed, running()).absent_since is None


def test_a_deleted_pods_job_that_is_unmentioned_has_ended() -> None:
    """Nothing is left to end."""
    known = records.unmentioned(records.deleting(record(), pod(), at(1)), at(2), GRACE)

    assert (known.ended_at, known.containers) == (at(2), ())


def test_a_lost_job_that_comes_back_changes_nothing() -> None:
    """A result that has been told is never taken back."""
    missed = records.unmentioned(record(), at(10), GRACE)
    lost = records.unmentioned(missed, at(70), GRACE)

    assert observed(lost, running()) is lost


# --- whatever happens ------------------------------------------------------------------------------------------------

Step = Callable[[Record], Record]
STATES: list[tuple[Document, ...]] = [(), (silent(),), (waiting(),), (running(),), (ended(),), (ended(exit_code=7),)]


def _refused(known: Record) -> Record:
    return known if known.has_ended else records.rejected(known, "no", at(1))


STEPS: list[Step] = [
    *(lambda known, news=news: observed(known, *news) for news in STATES),
    lambda known: observed(known, running(), init=(ended("i", 1),)),
    lambda known: records.accepted(known, JobID("j7"), at(1)),
    lambda known: records.deleting(known, pod(metadata={"deletionGracePeriodSeconds": 1}), at(1)),
    lambda known: records.settled(known, at(2)),
    lambda known: records.unmentioned(known, at(3), GRACE),
    lambda known: records.unmentioned(known, at(99), GRACE),
    _refused,
]
histories = st.lists(st.sampled_from(range(len(STEPS))), max_size=12)


def walk(history: list[int]) -> list[Record]:
    """The record before and after each step."""
    states = [records.begun(pod(), OWNER, NOW)]
    for number in history:
        states.append(STEPS[number](states[-1]))
    return states


@few
@given(histories)
def test_a_result_never_changes(history: list[int]) -> None:
    """Once a record has ended, its end, its states and its refusal are what they are."""
    states = walk(history)

    results = [(s.ended_at, s.containers, s.init_containers, s.rejected) for s in states if s.has_ended]
    assert len(set(map(repr, results))) <= 1


@few
@given(histories)
def test_a_revision_never_falls(history: list[int]) -> None:
    """It grows by one with each change, and a change is a change."""
    states = walk(history)

    for before, after in itertools.pairwise(states):
        assert after.revision - before.revision == (0 if after is before else 1)


@few
@given(histories)
def test_a_deletion_is_for_good(history: list[int]) -> None:
    """After a tombstone no create is ever let through to the plugin again."""
    marked = records.deleting(walk(history)[-1], pod(), at(1))

    allowed = {Decision.REFUSE_DELETED, Decision.REJECTED}
    assert records.decide_create(marked, OWNER) in allowed


@few
@given(histories)
def test_no_record_holds_more_than_a_skeleton(history: list[int]) -> None:
    """Whatever happens to a pod, its record keeps no environment."""
    secret = pod(containers=[{"name": "c", "env": [{"name": "A", "value": "s3cr3t"}]}])
    known = records.begun(secret, OWNER, NOW)
    for number in history:
        known = STEPS[number](known)

    assert b"s3cr3t" not in msgspec.json.encode(records.deleting(known, secret, NOW))


# --- creates ---------------------------------------------------------------------------------------------------------

CREATE, LIVE = record(job_id=None), record(job_id="j1")
DECISIONS = [
    ("nothing is known", None, OWNER, Decision.BEGIN),
    ("it was begun", CREATE, OWNER, Decision.ASK_FIRST),
    ("it has a job", LIVE, OWNER, Decision.ANSWER),
    ("its job has ended", observed(LIVE, ended()), OWNER, Decision.ANSWER),
    ("it was rejected", records.rejected(CREATE, "no", NOW), OWNER, Decision.REJECTED),
    ("it was deleted", records.deleting(LIVE, pod(), NOW), OWNER, Decision.REFUSE_DELETED),
    ("it was deleted before it had a job", records.deleting(CREATE, pod(), NOW), OWNER, Decision.REFUSE_DELETED),
    ("its deletion is done", records.settled(records.deleting(LIVE, pod(), NOW), NOW), OWNER, Decision.REFUSE_DELETED),
    ("it is another node's", LIVE, OTHER, Decision.REFUSE_OWNER),
    ("it is another cluster's", LIVE, Owner(cluster="d", node="vk"), Decision.REFUSE_OWNER),
    ("it is another's and deleted", records.deleting(LIVE, pod(), NOW), OTHER, Decision.REFUSE_OWNER),
    ("it is another's and rejected", records.rejected(CREATE, "no", NOW), OTHER, Decision.REFUSE_OWNER),
]


@pytest.mark.parametrize(
    ("known", "asker", "decision"), [row[1:] for row in DECISIONS], ids=[row[0].replace(" ", "-") for row in DECISIONS]
)
def test_a_create_when(known: Record | None, asker: Owner, decision: Decision) -> None:
    """A repeated create is answered from the record; only one for an unknown pod begins anything."""
    assert records.decide_create(known, asker) is decision
