"""What the demo runs on: a cluster, or none and how to get one."""

import contextlib
import secrets
import sys
from pathlib import Path

import msgspec

from interlink.testing import Cluster, ControlPlane, UnavailableError, assets, clusters, kubectl, open_cluster

OWN_NAME = "interlink-demo"


class Stage(msgspec.Struct, frozen=True):
    """`name` is that of the node and of the namespace; `lacks` says how to get a cluster where there is none."""

    name: str = OWN_NAME
    cluster: Cluster | None = None
    lacks: str = ""


def build() -> None:
    """Have the control plane built before the screen is shown: that takes minutes and tells its progress."""
    if not clusters.is_given():
        assets.find()


def open_stage(stack: contextlib.ExitStack, *, wants_cluster: bool, is_kept: bool) -> Stage:
    """Everything ends with the stack, also what would be kept."""
    if not wants_cluster:
        return Stage(lacks="unset DEMO_CLUSTER")
    try:
        cluster = stack.enter_context(open_cluster(keep=is_kept))
    except UnavailableError as error:
        return Stage(lacks=str(error))
    if not isinstance(cluster, ControlPlane):
        return Stage(cluster=cluster, name=f"{OWN_NAME}-{secrets.token_hex(3)}")
    stack.callback(cluster.stop)
    if cluster.missing:
        cluster.stop()
        return Stage(lacks=f"put {', '.join(cluster.missing)} into {cluster.programs} as well")
    return Stage(cluster=cluster)


def explore(stage: Stage, server: str) -> list[str]:
    """The lines with which to look at what was kept."""
    python = sys.executable
    if stage.cluster is None:
        look = [f"export INTERLINK_SERVER={server}", f"{python} -m interlink pods list"]
        return [*look, f"{python} -m interlink pods logs UID main"]
    program = _kubectl()
    lines = [
        f"export KUBECONFIG={stage.cluster.kubeconfig}",
        f"{program} get nodes -o wide",
        f"{program} get pods -A -o wide",
        f"{program} logs -n {stage.name} inputs",
        f"{program} logs -n {stage.name} -l job-name=tasks --prefix",
    ]
    if stage.name == OWN_NAME:
        lines.append(f"{program} apply -f examples/service.yaml")
    return lines


def _kubectl() -> str:
    """As the user can call it: the one beside this Python is not on the user's PATH."""
    found = kubectl.program()
    return found if Path(found).parent == Path(sys.executable).parent else "kubectl"


def remnants(stage: Stage) -> list[str]:
    """What ending the demo leaves on somebody else's cluster."""
    if stage.cluster is None or isinstance(stage.cluster, ControlPlane):
        return []
    return [f"kubectl delete namespace {stage.name}", f"kubectl delete node {stage.name}"]
