"""What an existing virtual kubelet is told: every container of the pod, for it reads an empty list as the end."""

from msgspec import Raw

from interlink.model import records, statuses
from interlink.model.ids import JobID, owner
from interlink.model.records import Record
from interlink.model.statuses import ContainerStatus
from interlink.server import answering
from tests.unit.builders import NOW, pod

FAILED = Raw(b'{"name":"i","state":{"terminated":{"exitCode":1}}}')


def record() -> Record:
    asked = pod(containers=[{"name": "a"}, {"name": "b"}], initContainers=[{"name": "i"}], restartPolicy="Never")
    return records.adopted(asked, owner("c", "vk"), JobID("j1"), NOW)


def told(item: Record) -> dict[str, ContainerStatus]:
    answer = answering.status(item, "")
    assert answer is not None
    return {status.name: status for status in map(statuses.read, answer.containers or [])}


def test_a_pod_whose_init_container_failed_has_an_end() -> None:
    """The plugin told nothing of the containers, which never ran; the pod does not look like one that succeeded."""
    ended = records.observed(record(), [], [FAILED], "j1", NOW)
    assert ended.has_ended

    ends = {name: status.terminated.exit_code if status.terminated else None for name, status in told(ended).items()}
    assert ends == {"a": 137, "b": 137}


def test_a_container_that_is_not_told_waits_while_the_pod_lives() -> None:
    """And is there."""
    assert {name: bool(status.waiting) for name, status in told(record()).items()} == {"a": True, "b": True}
