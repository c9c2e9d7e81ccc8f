"""The command lines of the four daemons. Pure: files and address in, argv out."""

from pathlib import Path
from typing import NamedTuple

from interlink.testing.certificates import Pair


class Layout(NamedTuple):
    """Where the daemons find their programs, keys and data."""

    programs: Path
    folder: Path
    authority: Pair
    serving: Pair
    kubelet_client: Pair
    signing_key: Path
    kubeconfig: Path

    @property
    def etcd_url(self) -> str:
        """A socket in our private folder: no port to lose, and nobody else can reach the data."""
        return f"unix://{self.folder}/etcd.sock"


def etcd(layout: Layout, *, is_durable: bool) -> list[str]:
    return [
        f"{layout.programs}/etcd",
        f"--data-dir={layout.folder}/etcd",
        f"--listen-client-urls={layout.etcd_url}",
        "--advertise-client-urls=http://127.0.0.1:2379",  # wanted, never used: nobody asks for the members
        "--listen-peer-urls=http://127.0.0.1:0",
        f"--unsafe-no-fsync={str(not is_durable).lower()}",
        "--log-level=warn",
    ]


def apiserver(layout: Layout, port: int, *, has_controllers: bool) -> list[str]:
    return [
        f"{layout.programs}/kube-apiserver",
        f"--etcd-servers={layout.etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.serving.cert}",
        f"--tls-private-key-file={layout.serving.key}",
        f"--client-ca-file={layout.authority.cert}",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        # Without it a stop waits a minute for the watches of clients.
        "--shutdown-watch-termination-grace-period=1s",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--kubelet-client-certificate={layout.kubelet_client.cert}",
        f"--kubelet-client-key={layout.kubelet_client.key}",
        f"--kubelet-certificate-authority={layout.authority.cert}",
        # Without the controller manager no namespace gets the service account that this plug-in asks for.
        *([] if has_controllers else ["--disable-admission-plugins=ServiceAccount"]),
    ]


def controller_manager(layout: Layout) -> list[str]:
    return [
        f"{layout.programs}/kube-controller-manager",
        f"--kubeconfig={layout.kubeconfig}",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.authority.cert}",
        f"--cluster-signing-cert-file={layout.authority.cert}",
        f"--cluster-signing-key-file={layout.authority.key}",
        *_AS_CLIENT,
    ]


def scheduler(layout: Layout) -> list[str]:
    return [f"{layout.programs}/kube-scheduler", f"--kubeconfig={layout.kubeconfig}", *_AS_CLIENT]


# No port of their own, no waiting for a lease, and never the bottleneck of a measurement.
_AS_CLIENT = ["--secure-port=0", "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000"]
