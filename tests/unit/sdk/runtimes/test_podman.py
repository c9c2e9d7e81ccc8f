"""Containers as command lines of Podman; Podman itself is not run by any test."""

from pathlib import Path

import pytest

from interlink.sdk.batch.runtime import Mount
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes.images import ImageSettings
from interlink.sdk.runtimes.podman import Podman
from tests.unit.builders import Document
from tests.unit.sdk.runtimes.launching import DATA, HERE, LOGIN, VALUES, launched

NAME = "interlink-uid-1-c"
START = [
    "podman", "run", "--rm", "--replace", f"--name={NAME}", "--cgroups=disabled", "--network=host",
    "--http-proxy=false", "--pull=never",
]  # fmt: skip
GPUS = [f"--env={name}" for name in (
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"
)]  # fmt: skip
HERE_PODMAN = Podman(ImageSettings())


def test_the_exact_command_line() -> None:
    """The command is the entry point, its arguments follow the image; a probe runs in the very container."""
    found = launched(HERE_PODMAN, DATA, command=["a b", "$x"], args=["--", "'"], workingDir="/w")

    assert found.argv == [
        *START,
        "--mount=type=bind,source=/jobs/uid-1/volumes/empty/v,destination=/data,readonly",
        "--workdir=/w",
        "--env=HOSTNAME",
        *GPUS,
        '--entrypoint=["a b","$x"]',
        "busybox:1.36",
        "--",
        "'",
    ]
    assert found.inside == ["podman", "exec", NAME]
    assert (found.program_at, found.image_at) == (0, None)


def test_without_a_command_the_image_decides() -> None:
    """Its entry point gets the arguments."""
    found = launched(HERE_PODMAN, command=None, args=["-v"])

    assert found.argv == [*START, "--env=HOSTNAME", *GPUS, "busybox:1.36", "-v"]


def test_values_are_not_in_the_command_line() -> None:
    """Those of variables that Podman itself would obey are in a file."""
    found = launched(HERE_PODMAN, env={**VALUES, "A.B": "1", "PATH": "/p", "LD_PRELOAD": "/l", "https_proxy": "x"})
    own = {"HOSTNAME": "p", **VALUES, "A.B": "1"}

    assert dict(found.environment) == own
    assert {f"--env={name}" for name in own} < set(found.argv)
    env_file = HERE.env / "c.podman"
    assert f"--env-file={env_file}" in found.argv
    assert found.files == {env_file: b"PATH=/p\nLD_PRELOAD=/l\nhttps_proxy=x\n"}
    assert (found.passed["PATH"], "LD_PRELOAD" in found.passed) == ("PATH", False)


DEVICES: list[tuple[Document, list[str]]] = [
    ({"nvidia.com/gpu": 1}, ["--device=nvidia.com/gpu=all"]),
    ({"amd.com/gpu": "1"}, ["--device=/dev/kfd", "--device=/dev/dri"]),
    ({"cpu": 1}, []),
]


@pytest.mark.parametrize(("limits", "expected"), DEVICES)
def test_gpus(limits: Document, expected: list[str]) -> None:
    """As devices, where the pod asks for them."""
    found = launched(HERE_PODMAN, resources={"limits": limits})

    assert [word for word in found.argv if word.startswith("--device")] == expected


@pytest.mark.parametrize(
    ("policy", "verb"), [("IfNotPresent", "pull --quiet"), ("Always", "pull"), ("Never", "may not")]
)
def test_the_image_is_pulled_into_podmans_own_storage(policy: str, verb: str) -> None:
    """One job at a time, and only if it is not there."""
    pull = launched(HERE_PODMAN, imagePullPolicy=policy).pull

    assert pull is not None
    assert pull.argv[0:2] == ["sh", "-c"]
    assert verb in pull.argv[2]
    assert pull.argv[3:] == ["sh", "{target}", "podman", "busybox:1.36"]
    assert (pull.policy, pull.max_age_s) == ("Always", 0.0)


def test_a_login_is_in_a_file_of_the_job_alone() -> None:
    """Its path is in the command line, nothing else."""
    found = launched(HERE_PODMAN, image="reg.example:5000/x", logins=[LOGIN])
    auth = HERE.env / "c.registries.json"

    assert found.pull is not None
    assert found.pull.argv[-1] == f"--authfile={auth}"
    assert list(found.files) == [auth]
    assert "s3cret" not in repr([found.argv, found.pull])


REFUSED: list[tuple[Document, Mount | None, str]] = [
    ({"image": "/images/x.sif"}, None, "Podman runs images of registries, not '/images/x.sif'"),
    ({"env": {"PATH": "/a\n/b"}}, None, "cannot pass PATH: its value has several lines"),
    ({}, Mount(Path("/s"), "/a,readonly=false"), "holds a character"),
]


@pytest.mark.parametrize(("fields", "mount", "text"), REFUSED)
def test_what_podman_cannot_run(fields: Document, mount: Mount | None, text: str) -> None:
    """With the reason."""
    with pytest.raises(Rejected, match=text):
        launched(HERE_PODMAN, *([mount] if mount else []), **fields)


def test_a_security_context_becomes_options() -> None:
    """What Podman can see to, where the pod asks for it."""
    asked = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "privileged": False}
    found = launched(HERE_PODMAN, securityContext=asked)

    assert {"--read-only", "--security-opt=no-new-privileges"} <= set(found.argv)
    assert found.enforced == ["readOnlyRootFilesystem", "allowPrivilegeEscalation"]
    assert launched(HERE_PODMAN, securityContext={"readOnlyRootFilesystem": False}).enforced == []
