"""Pods of a test: made, looked at and waited for with kubectl; every payload leaves a line in a ledger."""

import collections
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from interlink.testing import Cluster
from interlink.testing.waiting import until

Document = dict[str, Any]
WITHIN_S = 60


class Pods:
    def __init__(self, cluster: Cluster, namespace: str, node_name: str, *, ledger: Path) -> None:
        self._cluster = cluster
        self._node_name = node_name
        self.namespace = namespace
        self.ledger = ledger
        self._followers: list[subprocess.Popen[str]] = []

    def kubectl(self, *arguments: str, input: str | None = None, timeout_s: float = 60) -> str:  # noqa: A002
        return self._cluster.kubectl("-n", self.namespace, *arguments, input=input, timeout_s=timeout_s)

    def spec(self, *scripts: str, **extra: Any) -> Document:
        """A pod spec with one container a script: c0, c1, … bound to the test's node."""
        return {
            "nodeName": self._node_name,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [self.container(f"c{number}", script) for number, script in enumerate(scripts)],
            **extra,
        }

    def container(self, name: str, script: str, **extra: Any) -> Document:
        """A shell script that first leaves its line in the ledger."""
        line = f'echo "$POD_UID {name}" >> {self.ledger}; {script}'
        uid = {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}
        env = [uid, *extra.pop("env", [])]
        return {"name": name, "image": "none", "command": ["sh", "-c", line], "env": env, **extra}

    def apply(self, *documents: Document) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("create", "-f", "-", input=json.dumps(items))

    def pod(self, name: str, *scripts: str, annotations: Document | None = None, **extra: Any) -> Document:
        metadata = {"name": name, "annotations": annotations or {}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.spec(*scripts, **extra)}

    def start(self, name: str, *scripts: str, **extra: Any) -> None:
        self.apply(self.pod(name, *scripts, **extra))

    def start_many(self, count: int, script: str, **extra: Any) -> None:
        self.apply(*(self.pod(f"p{number}", script, **extra) for number in range(count)))

    def get(self, name: str) -> Document:
        document: Document = json.loads(self.kubectl("get", "pod", name, "-o", "json"))
        return document

    def state(self, name: str) -> Document:
        """The state of the pod's first container: `waiting`, `running` or `terminated`, or nothing."""
        statuses = self.get(name)["status"].get("containerStatuses") or [{}]
        state: Document = statuses[0].get("state", {})
        return state

    def wait_reason(self, name: str, reason: str) -> str:
        """Wait until the first container waits for a reason that begins so; the message then."""

        def waits() -> bool:
            return str(self.state(name).get("waiting", {}).get("reason", "")).startswith(reason)

        self.wait_until(waits, f"{name} waits: {reason}")
        return str(self.state(name).get("waiting", {}).get("message", ""))

    def uid(self, name: str) -> str:
        return str(self.get(name)["metadata"]["uid"])

    def all(self) -> list[Document]:
        items: list[Document] = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        return items

    def phases(self) -> collections.Counter[str]:
        return collections.Counter(pod["status"]["phase"] for pod in self.all())

    def job_ids(self) -> dict[str, str | None]:
        return {p["metadata"]["uid"]: p["metadata"].get("annotations", {}).get("JobID") for p in self.all()}

    def wait_job_id(self, name: str) -> str:
        """The id of the pod's job, once there is one."""
        self.wait_until(lambda: self._job_id(name) is not None, f"{name} has a job")
        return str(self._job_id(name))

    def _job_id(self, name: str) -> str | None:
        annotations: dict[str, str] = self.get(name)["metadata"].get("annotations", {})
        return annotations.get("JobID")

    def wait(self, name: str, phase: str, *, deadline_s: float = WITHIN_S) -> Document:
        """The pod, once it is in the phase; fails the test with what it is instead."""
        self.wait_until(lambda: self.get(name)["status"]["phase"] == phase, f"{name} is {phase}", deadline_s=deadline_s)
        return self.get(name)

    def wait_all(self, phase: str, count: int, *, deadline_s: float = WITHIN_S) -> None:
        self.wait_until(lambda: self.phases()[phase] == count, f"{count} pods are {phase}", deadline_s=deadline_s)

    def wait_gone(self, *names: str, deadline_s: float = WITHIN_S) -> None:
        def are_gone() -> bool:
            return not {pod["metadata"]["name"] for pod in self.all()} & set(names)

        self.wait_until(are_gone, f"{names} are gone", deadline_s=deadline_s)

    def wait_until(self, check: Callable[[], bool], what: str, *, deadline_s: float = WITHIN_S) -> None:
        assert until(check, deadline_s=deadline_s, interval_s=0.4), (
            f"not within {deadline_s} s: {what}\n{self._state()}"
        )

    def starts(self) -> collections.Counter[str]:
        """How often each payload of each pod has started, by `<podUID> <container>`."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return collections.Counter(lines)

    def assert_started_once(self, count: int) -> None:
        starts = self.starts()
        assert {payload: n for payload, n in starts.items() if n != 1} == {}, "payloads that started more than once"
        assert len(starts) == count

    def follow_log(self, name: str) -> IO[str]:
        """The output of `kubectl logs -f`, as it comes; it ends with the log."""
        argv = ["kubectl", f"--kubeconfig={self._cluster.kubeconfig}", "-n", self.namespace, "logs", "-f", name]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert process.stdout is not None
        self._followers.append(process)
        return process.stdout

    def close(self) -> None:
        for process in self._followers:
            process.kill()
            process.communicate()

    def _state(self) -> str:
        return self.kubectl("get", "pods", "-o", "wide") + self.kubectl("get", "events")


def once_there(gate: Path, script: str) -> str:
    """A script that runs when a file is there."""
    return f"until [ -e {gate} ]; do sleep 0.1; done; {script}"


def exit_codes(statuses: Sequence[Document]) -> dict[str, int | None]:
    """By container; None for one that has not ended."""
    return {s["name"]: s["state"].get("terminated", {}).get("exitCode") for s in statuses}
