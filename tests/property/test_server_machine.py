"""Random work with deaths at every await, damaged and lost caches: the invariants of the crash plan hold.

I1 no pod lost, I2 and I3 no double submission, I5 delete is final, I6 results never change, I7 what was acknowledged
is known, I8 recovery can be repeated, I11 damage is rebuilt from the other two sources.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from interlink.aio import files
from interlink.model import records
from interlink.model.ids import PodUID
from interlink.model.pods import Pod
from interlink.model.records import Record
from interlink.server.creating import Creator
from interlink.server.ledger import Ledger
from tests.property.disks import Disk, FilesDisk, MemoryDisk
from tests.property.world import World

deaths = st.one_of(st.none(), st.integers(min_value=0, max_value=12))
picks = st.integers(min_value=0, max_value=30)


class ServerMachine(RuleBasedStateMachine):
    is_idempotent = True
    disk: type[Disk] = MemoryDisk
    examples = 150

    @initialize()
    def begin(self) -> None:
        self.world = World(self.disk(), is_idempotent=self.is_idempotent)
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.finish()
            finally:
                self.world.close()

    def pick(self, number: int) -> PodUID | None:
        uids = sorted(self.world.kubernetes.pods)
        return uids[number % len(uids)] if uids else None

    @rule(die_at=deaths, lost_answers=st.integers(min_value=0, max_value=1))
    def new_pod(self, die_at: int | None, lost_answers: int) -> None:
        uid = self.world.kubernetes.add(self.count)
        self.count += 1
        self.world.plugin.lost_answers = lost_answers
        self.world.do(lambda: self.world.create(uid), die_at=die_at)

    @rule(number=picks, die_at=deaths)
    def repeat_create(self, number: int, die_at: int | None) -> None:
        uid = self.pick(number)
        if uid is not None and self.world.kubernetes.pods[uid].job_id is None:
            self.world.do(lambda: self.world.create(uid), die_at=die_at)

    @rule(number=picks, die_at=deaths, lost_answers=st.integers(min_value=0, max_value=1))
    def delete_pod(self, number: int, die_at: int | None, lost_answers: int) -> None:
        uid = self.pick(number)
        if uid is not None:
            self.world.plugin.lost_answers = lost_answers
            self.world.do(lambda: self.world.delete(uid), die_at=die_at)

    @rule(number=picks)
    def force_delete(self, number: int) -> None:
        """The object vanishes; nobody tells the server."""
        uid = self.pick(number)
        if uid is not None:
            del self.world.kubernetes.pods[uid]

    @rule(number=picks, exit_code=st.sampled_from([0, 1, 42]))
    def job_ends(self, number: int, exit_code: int) -> None:
        alive = sorted(self.world.batch.alive())
        if alive:
            self.world.batch.exit_codes[alive[number % len(alive)]] = exit_code

    @rule(die_at=deaths)
    def one_round(self, die_at: int | None) -> None:
        self.world.do(self.world.round, die_at=die_at)

    @rule(die_at=deaths)
    def announce(self, die_at: int | None) -> None:
        self.world.do(self.world.announce, die_at=die_at)

    @rule()
    def follow(self) -> None:
        self.world.do(self.world.follow)

    @rule(die_at=deaths)
    def sweep(self, die_at: int | None) -> None:
        self.world.do(self.world.sweep, die_at=die_at)

    @rule()
    def kill(self) -> None:
        self.world.kill()

    @rule()
    def lose_cache(self) -> None:
        self.world.lose_cache()

    @rule(number=picks, keep=st.floats(min_value=0, max_value=0.99))
    def damage_record(self, number: int, keep: float) -> None:
        uids = sorted(self.world.disk.contents())
        if uids:
            self.world.damage(uids[number % len(uids)], keep)

    @rule(is_full=st.booleans())
    def fill_disk(self, *, is_full: bool) -> None:
        self.world.disk.is_full = is_full

    @invariant()
    def nothing_is_submitted_twice(self) -> None:
        if hasattr(self, "world"):
            twice = {uid: n for uid, n in self.world.batch.submissions.items() if n > 1}
            assert twice == {}

    def finish(self) -> None:
        """After the trouble: every pod has its one job or result, every deleted pod's job is over, nothing is left."""
        world = self.world
        world.disk.is_full = False
        world.plugin.lost_answers = 0
        world.settle()
        assert world.kubernetes.pods.keys() & world.kubernetes.deleting == set()
        assert world.batch.alive() <= set(world.kubernetes.pods), "a job without a pod"
        for uid, pod in world.kubernetes.pods.items():
            assert world.batch.submissions[uid] == 1, "a pod without its job"
            assert pod.job_id == f"job-{uid}"
        assert set(world.disk.contents()) == set(world.kubernetes.pods), (
            "records that nobody needs, or none where needed"
        )
        before = world.disk.contents()
        world.kill()
        world.settle()
        assert world.disk.contents() == before, "a second recovery changed something"


class ExistingPluginMachine(ServerMachine):
    """A plugin of the existing kind submits again whenever it is asked to, and cannot tell its jobs."""

    is_idempotent = False

    @rule(number=picks)
    def force_delete(self, number: int) -> None:
        """Not here: without a list of jobs, one that was never acknowledged and whose record is lost stays unknown."""


class FilesMachine(ServerMachine):
    """On the real files store in a directory: deaths between and in its calls of the operating system."""

    disk = FilesDisk
    examples = 80

    @rule(kept=st.sampled_from([0.0, 0.4, 0.8, 1.0]))
    def what_a_death_leaves(self, kept: float) -> None:
        """Of what was not synced: with 1 only the process is killed, less is a power cut."""
        self.world.kept = kept


def run(machine: type[ServerMachine], *, phases: Sequence[Phase] = tuple(Phase), times: int = 1) -> None:
    chosen = settings(
        max_examples=machine.examples * times,
        phases=phases,
        stateful_step_count=30,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("machine", [ServerMachine, ExistingPluginMachine, FilesMachine])
def test_no_death_loses_doubles_or_orphans_a_job(machine: type[ServerMachine]) -> None:
    """The server as it is holds every invariant."""
    run(machine)


async def sends_without_asking(*_: object) -> None:
    """A mutant: it never looks for a job before it sends."""


async def answers_without_writing(self: Ledger, records: Sequence[Record]) -> None:
    """A mutant: what it acknowledges is in its memory only."""
    for record in records:
        self._newest[record.pod_uid] = record
        self._tell(record)


def forgets_tombstones(record: Record, pod: Pod, now: datetime) -> Record:
    """A mutant: a deletion leaves no trace."""
    return record


def does_not_sync(_: Path) -> None:
    """A mutant: names of files are not on the disk yet when it answers."""


MUTANTS = [
    (ExistingPluginMachine, Creator, "_find", sends_without_asking),
    (ServerMachine, Ledger, "commit", answers_without_writing),
    (ServerMachine, records, "deleting", forgets_tombstones),
    (FilesMachine, files, "sync_directory", does_not_sync),
]


@pytest.mark.parametrize(("machine", "place", "name", "mutant"), MUTANTS)
def test_the_machine_catches_a_server_that_is_wrong(
    monkeypatch: pytest.MonkeyPatch, machine: type[ServerMachine], place: object, name: str, mutant: object
) -> None:
    """The checker is checked: each mutant is found out; Flaky is the finding too, of one that fails only sometimes."""
    monkeypatch.setattr(place, name, mutant)

    with pytest.raises((AssertionError, ExceptionGroup, KeyError, Flaky)):
        run(machine, phases=[Phase.generate], times=10)
