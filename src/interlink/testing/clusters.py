"""Which cluster the tests run on: one the user names, else a control plane of our own."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from interlink.testing import assets, controlplane, kubectl
from interlink.testing.errors import UnavailableError

VARIABLE = "INTERLINK_TEST_KUBECONFIG"


class Cluster(Protocol):
    """A Kubernetes cluster that a test may fill with namespaces and nodes of its own."""

    @property
    def kubeconfig(self) -> Path:
        """A file that gives full rights."""

    @property
    def url(self) -> str:
        """Where its API server answers."""

    def kubectl(self, *arguments: str, input: str | None = None, timeout_s: float = 60) -> str:  # noqa: A002
        """What kubectl printed; raises KubectlError if it failed."""


class GivenCluster:
    """A cluster that belongs to somebody else: used, never started or stopped."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.url = self.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")

    def kubectl(self, *arguments: str, input: str | None = None, timeout_s: float = 60) -> str:  # noqa: A002
        return kubectl.run(*arguments, kubeconfig=self.kubeconfig, stdin=input, timeout_s=timeout_s)


def is_given(environ: Mapping[str, str] = os.environ) -> bool:
    """True if the user names a cluster, so that no control plane of our own is wanted."""
    return bool(environ.get(VARIABLE))


@contextlib.contextmanager
def open_cluster(environ: Mapping[str, str] = os.environ, *, keep: bool = False) -> Iterator[Cluster]:
    """The cluster named by INTERLINK_TEST_KUBECONFIG, else a new control plane that ends with the context.

    Raises UnavailableError, whose text says how to get one, when there is neither or when kubectl is missing.
    With `keep` the control plane stays; see ControlPlane.
    """
    kubectl.program()
    if is_given(environ):
        yield GivenCluster(Path(environ[VARIABLE]))
        return
    folder = assets.find(environ)
    if folder is None:
        raise UnavailableError(assets.ADVICE)
    with controlplane.ControlPlane(folder, keep=keep) as plane:
        yield plane
