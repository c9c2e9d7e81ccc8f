"""Pods as a virtual kubelet has them: one container, a few labels, a small environment, a volume; all alike."""

import msgspec
from msgspec import Raw

from interlink.model.ids import Owner
from interlink.model.pods import Pod
from interlink.wire.messages import PodCreateRequest

OWNER = Owner(cluster="bench", node="vk-bench")


def many(count: int, *, start: int = 0, have_jobs: bool = True) -> list[Pod]:
    """`have_jobs`: Kubernetes knows a job id for each, as after a create."""
    return [
        msgspec.json.decode(_document(number, has_job=have_jobs), type=Pod) for number in range(start, start + count)
    ]


def request(number: int) -> PodCreateRequest:
    return PodCreateRequest(pod=Raw(_document(number, has_job=False)), configmaps=[], secrets=[])


def uid(number: int) -> str:
    return f"{number:08x}-be4c-4000-8000-{number:012x}"


def _document(number: int, *, has_job: bool) -> bytes:
    annotations = {"JobID": f"job-{uid(number)}"} if has_job else {}
    container = {
        "name": "main",
        "image": "registry.example/science/simulation:2026.1",
        "command": ["python", "-m", "simulation"],
        "args": ["--events", "100000", "--seed", str(number)],
        "env": [{"name": f"OPTION_{letter}", "value": letter * 20} for letter in "ABCDEFGH"],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "resources": {"requests": {"cpu": "4", "memory": "8Gi"}},
    }
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"simulation-{number:06}",
                "namespace": "science",
                "uid": uid(number),
                "creationTimestamp": "2026-07-14T10:00:00Z",
                "labels": {"app": "simulation", "run": "42"},
                "annotations": annotations,
            },
            "spec": {
                "nodeName": OWNER.node,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 30,
                "containers": [container],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            },
            "status": {"phase": "Pending"} | ({"startTime": "2026-07-14T10:00:00Z"} if has_job else {}),
        }
    )
