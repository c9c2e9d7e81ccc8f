"""What the local plugin leaves behind."""

import json

from interlink.testing.programs import Programs
from interlink.testing.waiting import until
from tests.support.pods import Pods


def test_directories_of_deleted_jobs_go(programs: Programs, pods: Pods) -> None:
    """A job's directory stays while its pod exists, and goes some time after the pod was deleted."""
    keys = json.loads((programs.folder / "plugin.yaml").read_text())
    (programs.folder / "plugin.yaml").write_text(json.dumps(keys | {"KeepDeletedJobs": 0}))
    pods.start("kept", "true")
    pods.start("gone", "true")
    kept = pods.wait("kept", "Succeeded")["metadata"]["uid"]
    gone = pods.wait("gone", "Succeeded")["metadata"]["uid"]

    pods.kubectl("delete", "pod", "gone", "--timeout=30s")
    programs.plugin.restart()  # perhaps in the middle of the deletion, which is then repeated
    directory = programs.jobs / gone
    assert until(lambda: (directory / "cancelled").exists() or not directory.exists(), deadline_s=30)
    programs.plugin.restart()

    assert until(lambda: not (programs.jobs / gone).exists(), deadline_s=20)
    assert (programs.jobs / kept).exists()
    assert pods.kubectl("logs", "kept") == ""


def test_a_log_is_cut_at_the_size_that_the_site_wants(programs: Programs, pods: Pods) -> None:
    """`kubectl logs` shows what is kept, without a gap, and follows from one file into the next."""
    keys = json.loads((programs.folder / "plugin.yaml").read_text()) | {"SidecarPort": programs.plugin_port}
    limits = {"ContainerLogMaxSize": "2Ki", "ContainerLogMaxFiles": 3}
    (programs.folder / "plugin.yaml").write_text(json.dumps(keys | limits))
    programs.plugin.restart()
    pods.start("p", "for i in $(seq 1000); do echo $i; [ $((i % 100)) != 0 ] || sleep 0.3; done")
    uid = pods.wait("p", "Running")["metadata"]["uid"]

    followed = [int(line) for line in pods.kubectl("logs", "-f", "p").split()]
    kept = [int(line) for line in pods.kubectl("logs", "p").split()]

    assert followed == list(range(followed[0], 1001))
    assert kept == list(range(kept[0], 1001))
    assert kept[0] > 1
    assert sum(1 for _ in (programs.jobs / uid / "logs").glob("*/*")) == 3
