"""Fixtures of the end-to-end tests: the three programs as real processes against the real API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlink.testing import Cluster
from interlink.testing.programs import Programs
from tests.e2e.pods import Pods


@pytest.fixture
def programs(tmp_path: Path, cluster: Cluster, node_name: str) -> Iterator[Programs]:
    """Plugin, server and virtual kubelet, running; the test may kill and start them."""
    with Programs(tmp_path, cluster=cluster, node_name=node_name) as running:
        yield running
    cluster.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def pods(cluster: Cluster, namespace: str, node_name: str, programs: Programs) -> Pods:
    """Pods of this test, bound to its node."""
    return Pods(cluster, namespace, node_name, ledger=programs.folder / "ledger")
