"""Pods whose job script a service of the site makes, seen with kubectl."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlink.testing import Cluster
from interlink.testing.programs import Programs
from tests.support.jobs import end_jobs
from tests.support.pods import Pods, exit_codes

SCRIPT = """cd "$SANDBOX"
echo prepared > init-{init}.out; echo 0 > init-{init}.status
echo hello > run-{main}.out; echo 7 > run-{main}.status
"""


class Builder(http.server.BaseHTTPRequestHandler):
    """Makes a script from the names of the pod's containers."""

    def do_POST(self) -> None:
        pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["pod"]["spec"]
        script = SCRIPT.format(init=pod["initContainers"][0]["name"], main=pod["containers"][0]["name"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(script)))
        self.end_headers()
        self.wfile.write(script)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def builder() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Builder) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def stopped_programs(tmp_path: Path, cluster: Cluster, node_name: str, builder: str) -> Iterator[Programs]:
    programs = Programs(
        tmp_path,
        cluster=cluster,
        node_name=node_name,
        server_keys={"JobScriptBuildConfig": {}},
        kubelet_keys={"JobScriptBuilderURL": builder},
    )
    yield programs
    programs.stop()
    end_jobs(programs.jobs)
    cluster.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


def test_a_pod_whose_script_the_site_makes(programs: Programs, pods: Pods) -> None:
    """The script's words count: exit codes and logs; the commands of the containers are not run."""
    pods.start("scripted", "exit 0", initContainers=[pods.container("i0", "exit 9")])
    pod = pods.wait("scripted", "Failed")

    assert exit_codes(pod["status"]["initContainerStatuses"]) == {"i0": 0}
    assert exit_codes(pod["status"]["containerStatuses"]) == {"c0": 7}
    assert pods.kubectl("logs", "scripted") == "hello\n"
    assert pods.kubectl("logs", "scripted", "-c", "i0") == "prepared\n"
    assert pods.starts() == {}
