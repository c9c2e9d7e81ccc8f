"""What a container is promised, whatever runtime starts it; each runtime for real."""

import base64
import hashlib
import json

import pytest
from msgspec import Raw

from interlink.testing.waiting import until, until_async
from interlink.wire.messages import RetrievedContainer
from tests.support.runtimes import Document, RuntimeBench
from tests.unit.sdk.runtimes.launching import VALUES

pytestmark = pytest.mark.asyncio

SHARED: Document = {"volumes": [{"name": "v", "emptyDir": {}}]}


def mounting(path: str = "/data", **more: object) -> Document:
    return {"volumeMounts": [{"name": "v", "mountPath": path, **more}]}


def as_env(values: dict[str, str]) -> Document:
    return {"env": [{"name": name, "value": value} for name, value in values.items()]}


async def test_the_program_runs_in_the_image(bench: RuntimeBench) -> None:
    """Its files are the image's, its exit code is its own."""
    uid = await bench.start("cat /etc/of-the-image; ls -d /home/*; exit 42")

    assert await bench.ended(uid) == {"c0": 42}
    assert (await bench.logs(uid)).startswith("busybox\n")


async def test_environment_values_t18(bench: RuntimeBench) -> None:
    """Byte for byte, lines and names of importance included; of the host's own nothing that matters."""
    values = VALUES | {"LINES": "a\nb\n", "PATH": "/bin:/weird", "HOME": "/nowhere", "TMPDIR": "/t", "USER": "u"}
    values |= {"LANG": "xx", "LD_PRELOAD": "/no/such.so"}
    container = bench.container("c0", "", **as_env(values)) | {"command": ["/bin/env", "-0"]}
    printed = await bench.run(containers=[container])

    found = dict(item.split("=", 1) for item in printed.split("\0") if item)
    assert {name: found.get(name) for name in values} == values
    assert not [name for name in found if name.startswith(("SLURM", "PYTEST", "LC_", "VIRTUAL_ENV"))]
    assert found["HOSTNAME"] == "p"


async def test_arguments_are_words(bench: RuntimeBench) -> None:
    """No shell comes near them."""
    words = ["a b", "$HOME", "", "it's", '"', "\\", "*", "é"]
    container = bench.container("c0", "") | {"command": ["/bin/printf", "%s\\n"], "args": words}

    assert (await bench.run(containers=[container])).split("\n") == [*words, ""]


async def test_containers_share_a_volume_t07(bench: RuntimeBench) -> None:
    """They run at the same time; each ends with its own code."""
    main = bench.container("main", "echo x > /data/done; exit 3", **mounting())
    wait = bench.container("wait", "until [ -e /data/done ]; do sleep 0.1; done", **mounting())
    uid = await bench.start(containers=[main, wait], **SHARED)

    assert await bench.ended(uid) == {"main": 3, "wait": 0}


async def test_init_containers_t08(bench: RuntimeBench) -> None:
    """In their order; what comes after a failed one never starts."""
    init = [
        bench.container("i1", "echo 1 > /data/1", **mounting()),
        bench.container("i2", "ls /data/1; exit 7", **mounting()),
    ]
    uid = await bench.start(
        initContainers=init, containers=[bench.container("c0", "echo never", **mounting())], **SHARED
    )

    async def has_failed() -> bool:
        found = await bench.statuses(uid)
        return "i2" in found and found["i2"].terminated is not None

    assert await until_async(has_failed, deadline_s=20)
    statuses = await bench.statuses(uid)
    ended = statuses["i2"].terminated
    assert ended is not None
    assert ended.exit_code == 7
    assert statuses["c0"].waiting is not None


BINARY = bytes(range(256))
TEXT = "-----BEGIN-----\n" + "line\n" * 20
DATA = RetrievedContainer(
    name="c0",
    config_maps=[
        Raw(json.dumps({
            "metadata": {"name": "cm"},
            "data": {"pem": TEXT, "no-newline": "x", "a.conf": ""},
            "binaryData": {"bin": base64.b64encode(BINARY).decode()},
        }).encode())
    ],
    secrets=[
        Raw(json.dumps({"metadata": {"name": "s"}, "data": {"k": "c2VjcmV0", "l": "AA=="}}).encode())
    ],
)  # fmt: skip


async def test_file_contents_t16(bench: RuntimeBench) -> None:
    """Every byte, modes, one file by subPath; at places that the image has not, and behind a link of the image."""
    volumes = [
        {"name": "cm", "configMap": {"name": "cm"}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
    ]
    mounts = [
        {"name": "cm", "mountPath": "/no/such/place"},
        {"name": "cm", "mountPath": "/etc/one.conf", "subPath": "pem"},
        {"name": "s", "mountPath": "/var/run/secrets/s"},
    ]
    script = (
        "sha256sum /no/such/place/* /etc/one.conf; cat /run/secrets/s/k; echo; stat -L -c %a /var/run/secrets/s/k;"
        " touch /no/such/place/new 2>/dev/null || echo read-only"
    )
    container = bench.container("c0", script, volumeMounts=mounts)
    lines = (await bench.run(containers=[container], volumes=volumes, data=DATA)).splitlines()

    sums = {path: digest for digest, path in (line.split() for line in lines[:5])}
    expected = {"a.conf": b"", "bin": BINARY, "no-newline": b"x", "pem": TEXT.encode()}
    for name, content in expected.items():
        assert sums[f"/no/such/place/{name}"] == hashlib.sha256(content).hexdigest()
    assert sums["/etc/one.conf"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert lines[5:] == ["secret", "400", "read-only"]


async def test_volumes_at_special_places(bench: RuntimeBench) -> None:
    """Memory at /dev/shm, a directory at /tmp and below it; one written, one read only."""
    volumes = [{"name": "m", "emptyDir": {"medium": "Memory"}}, {"name": "v", "emptyDir": {}}]
    mounts = [
        {"name": "m", "mountPath": "/dev/shm"},
        {"name": "v", "mountPath": "/tmp/deep"},
        {"name": "v", "mountPath": "/ro", "readOnly": True},
    ]
    script = (
        "stat -f -c %T /dev/shm; echo x > /dev/shm/f; echo y > /tmp/deep/f; cat /ro/f; echo z > /tmp/own;"
        " touch /ro/g 2>/dev/null || echo no"
    )
    container = bench.container("c0", script, volumeMounts=mounts)
    printed = await bench.run(containers=[container], volumes=volumes)

    assert printed.split()[:2] == ["tmpfs", "y"]
    assert printed.endswith("no\n")


async def test_what_holds_of_a_security_context(bench: RuntimeBench) -> None:
    """The image is read-only and no program gains privileges: what is not named as not enforced is so."""
    printed = await bench.run("touch /new 2> /dev/null || echo read-only; grep NoNewPrivs /proc/self/status")

    assert printed.split() == ["read-only", "NoNewPrivs:", "1"]


async def test_the_working_directory(bench: RuntimeBench) -> None:
    """Of the image, or in a volume."""
    for path, expected in (("/etc", "/etc"), ("/data/w", "/data/w")):
        container = bench.container("c0", "pwd", workingDir=path, **mounting("/data/w"))
        assert (await bench.run(containers=[container], **SHARED)).strip() == expected


async def test_a_termination_message_of_its_own_path(bench: RuntimeBench) -> None:
    container = bench.container("c0", "echo bye > /tmp/end; exit 1", terminationMessagePath="/tmp/end")
    uid = await bench.start(containers=[container])
    await bench.ended(uid)

    ended = (await bench.statuses(uid))["c0"].terminated
    assert ended is not None
    assert ended.message == "bye\n"


async def test_probes_and_hooks_run_in_the_container(bench: RuntimeBench) -> None:
    """They see its image, its /tmp, its volumes and its environment."""
    check = "test -e /etc/of-the-image && test -e /tmp/up && test -e /data/up && test $WORD = yes"
    probe = {"exec": {"command": ["/bin/sh", "-c", check]}, "periodSeconds": 1, "timeoutSeconds": 5}
    hook = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "echo hook > /tmp/order"]}}}
    script = "trap 'cat /tmp/order; exit 0' TERM; touch /tmp/up /data/up; while :; do sleep 0.1; done"
    container = bench.container(
        "c0", script, readinessProbe=probe, lifecycle=hook, **mounting(), **as_env({"WORD": "yes"})
    )
    uid = await bench.start(containers=[container], **SHARED)

    async def is_ready() -> bool:
        found = await bench.statuses(uid)
        return "c0" in found and bool(found["c0"].ready)

    assert await until_async(is_ready, deadline_s=20), await bench.statuses(uid)
    await bench.delete(uid)
    assert await bench.ended(uid) == {"c0": 0}
    assert await bench.logs(uid) == "hook\n"


async def test_a_graceful_end_t21(bench: RuntimeBench) -> None:
    """TERM reaches the program, once; nothing is left on the machine."""
    uid = await bench.start("trap 'echo bye; sleep 1; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    await bench.until(uid, "up")
    await bench.delete(uid, grace_s=30)

    assert await bench.ended(uid) == {"c0": 0}
    assert await bench.logs(uid) == "up\nbye\n"
    assert until(lambda: not (bench.directory(uid) / "env").exists(), deadline_s=5)


async def test_a_program_that_ignores_term_is_killed(bench: RuntimeBench) -> None:
    """At the end of its grace period, with all that it has started."""
    uid = await bench.start("trap '' TERM; echo up; sleep 12345 & while :; do sleep 0.1; done")
    await bench.until(uid, "up")
    await bench.delete(uid, grace_s=1)

    assert await bench.ended(uid) == {"c0": 137}


async def test_an_image_that_is_not_there(bench: RuntimeBench) -> None:
    """The container fails; the reason is in its log or in its message."""
    uid = await bench.start(containers=[bench.container("c0", "true", image="/no/such/image")])

    codes = await bench.ended(uid)
    assert codes["c0"] != 0
    assert "/no/such/image" in await bench.logs(uid)
