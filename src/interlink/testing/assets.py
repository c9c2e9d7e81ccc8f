"""Where the programs of a control plane are: named by the user, or built from `tools/kube` in a checkout."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from interlink.testing.errors import HarnessError

REQUIRED = ("etcd", "kube-apiserver")
OPTIONAL = ("kube-controller-manager", "kube-scheduler")
VARIABLES = ("KUBEBUILDER_ASSETS", "INTERLINK_KUBE_ASSETS")
ADVICE = (
    "no Kubernetes control plane: set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, "
    "or INTERLINK_TEST_KUBECONFIG to the kubeconfig of a test cluster, "
    "or install Go (go.dev/dl) and run tools/kube/build.py (about 5 minutes, once)"
)


def find(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that holds at least etcd and kube-apiserver, or None; then `ADVICE` says how to get one.

    The first of `VARIABLES` whose folder is complete wins. After them, in a checkout on a machine with Go,
    the cached build is used; if there is none yet it is built, with its progress on stderr.
    Raises HarnessError when that build fails, so that a broken build never looks like a missing one.
    """
    named = (Path(environ[name]) for name in VARIABLES if environ.get(name))
    return next((folder for folder in named if is_complete(folder)), None) or build(script())


def is_complete(folder: Path) -> bool:
    """True if a control plane can be started from this folder; the optional programs may be absent."""
    return all(os.access(folder / name, os.X_OK) for name in REQUIRED)


def missing(folder: Path) -> tuple[str, ...]:
    """The optional programs that this folder lacks: what they do cannot be tested."""
    return tuple(name for name in OPTIONAL if not os.access(folder / name, os.X_OK))


def script() -> Path | None:
    """The build script of the checkout this module runs from; None when installed, or without Go."""
    found = Path(__file__).parents[3] / "tools" / "kube" / "build.py"
    return found if found.exists() and shutil.which("go") else None


def build(builder: Path | None) -> Path | None:
    if builder is None:
        return None
    done = subprocess.run([sys.executable, builder], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise HarnessError(f"{builder.name} failed with exit code {done.returncode}; its output is above")
    return Path(done.stdout.strip())
