"""What the files store has promised is there after a power cut, wherever it comes and however the disk is left."""

import asyncio
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlink.model import records
from interlink.model.ids import PodUID
from interlink.server.store import files as store
from interlink.server.store.files import FilesStore
from tests.property.tape import Call, Choose, Tape, after_a_power_cut
from tests.unit.builders import at, record

UIDS = [PodUID(f"0f0f0f0f-0000-4000-8000-00000000000{number}") for number in range(4)]
Step = dict[PodUID, bool]
"""What is done at the same time: whether a pod's record is saved, or removed."""

steps = st.lists(st.dictionaries(st.sampled_from(UIDS), st.booleans(), min_size=1), min_size=1, max_size=6)
EXTREMES: list[Choose] = [
    lambda what, most, d=directory, f=file: most * (d if what == "directory" else f)  # type: ignore[misc]
    for directory, file in itertools.product((0, 1), repeat=2)
]


def taped(work: Sequence[Step]) -> list[Call]:
    """A real store at work on a real disk; `begun` and `done` mark what was asked and answered."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        tape = Tape(Path(folder) / "CachedPods", monkeypatch)
        asyncio.run(_work(FilesStore(Path(folder)), work, tape))
        return [_moved(call, folder) for call in tape.calls]


def _moved(call: Call, folder: str) -> Call:
    """With names that mean the same elsewhere."""

    def name(value: object) -> object:
        return value.removeprefix(f"{folder}/CachedPods/") if isinstance(value, str) else value

    return Call(call.what, name(call.of), name(call.more))


async def _work(files: FilesStore, work: Sequence[Step], tape: Tape) -> None:
    await files.restore()
    for version, step in enumerate(work, start=1):

        async def act(uid: PodUID, version: int | None) -> None:
            tape.mark("begun", uid, version)
            if version is None:
                await files.remove([uid])
            else:
                await files.save([records.replace(record(uid), at(version))])
            tape.mark("done", uid, version)

        await asyncio.gather(*(act(uid, version if is_saved else None) for uid, is_saved in step.items()))


def broken_promises(calls: Sequence[Call], choose: Choose) -> Iterator[str]:
    """What is wrong with the disk that a power cut after these calls leaves."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in after_a_power_cut(calls, choose).items():
            (Path(folder) / name).write_bytes(data)
        restored = store.look(Path(folder))
    yield from (f"damaged: {damage}" for damage in restored.damaged)
    found = {one.pod_uid: one.updated_at for one in restored.records}
    for uid in UIDS:
        possible = _possible(calls, uid)
        if found.get(uid) not in [None if version is None else at(version) for version in possible]:
            yield f"{uid}: {found.get(uid)} is none of the versions {possible}"


def _possible(calls: Sequence[Call], uid: PodUID) -> list[int | None]:
    """The last version that was promised, and the one that was under way."""
    promised, begun = None, None
    for call in calls:
        if call.of == uid and call.what == "done":
            promised = begun = call.more
        elif call.of == uid and call.what == "begun":
            begun = call.more
    return [promised, begun]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(work=steps, data=st.data())
def test_a_power_cut_breaks_no_promise(work: list[Step], data: st.DataObject) -> None:
    """At any call, with any part of what was not synced on the disk."""
    calls = taped(work)
    cut = data.draw(st.integers(0, len(calls)), label="cut after")

    def choose(what: str, most: int) -> int:
        return data.draw(st.integers(0, most), label=what)

    assert list(broken_promises(calls[:cut], choose)) == []


WORK: list[Step] = [
    dict.fromkeys(UIDS, True),
    {UIDS[0]: True, UIDS[1]: False},
    dict.fromkeys(UIDS[:2], False),
    {UIDS[2]: True},
]


def all_broken(calls: Sequence[Call]) -> list[str]:
    """For each moment, with all and with nothing of what was not synced."""
    return [
        problem
        for cut in range(len(calls) + 1)
        for choose in EXTREMES
        for problem in broken_promises(calls[:cut], choose)
    ]


def test_every_moment_of_one_course() -> None:
    """None is left to chance."""
    assert all_broken(taped(WORK)) == []


@pytest.mark.parametrize("forgotten", ["sync", "sync-directory"])
def test_a_store_that_does_not_sync_is_found_out(forgotten: str) -> None:
    """Its files, or their directory: each is needed."""
    assert all_broken([call for call in taped(WORK) if call.what != forgotten])


def test_a_store_that_writes_in_place_is_found_out() -> None:
    """Without the rename a file is there in part."""
    renamed = {call.of: call.more for call in taped(WORK) if call.what == "rename"}
    calls = [
        Call(call.what, call.of, renamed.get(call.more, call.more)) if call.what == "create" else call
        for call in taped(WORK)
        if call.what != "rename"
    ]

    assert all_broken(calls)
