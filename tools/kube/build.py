#!/usr/bin/env python3
"""Build the test control plane and print the folder that holds its four programs.

The folder lies in the user's cache directory under a key made of the sources and the Go version, so a
second call is instant and a changed pin builds anew. Two builds at once are harmless: each works in a
folder of its own and renames it into place. Needs Go and its module proxy; standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCES = ("main.go", "go.mod", "go.sum")
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
HERE = Path(__file__).resolve().parent


def main() -> int:
    if shutil.which("go") is None:
        print("kube: Go is not installed; install it, or set KUBEBUILDER_ASSETS", file=sys.stderr)
        return 3
    target = cache_root() / key()
    if not all((target / name).exists() for name in PROGRAMS):
        build(target)
    print(target)
    return 0


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "interlink" / "kube"


def key() -> str:
    digest = hashlib.sha256(go("env", "GOVERSION").encode())
    for name in SOURCES:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()[:16]


def build(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch) / "bin"
        folder.mkdir()
        compile_binary(folder / "kube")
        for name in PROGRAMS:
            (folder / name).symlink_to("kube")
        try:
            folder.rename(target)
        except OSError:  # another build came first
            if not target.exists():
                raise


def compile_binary(output: Path) -> None:
    started = time.monotonic()
    show("kube: downloading the Go modules of Kubernetes")
    total = len(go("list", "-deps", ".").split())
    flags = " ".join(["-s", "-w", *version_flags()])
    argv = ["go", "build", "-v", "-trimpath", "-ldflags", flags, "-o", str(output), "."]
    with subprocess.Popen(argv, cwd=HERE, stderr=subprocess.PIPE, text=True) as compiler:
        assert compiler.stderr is not None
        lines: list[str] = []
        for line in compiler.stderr:
            lines.append(line)
            elapsed_s = int(time.monotonic() - started)
            show(f"kube: compiled {len(lines)} of {total} packages, {elapsed_s} s (about 300 s the first time)")
    if compiler.returncode != 0:
        raise SystemExit("\nkube: go build failed:\n" + "".join(lines[-20:]))
    print(f"\nkube: built in {int(time.monotonic() - started)} s", file=sys.stderr)


def version_flags() -> list[str]:
    found = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)", (HERE / "go.mod").read_text())
    if found is None:
        raise SystemExit("kube: go.mod names no version of k8s.io/kubernetes")
    values = {"gitVersion": found[1], "gitMajor": found[2], "gitMinor": found[3]}
    return [f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items()]


def go(*arguments: str) -> str:
    return subprocess.run(["go", *arguments], cwd=HERE, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def show(text: str) -> None:
    """One line that is rewritten on a terminal; in a log, one line in ten seconds."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif time.monotonic() - show_state["last"] > 10:
        show_state["last"] = time.monotonic()
        print(text, file=sys.stderr, flush=True)


show_state = {"last": -1e9}

if __name__ == "__main__":
    sys.exit(main())
