"""The place without Kubernetes: `interlink pods` speaks to the server."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlink.model import statuses
from interlink.wire.messages import Change
from tools.demo import kubernetes, manifests
from tools.demo.manifests import Document
from tools.demo.places import AwayError, PodView, View

PHASES = {"succeeded": "Succeeded", "failed": "Failed", "rejected": "Failed", "running": "Running"}


class Direct:
    most_logs: int | None = 20

    def __init__(self, server: str, folder: Path) -> None:
        self._environ = {**os.environ, "INTERLINK_SERVER": server}
        self._folder = folder

    def submit(self, documents: Sequence[Document]) -> None:
        manifest = self._folder / "manifests.yaml"
        manifest.write_text(manifests.dump(documents))
        self._pods("submit", "-f", str(manifest), timeout_s=600)

    def look(self) -> View:
        return read(self._pods("list", "--output", "json"))

    def delete(self, pod: PodView) -> None:
        self._pods("delete", pod.uid, "--grace-period", "10")

    def exit_codes(self, pod: PodView) -> dict[str, int]:
        status = msgspec.json.decode(self._pods("show", pod.uid), type=Change).status
        return kubernetes.exit_codes(
            [statuses.read(raw) for raw in [*(status.init_containers or []), *(status.containers or [])]]
        )

    def log(self, pod: PodView, container: str) -> str:
        return self._pods("logs", pod.uid, container)

    def _pods(self, *arguments: str, timeout_s: float = 60) -> str:
        argv = [sys.executable, "-m", "interlink", "pods", *arguments]
        try:
            done = subprocess.run(
                argv, env=self._environ, text=True, capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise AwayError(f"interlink pods {arguments[0]}: no answer in {timeout_s} s") from error
        if done.returncode != 0:
            raise AwayError(f"interlink pods {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


def read(text: str) -> View:
    """What `interlink pods list --output json` says. Pure. A deleted pod whose job has ended is gone."""
    rows: list[dict[str, Any]] = json.loads(text)
    return View(pods=[_pod(row) for row in rows if row["state"] != "deleted"])


def _pod(row: dict[str, Any]) -> PodView:
    is_deleting = row["state"] == "deleting"
    return PodView(
        namespace=row["namespace"],
        name=row["name"],
        uid=row["uid"],
        phase="Running" if is_deleting else PHASES.get(row["state"], "Pending"),
        job_id=row["job_id"],
        is_deleting=is_deleting,
    )
