"""`interlink plugin slurm --check`: what works, and what to do about what does not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlink.testing.slurm import SlurmSite


def examined(site: SlurmSite, folder: Path, *arguments: str, **keys: object) -> tuple[int, dict[str, dict[str, Any]]]:
    file = folder / "SlurmConfig.yaml"
    base = {"SidecarPort": 1, "DataRootFolder": str(site.folder / "checked"), "ContainerRuntime": "none"}
    file.write_text(json.dumps(base | keys))
    argv = [sys.executable, "-m", "interlink", *arguments, "--config", str(file), "--output", "json"]
    environ = os.environ | {"SLURM_CONF": str(site.conf)}
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=60)
    assert done.stdout, done.stderr
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


@pytest.mark.parametrize("command", [["plugin", "slurm", "--check"], ["doctor"]])
def test_a_site_that_works(site: SlurmSite, tmp_path: Path, command: list[str]) -> None:
    """Every check is told; a tiny job has proved that the folder is shared, and nothing of it is left."""
    code, found = examined(site, tmp_path, *command)

    assert code == 0, found
    assert list(found) == [
        "commands", "version", "controller", "queue", "accounting", "nodes", "runtime", "folder", "job",
    ]  # fmt: skip
    assert {check["outcome"] for name, check in found.items() if name != "accounting"} == {"ok"}
    assert found["accounting"]["outcome"] == "warning"
    assert "the folder is shared" in found["job"]["detail"]
    assert list((site.folder / "checked").iterdir()) == []


def test_a_key_that_means_nothing_is_told(site: SlurmSite, tmp_path: Path) -> None:
    """First of all, because what it was meant to change has its default; numbers of GPUs are in plain words."""
    _, found = examined(site, tmp_path, "doctor", DefaultFlavour="small")

    assert next(iter(found)) == "configuration"
    assert found["configuration"]["detail"] == "unknown: DefaultFlavour"
    assert found["nodes"]["detail"].endswith(" gpu")


def test_a_site_that_says_it_shares_nothing(site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the existing plugin may be told; it is named, and what counts is whether the folder is shared."""
    monkeypatch.setenv("SHARED_FS", "false")
    code, found = examined(site, tmp_path, "doctor")

    assert code == 0
    assert (found["configuration"]["outcome"], found["configuration"]["detail"]) == ("warning", "SHARED_FS is not true")


def test_a_site_that_does_not(site: SlurmSite, tmp_path: Path) -> None:
    """Each failure has its advice; the exit code says that there is one."""
    code, found = examined(
        site, tmp_path, "doctor", SqueuePath="/nowhere/squeue", Partitions=["nosuch"], PythonPath="/nowhere/python3"
    )

    assert code == 1
    failed = {name for name, check in found.items() if check["outcome"] == "failed"}
    assert failed == {"commands", "queue", "nodes", "job"}
    assert all(found[name]["advice"] for name in ("commands", "nodes"))


def test_a_runtime_that_the_nodes_do_not_have(site: SlurmSite, tmp_path: Path) -> None:
    """The tiny job looks for it where jobs run, with what the site puts before every job."""
    _, found = examined(site, tmp_path, "doctor", ContainerRuntime="apptainer", RuntimePath="not-there")
    assert found["job"]["outcome"] == "failed"
    assert "not-there is not on node" in found["job"]["detail"]

    there = tmp_path / "bin" / "not-there"
    there.parent.mkdir()
    there.write_text("#!/bin/sh\n")
    there.chmod(0o755)
    prefix = f"export PATH={there.parent}:$PATH"
    _, found = examined(
        site, tmp_path, "doctor", ContainerRuntime="apptainer", RuntimePath="not-there", CommandPrefix=prefix
    )
    assert found["job"]["outcome"] == "ok"
