"""Names under which pods, jobs and their owners are known."""

import re
from typing import NewType

import msgspec

from interlink.model.errors import InvalidID

PodUID = NewType("PodUID", str)
JobID = NewType("JobID", str)

_POD_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")
_LABEL = re.compile(r"[0-9A-Za-z]([0-9A-Za-z._-]{0,251}[0-9A-Za-z])?")
_TAG = re.compile(r"il-(?P<cluster>[0-9A-Za-z_.]+)-(?P<uid>[0-9A-Za-z-]+)-a(?P<attempt>[0-9]+)")
DEFAULT_CLUSTER = "default"


def pod_uid(text: str) -> PodUID:
    """Check a pod UID: it becomes a file name and part of a job name. Raises InvalidID."""
    if not _POD_UID.fullmatch(text):
        raise InvalidID(f"invalid pod UID: {text[:80]!r} (metadata.uid must be 1 to 64 letters, digits or dashes)")
    return PodUID(text)


class Owner(msgspec.Struct, frozen=True, gc=False):
    """Whose pod it is: the cluster and the node (virtual kubelet). No owner sees or changes another's pods."""

    cluster: str
    node: str

    def __str__(self) -> str:
        return f"{self.cluster}/{self.node}"


def owner(cluster: str, node: str) -> Owner:
    """Raises InvalidID."""
    return Owner(cluster=cluster_name(cluster), node=_label(node, "node"))


def cluster_name(text: str) -> str:
    """A cluster's name in the form of a tag's field: without dashes. Raises InvalidID."""
    return _label(text, "cluster").replace("-", "_")


def _label(text: str, field: str) -> str:
    if not _LABEL.fullmatch(text):
        raise InvalidID(f"invalid {field} name: {text[:80]!r}")
    return text


class Tag(msgspec.Struct, frozen=True):
    """The key that a job carries at the batch system, as its job name."""

    cluster: str
    pod_uid: PodUID
    attempt: int

    def __str__(self) -> str:
        return f"il-{self.cluster}-{self.pod_uid}-a{self.attempt}"


def parse_tag(text: str) -> Tag | None:
    """The tag that a job name is, or None for a job that is not ours."""
    found = _TAG.fullmatch(text)
    if found is None:
        return None
    return Tag(cluster=found["cluster"], pod_uid=PodUID(found["uid"]), attempt=int(found["attempt"]))
