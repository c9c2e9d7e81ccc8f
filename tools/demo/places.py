"""Where the demo's pods are handed in and looked at: Kubernetes, or the server itself."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from tools.demo.manifests import Document


class AwayError(Exception):
    """It cannot be asked now; ask again."""


class PodView(msgspec.Struct, frozen=True):
    """A pod as its place shows it. `phase` is that of Kubernetes; exit codes by container, init containers included."""

    namespace: str
    name: str
    uid: str
    phase: str
    job_id: str = ""
    is_deleting: bool = False
    exit_codes: dict[str, int] = {}

    @property
    def has_ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


class View(msgspec.Struct, frozen=True):
    """All pods, and for each Job the number of pods that Kubernetes counts as succeeded once it is complete."""

    pods: list[PodView] = []
    completed_jobs: dict[str, int] = {}


class Place(Protocol):
    """Every method may raise AwayError.

    `most_logs`: how many logs of one Job are read, where each costs seconds.
    """

    most_logs: int | None

    def submit(self, documents: Sequence[Document]) -> None:
        """Returns when everything has been handed in; the pods may still have to start."""

    def look(self) -> View: ...

    def delete(self, pod: PodView) -> None:
        """Returns when the deletion has been asked."""

    def exit_codes(self, pod: PodView) -> dict[str, int]: ...

    def log(self, pod: PodView, container: str) -> str: ...
