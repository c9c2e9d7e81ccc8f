"""What the server says of a job, read for its pod."""

from msgspec import Raw
from structlog.testing import capture_logs

from interlink.kubelet.pods import views
from interlink.wire.messages import Change, JobStatus
from tests.unit.builders import raws, running


def test_an_entry_that_cannot_be_read_says_nothing() -> None:
    """The others count, and the log names the pod."""
    entries = [Raw(b'{"name": 1}'), *raws(running())]

    with capture_logs() as lines:
        view = views.view(Change(status=JobStatus(uid="uid-1", containers=entries), revision=1))

    assert [status.name for status in view.containers] == ["c"]
    assert [(line["event"], line["pod_uid"]) for line in lines] == [("status.unreadable", "uid-1")]
