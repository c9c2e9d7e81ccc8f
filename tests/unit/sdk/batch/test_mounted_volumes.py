"""A pod's volumes as files and directories of the host."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlink.model.pods import Volume
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.volumes import MountedVolume, Volumes
from interlink.sdk.errors import Rejected
from interlink.wire.messages import RetrievedContainer, RetrievedPodData
from tests.unit.builders import Document

HERE = JobDirectory(Path("/jobs/uid-1"))


def encoded(values: Mapping[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in values.items()}


def raw(name: str, **fields: Any) -> Raw:
    return Raw(msgspec.json.encode({"metadata": {"name": name}, **fields}))


DATA = RetrievedContainer(
    name="c",
    config_maps=[raw("cm", data={"a": "text", "ü": "é\n"}, binaryData=encoded({"bin": b"\xff\x00"})), raw("bare")],
    secrets=[raw("s", data=encoded({"k": b"secret\x80"})), raw("bad", data={"k": "%%%"})],
    projected_volume_maps=[raw("v", data={"token": "t"}, binaryData=encoded({"raw": b"\x80"}))],
)


def mounted(**source: Any) -> MountedVolume:
    data = Volumes(RetrievedPodData(pod=Raw(b"{}"), container=[RetrievedContainer(name="i"), DATA]))
    return data.mounted(msgspec.convert({"name": "v", **source}, Volume), HERE)


def files(found: MountedVolume) -> dict[str, bytes]:
    return {str(file.path.relative_to(found.source)): file.content for file in found.files}


def modes(found: MountedVolume) -> dict[str, str]:
    return {str(file.path.relative_to(found.source)): oct(file.mode) for file in found.files}


def item(key: str, path: str, **more: int) -> Document:
    return {"key": key, "path": path, **more}


CONTENTS = [
    ({"configMap": {"name": "cm"}}, "config", {"a": b"text", "ü": "é\n".encode(), "bin": b"\xff\x00"}),
    ({"configMap": {"name": "bare"}}, "config", {}),
    ({"secret": {"secretName": "s"}}, "secret", {"k": b"secret\x80"}),
    ({"projected": {"sources": [{}]}}, "secret", {"token": b"t", "raw": b"\x80"}),
]


@pytest.mark.parametrize(("source", "kind", "expected"), CONTENTS)
def test_the_files_of_a_volume(source: Document, kind: str, expected: dict[str, bytes]) -> None:
    """One for each key, byte by byte, read-only; what may be secret lies where it is removed with the job."""
    found = mounted(**source)

    assert (files(found), found.is_read_only) == (expected, True)
    assert found.source == HERE.volume(kind, "v")
    assert found.directories == [found.source]


def test_an_empty_directory_is_writable() -> None:
    """It lies in the job's directory, each volume its own."""
    found = mounted(emptyDir={})

    assert found == MountedVolume(source=HERE.volume("empty", "v"), directories=[HERE.volume("empty", "v")])


def test_an_empty_directory_in_memory() -> None:
    """It is made on the machine where the job runs, for as long as that runs; a limit of its own is not watched."""
    found = mounted(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"})

    path = Path("/dev/shm/interlink-uid-1/v")
    note = "the sizeLimit of volume 'v' is not watched"
    assert found == MountedVolume(source=path, directories=[path], note=note)


def test_an_empty_directory_of_another_medium_is_refused() -> None:
    """Huge pages for instance: a directory on a disk would be something else."""
    with pytest.raises(Rejected, match="the medium 'HugePages' is not to be had here"):
        mounted(emptyDir={"medium": "HugePages"})


def test_a_path_of_the_host_is_itself() -> None:
    """Nothing is made for it."""
    assert mounted(hostPath={"path": "/data"}) == MountedVolume(source=Path("/data"))


# --- items and modes -------------------------------------------------------------------------------------------------


def test_items_choose_keys_and_paths() -> None:
    """The others are not there."""
    assert files(mounted(configMap={"name": "cm", "items": [item("a", "dir/x"), item("bin", "y")]})) == {
        "dir/x": b"text", "y": b"\xff\x00"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("default", "of_item", "expected"),
    [(None, None, "0o644"), (0o600, None, "0o600"), (0o600, 0o444, "0o444"), (None, 0o755, "0o755"), (0, None, "0o0")],
)
def test_the_mode_of_a_file(default: int | None, of_item: int | None, expected: str) -> None:
    """The item's own, else the volume's, else 0644."""
    more = {} if of_item is None else {"mode": of_item}
    found = mounted(secret={"secretName": "s", "defaultMode": default, "items": [item("k", "f", **more)]})

    assert modes(found) == {"f": expected}


def test_a_mode_may_be_zero() -> None:
    """A file that nobody may read is as it was asked."""
    assert modes(mounted(secret={"secretName": "s", "items": [item("k", "f", mode=0)]})) == {"f": "0o0"}


def test_the_files_of_a_projected_volume_have_its_mode() -> None:
    """For all its sources."""
    assert set(modes(mounted(projected={"sources": [], "defaultMode": 0o400})).values()) == {"0o400"}


HOSTILE = ["../x", "a/../../x", "/etc/passwd", "..", "", ".", "a/.."]


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("kind", ["configMap", "secret"])
def test_a_path_out_of_the_volume_is_refused(kind: str, path: str) -> None:
    """Whatever a pod asks, its files stay inside their volume."""
    source = {"name": "cm", "items": [item("a", path)]} if kind == "configMap" else {
        "secretName": "s", "items": [item("k", path)]
    }  # fmt: skip

    with pytest.raises(Rejected, match=r"volume 'v': the path .* must be relative"):
        mounted(**{kind: source})


@pytest.mark.parametrize("key", ["../x", "/etc/passwd"])
def test_a_key_that_leads_out_of_the_volume_is_refused(key: str) -> None:
    """Kubernetes has no such keys; what comes by another way may."""
    hostile = RetrievedContainer(name="c", config_maps=[raw("evil", data={key: ""})])
    volumes = Volumes(RetrievedPodData(pod=Raw(b"{}"), container=[hostile]))

    with pytest.raises(Rejected, match="must be relative"):
        volumes.mounted(msgspec.convert({"name": "v", "configMap": {"name": "evil"}}, Volume), HERE)


# --- missing and unknown ---------------------------------------------------------------------------------------------

OPTIONAL = [
    {"configMap": {"name": "no", "optional": True}},
    {"secret": {"secretName": "no", "optional": True}},
    {"configMap": {"name": "cm", "optional": True, "items": [item("no", "f")]}},
]


@pytest.mark.parametrize("source", OPTIONAL)
def test_an_optional_volume_may_be_empty(source: Document) -> None:
    """Its directory is there."""
    found = mounted(**source)

    assert (found.files, found.directories) == ([], [found.source])


REFUSED = [
    ({"configMap": {"name": "no"}}, "volume 'v': the ConfigMap 'no' did not come with the pod"),
    ({"secret": {"secretName": "no"}}, "volume 'v': the Secret 'no' did not come"),
    ({"secret": {"secretName": "s", "items": [item("no", "f")]}}, "volume 'v': the Secret 's' has no key 'no'"),
    ({"secret": {"secretName": "bad"}}, "bad.*'k'.* is not valid base64"),
    (
        {"persistentVolumeClaim": {"claimName": "p"}},
        "volume 'v' is of a kind that this site cannot mount; use configMap",
    ),
    ({"nfs": {"server": "h", "path": "/"}}, "of a kind that this site cannot mount"),
    ({"csi": {}}, "of a kind"),
    ({}, "of a kind"),
]


@pytest.mark.parametrize(("source", "text"), REFUSED)
def test_a_volume_that_cannot_be_had_is_refused(source: Document, text: str) -> None:
    """With its name and what is wrong, for that becomes the pod's message."""
    with pytest.raises(Rejected, match=text):
        mounted(**source)


def test_a_projected_volume_that_did_not_come_is_refused() -> None:
    """It is never taken for an empty one."""
    volumes = Volumes(RetrievedPodData(pod=Raw(b"{}"), container=None))

    with pytest.raises(Rejected, match="the projected data 'v' did not come"):
        volumes.mounted(msgspec.convert({"name": "v", "projected": {"sources": []}}, Volume), HERE)


def test_the_files_of_a_projected_volume_have_their_own_modes() -> None:
    """They come put together; the pod says which mode each was to have."""
    sources = [
        {"configMap": {"name": "cm", "items": [item("k", "raw", mode=0o400)]}},
        {"serviceAccountToken": {"path": "token"}},
    ]

    found = modes(mounted(projected={"defaultMode": 0o640, "sources": sources}))

    assert found == {"raw": "0o400", "token": "0o640"}
