"""What our tests, the demo and plugin authors' tests share: a real Kubernetes control plane on loopback.

It promises that nothing it starts outlives it unless asked, that it touches no file outside its own
temporary folder, and that a missing control plane is told with the way to get one. Needs the extra `testing`.
"""

from interlink.testing.clusters import Cluster, GivenCluster, open_cluster
from interlink.testing.controlplane import ControlPlane
from interlink.testing.errors import DaemonError, HarnessError, KubectlError, UnavailableError

__all__ = [
    "Cluster",
    "ControlPlane",
    "DaemonError",
    "GivenCluster",
    "HarnessError",
    "KubectlError",
    "UnavailableError",
    "open_cluster",
]
