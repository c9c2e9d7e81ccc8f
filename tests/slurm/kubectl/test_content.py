"""What reaches a program on Slurm from Kubernetes, byte for byte, and what of its output comes back in time."""

import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_events import wait_for
from tests.slurm.kubectl.conftest import ONCE
from tests.support.pods import Document, Pods
from tests.support.slurm_commands import Commands

pytestmark = [pytest.mark.usefixtures("programs"), ONCE]


def mounted(pods: Pods, script: str, **volumes: Document) -> Document:
    """A pod whose container has each volume at /v/NAME."""
    document = pods.pod("p", volumes=[{"name": name, **volume} for name, volume in volumes.items()])
    mounts = [{"name": name, "mountPath": f"/v/{name}"} for name in volumes]
    document["spec"]["containers"] = [pods.container("c", script, volumeMounts=mounts)]
    return document


def config_map(name: str, **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


# --- files -----------------------------------------------------------------------------------------------------------

LIST = "cd /v; for f in $(find . -follow -type f -not -path '*/..*' | sort); do sha256sum $f; stat -Lc %a $f; done"


def listed(files: dict[str, tuple[str, int]]) -> list[str]:
    """What LIST prints for these contents and modes."""
    lines = [
        (f"{hashlib.sha256(content.encode()).hexdigest()}  ./{name}", f"{mode:o}")
        for name, (content, mode) in sorted(files.items())
    ]
    return [line for pair in lines for line in pair]


def pem() -> str:
    """A key of more than 20 lines."""
    lines = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(20)]
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])


def test_files_of_config_maps_and_secrets_t16(pods: Pods) -> None:
    """All keys, with their bytes and modes: many lines, a dot in the name, two keys of a Secret of its owner alone."""
    pods.apply(
        config_map("cm", **{"tls.pem": pem(), "a.conf": "x = 'no end of line'"}),
        secret("s", one="pass'w$(x)", two="\n\ttwo \\ lines\n"),
    )
    volumes: dict[str, Document] = {
        "cm": {"configMap": {"name": "cm"}},
        "s": {"secret": {"secretName": "s", "defaultMode": 0o400}},
    }
    pods.apply(mounted(pods, LIST, **volumes))
    pods.wait("p", "Succeeded")

    assert pods.kubectl("logs", "p").splitlines() == listed(
        {
            "cm/a.conf": ("x = 'no end of line'", 0o644),
            "cm/tls.pem": (pem(), 0o644),
            "s/one": ("pass'w$(x)", 0o400),
            "s/two": ("\n\ttwo \\ lines\n", 0o400),
        }
    )


def test_a_projected_source_without_items_t16(pods: Pods) -> None:
    """It has all keys of its ConfigMap and its Secret, in one directory."""
    pods.apply(config_map("cm", **{"a.conf": "a", "b": "b\n"}), secret("s", c="c", d="d\n"))
    sources = [{"configMap": {"name": "cm"}}, {"secret": {"name": "s"}}]
    pods.apply(mounted(pods, LIST, all={"projected": {"sources": sources}}))
    pods.wait("p", "Succeeded")

    contents = {"a.conf": "a", "b": "b\n", "c": "c", "d": "d\n"}
    expected = {f"all/{name}": (content, 0o644) for name, content in contents.items()}
    assert pods.kubectl("logs", "p").splitlines() == listed(expected)


def test_a_sub_path_is_one_file_t16(pods: Pods) -> None:
    """The file alone, beside what the directory has already."""
    pods.apply(config_map("cm", **{"a.conf": "only this\n", "b": "not this"}))
    document = pods.pod("p", volumes=[{"name": "cm", "configMap": {"name": "cm"}}, {"name": "d", "emptyDir": {}}])
    mounts = [
        {"name": "d", "mountPath": "/v"},
        {"name": "cm", "mountPath": "/v/mine.conf", "subPath": "a.conf"},
    ]
    script = "echo own > /v/own; ls /v; test -f /v/mine.conf; cat /v/mine.conf"
    document["spec"]["containers"] = [pods.container("c", script, volumeMounts=mounts)]
    pods.apply(document)
    pods.wait("p", "Succeeded")

    assert pods.kubectl("logs", "p") == "mine.conf\nown\nonly this\n"


# --- references that lead nowhere ------------------------------------------------------------------------------------


def password(**reference: Any) -> Document:
    return {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k", **reference}}}


def test_a_pod_that_waits_for_a_secret_is_deleted_t17(pods: Pods, commands: Commands) -> None:
    """It says what it waits for, has no job, and is gone within its grace period."""
    document = pods.pod("p")
    document["spec"]["containers"] = [pods.container("c", "true", env=[password()])]
    pods.apply(document)
    message = pods.wait_reason("p", "CreateContainerConfigError")
    uid = pods.uid("p")
    assert "late" in message
    assert "late" in wait_for(pods, "p", "Failed")[0]["message"]

    pods.kubectl("delete", "pod", "p", "--timeout=30s")

    assert commands.calls("sbatch", about=uid) == []
    assert pods.starts() == {}


def test_an_optional_reference_t17(pods: Pods) -> None:
    """The pod starts at once, without the variable."""
    document = pods.pod("p")
    script = 'echo "${PW-not set}"'
    document["spec"]["containers"] = [pods.container("c", script, env=[password(optional=True)])]
    pods.apply(document)
    pods.wait("p", "Succeeded")

    assert pods.kubectl("logs", "p") == "not set\n"


# --- variables -------------------------------------------------------------------------------------------------------

VALUES = {
    "JSON": '{"a": "b \\"c\\"", "d": [1, 2]}',
    "SHELL": "$HOME $(date) ${PATH}",
    "BACK_QUOTES": "`id`",
    "APOSTROPHE": "it's",
    "ESCAPED": "a\\nb",
    "NEWLINE": "a\nb\n",
    "PARENTHESES": "x(y)",
    "PERCENT": "100%",
    "BACKSLASH": "ends with \\",
    "BLANKS": "  both ends  ",
    "EMPTY": "",
    "LONG": "0123456789" * 10_000,
}
OF_THE_HOST = {"LD_PRELOAD", "SLURM_MPI_TYPE"}


def test_environment_values_t18(pods: Pods, tmp_path: Path) -> None:
    """Exactly these bytes; of the host's variables only the one on the site's list."""
    dump = tmp_path / "environment"
    env = [{"name": name, "value": value} for name, value in VALUES.items()]
    document = pods.pod("p")
    document["spec"]["containers"] = [pods.container("c", f"exec env -0 > {dump}", env=env)]
    pods.apply(document)
    pods.wait("p", "Succeeded")

    found = dict(entry.split("=", 1) for entry in dump.read_bytes().decode().split("\0") if entry)
    assert {name: found.get(name) for name in VALUES} == VALUES
    assert found["FROM_THE_SITE"] == "here"
    assert OF_THE_HOST & set(found) == set()
    assert [name for name in found if name.startswith("SLURM_")] == []


# --- output ----------------------------------------------------------------------------------------------------------


def test_every_line_comes_within_three_seconds_t14(pods: Pods) -> None:
    """Followed from its third second on, a program's lines come in order, and the stream ends soon after the last."""
    pods.start("p", "for i in $(seq 20); do echo $i $(date +%s.%N); sleep 0.4; done")
    pods.wait("p", "Running")
    pods.wait_until(lambda: "\n8 " in pods.kubectl("logs", "p"), "it has printed for three seconds")
    numbers, delays = [], []
    for line in pods.follow_log("p"):
        number, printed_at = line.split()
        numbers.append(int(number))
        delays.append(time.time() - float(printed_at))
    ended_after_s = time.time() - float(printed_at)

    assert numbers == list(range(1, 21))
    assert max(delays[10:]) < 3
    assert ended_after_s < 6
