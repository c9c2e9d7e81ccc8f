"""The place that the demo is about: pods go through Kubernetes, and kubectl shows them."""

from collections.abc import Sequence

import msgspec

from interlink.model.pods import ObjectMeta, Pod
from interlink.model.statuses import ContainerStatus
from interlink.testing import Cluster, KubectlError
from tools.demo import manifests
from tools.demo.manifests import Document
from tools.demo.places import AwayError, PodView, View


class Kubernetes:
    most_logs: int | None = None

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def prepare(self) -> None:
        """The namespace, ready for pods."""
        self._cluster.kubectl("create", "namespace", self._namespace)
        self._kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default", "configmap/kube-root-ca.crt")

    def submit(self, documents: Sequence[Document]) -> None:
        self._kubectl("apply", "-f", "-", stdin=manifests.dump(documents))

    def look(self) -> View:
        """What the API server says, untouched: to decode it all costs kubectl a second for 200 pods."""
        pods = self._kubectl("get", "--raw", f"/api/v1/namespaces/{self._namespace}/pods")
        jobs = self._kubectl("get", "--raw", f"/apis/batch/v1/namespaces/{self._namespace}/jobs")
        return read(pods, jobs)

    def delete(self, pod: PodView) -> None:
        self._kubectl("delete", "pod", pod.name, "--wait=false")

    def exit_codes(self, pod: PodView) -> dict[str, int]:
        return pod.exit_codes

    def log(self, pod: PodView, container: str) -> str:
        return self._kubectl("logs", pod.name, "-c", container)

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        try:
            return self._cluster.kubectl("-n", self._namespace, *arguments, input=stdin)
        except KubectlError as error:
            raise AwayError(str(error)) from error


class _PodList(msgspec.Struct, frozen=True):
    items: list[Pod]


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _JobStatus(msgspec.Struct, frozen=True):
    succeeded: int = 0
    conditions: list[_Condition] = []


class _Job(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: _JobStatus

    @property
    def is_complete(self) -> bool:
        return _Condition("Complete", "True") in self.status.conditions


class _JobList(msgspec.Struct, frozen=True):
    items: list[_Job]


def read(pods: str, jobs: str) -> View:
    """The API server's lists of pods and jobs. Pure."""
    found = msgspec.json.decode(jobs, type=_JobList).items
    return View(
        pods=[_pod(pod) for pod in msgspec.json.decode(pods, type=_PodList).items],
        completed_jobs={job.metadata.name: job.status.succeeded for job in found if job.is_complete},
    )


def _pod(pod: Pod) -> PodView:
    containers = [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]
    return PodView(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.uid,
        phase=pod.status.phase,
        job_id=pod.job_id or "",
        is_deleting=pod.is_deleting,
        exit_codes=exit_codes(containers),
    )


def exit_codes(containers: Sequence[ContainerStatus]) -> dict[str, int]:
    return {status.name: status.terminated.exit_code for status in containers if status.terminated}
