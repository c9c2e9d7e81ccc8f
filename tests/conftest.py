"""Fixtures for every test that needs Kubernetes: one cluster a run, a namespace and a node name a test."""

import asyncio
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlink.testing import Cluster, ControlPlane, UnavailableError, assets, clusters, open_cluster
from interlink.testing.programs import Programs
from tests.support.jobs import end_jobs
from tests.support.pods import Pods

GIVEN_TO_EACH_NAMESPACE = ("serviceaccount/default", "configmap/kube-root-ca.crt")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the control plane before the first test, outside its time limit and with the progress in sight."""
    is_wanted = any("cluster" in getattr(item, "fixturenames", ()) for item in session.items)
    if is_wanted and not session.config.option.collectonly and not clusters.is_given():
        capture = session.config.pluginmanager.getplugin("capturemanager")
        assert capture is not None
        with capture.global_and_fixture_disabled():
            assets.find()


@pytest.fixture(scope="session", autouse=True)
def _no_loop_of_nobody() -> None:
    """pytest-asyncio asks for the current event loop; without this asyncio makes one that nobody closes."""
    asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real Kubernetes API that the whole run shares; without one the test is skipped, with the way to get it."""
    try:
        with open_cluster() as found:
            yield found
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def control_plane(cluster: Cluster) -> ControlPlane:
    """The same cluster, for tests that stop parts of it."""
    if not isinstance(cluster, ControlPlane):
        pytest.skip(f"the cluster of {clusters.VARIABLE} is not ours to stop: unset it")
    return cluster


@pytest.fixture
def controllers(cluster: Cluster) -> None:
    """The controller manager runs."""
    if isinstance(cluster, ControlPlane) and "kube-controller-manager" in cluster.missing:
        pytest.skip(f"no kube-controller-manager in {cluster.programs}: unset KUBEBUILDER_ASSETS and install Go")


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace, ready for pods; its deletion begins when the test ends and is not waited for."""
    name = f"{slug(request.node.name)}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    if not isinstance(cluster, ControlPlane) or "kube-controller-manager" not in cluster.missing:
        for given in GIVEN_TO_EACH_NAMESPACE:  # asked for two that are missing, kubectl gives up at once
            cluster.kubectl("wait", "--for=create", "--timeout=30s", f"--namespace={name}", given)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def node_name(request: pytest.FixtureRequest) -> str:
    """A name for a node that no other test uses."""
    return f"{slug(request.node.name)}-{secrets.token_hex(3)}"


@pytest.fixture
def stopped_programs(tmp_path: Path, cluster: Cluster, node_name: str) -> Iterator[Programs]:
    """Plugin, server and virtual kubelet, for a test that starts them in its own way."""
    programs = Programs(tmp_path, cluster=cluster, node_name=node_name)
    yield programs
    programs.stop()
    end_jobs(programs.jobs)
    cluster.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def programs(stopped_programs: Programs) -> Programs:
    """Plugin, server and virtual kubelet, running; the test may kill and start them."""
    stopped_programs.start()
    return stopped_programs


@pytest.fixture
def pods(cluster: Cluster, namespace: str, node_name: str, stopped_programs: Programs) -> Iterator[Pods]:
    """Pods of this test, bound to its node."""
    found = Pods(cluster, namespace, node_name, ledger=stopped_programs.folder / "ledger")
    yield found
    found.close()


def slug(text: str) -> str:
    """The name of a test as the start of a Kubernetes name: at most 40 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower().removeprefix("test_"))[:40].strip("-")
