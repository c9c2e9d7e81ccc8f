"""What we read of a Kubernetes pod. Everything else travels as the opaque JSON it came in.

Field names follow the Kubernetes API; a `null` list reads as an empty one.
"""

from collections.abc import Collection
from datetime import datetime
from ipaddress import ip_address
from typing import Any

import msgspec

from interlink.model.statuses import PodStatus

Labels = dict[str, str]


class _Slim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A part of a Kubernetes object: unknown fields are ignored when read and absent when written."""


class OwnerReference(_Slim, frozen=True):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(_Slim, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class KeySelector(_Slim, frozen=True):
    """configMapKeyRef and secretKeyRef."""

    key: str
    name: str = ""
    optional: bool | None = None


class FieldSelector(_Slim, frozen=True):
    field_path: str
    api_version: str | None = None


class ResourceFieldSelector(_Slim, frozen=True):
    resource: str
    container_name: str | None = None
    divisor: str | int | None = None


class EnvVarSource(_Slim, frozen=True):
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    file_key_ref: dict[str, Any] | None = None


class EnvVar(_Slim, frozen=True):
    name: str
    value: str | None = None
    value_from: EnvVarSource | None = None


class ObjectReference(_Slim, frozen=True):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(_Slim, frozen=True):
    prefix: str = ""
    config_map_ref: ObjectReference | None = None
    secret_ref: ObjectReference | None = None


class VolumeMount(_Slim, frozen=True):
    name: str
    mount_path: str
    sub_path: str | None = None
    sub_path_expr: str | None = None
    read_only: bool | None = None


class ResourceRequirements(_Slim, frozen=True):
    """Amounts as Kubernetes quantities, which may come as numbers."""

    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class ContainerPort(_Slim, frozen=True):
    container_port: int
    name: str | None = None


class Container(_Slim, frozen=True):
    name: str
    image: str = ""
    image_pull_policy: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    working_dir: str | None = None
    env: list[EnvVar] | None = None
    env_from: list[EnvFromSource] | None = None
    volume_mounts: list[VolumeMount] | None = None
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: list[dict[str, Any]] | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    startup_probe: dict[str, Any] | None = None
    readiness_probe: dict[str, Any] | None = None
    liveness_probe: dict[str, Any] | None = None
    lifecycle: dict[str, Any] | None = None
    ports: list[ContainerPort] | None = None
    security_context: dict[str, Any] | None = None

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"


class KeyToPath(_Slim, frozen=True):
    key: str
    path: str
    mode: int | None = None


class ConfigMapVolumeSource(_Slim, frozen=True):
    name: str = ""
    items: list[KeyToPath] | None = None
    default_mode: int | None = None
    optional: bool | None = None


class SecretVolumeSource(_Slim, frozen=True):
    secret_name: str = ""
    items: list[KeyToPath] | None = None
    default_mode: int | None = None
    optional: bool | None = None


class EmptyDirVolumeSource(_Slim, frozen=True):
    medium: str | None = None
    size_limit: str | None = None


class HostPathVolumeSource(_Slim, frozen=True):
    path: str
    type: str | None = None


class DownwardAPIFile(_Slim, frozen=True):
    path: str
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: int | None = None


class DownwardAPIVolumeSource(_Slim, frozen=True):
    items: list[DownwardAPIFile] | None = None
    default_mode: int | None = None


class ServiceAccountTokenProjection(_Slim, frozen=True):
    path: str
    audience: str | None = None
    expiration_seconds: int | None = None


class ObjectProjection(_Slim, frozen=True):
    """configMap and secret in a projected volume."""

    name: str = ""
    items: list[KeyToPath] | None = None
    optional: bool | None = None


class VolumeProjection(_Slim, frozen=True):
    """Exactly one is set; all None means a kind that we do not know."""

    config_map: ObjectProjection | None = None
    secret: ObjectProjection | None = None
    downward_api: DownwardAPIVolumeSource | None = msgspec.field(name="downwardAPI", default=None)
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(_Slim, frozen=True):
    sources: list[VolumeProjection] | None = None
    default_mode: int | None = None


class Volume(_Slim, frozen=True):
    """Exactly one source is set; all None means a kind that we do not know."""

    name: str
    config_map: ConfigMapVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = msgspec.field(name="downwardAPI", default=None)


class ReadinessGate(_Slim, frozen=True):
    condition_type: str


class PodOS(_Slim, frozen=True):
    name: str = ""


class PodSpec(_Slim, frozen=True):
    node_name: str = ""
    os: PodOS | None = None
    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(name="hostPID", default=None)
    host_ipc: bool | None = msgspec.field(name="hostIPC", default=None)
    restart_policy: str = "Always"
    service_account_name: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    automount_service_account_token: bool | None = None
    enable_service_links: bool | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    readiness_gates: list[ReadinessGate] | None = None
    security_context: dict[str, Any] | None = None
    image_pull_secrets: list[ObjectReference] | None = None

    @property
    def run_as_user(self) -> int | None:
        wish = (self.security_context or {}).get("runAsUser")
        return wish if type(wish) is int else None


class Pod(_Slim, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def full_name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def job_id(self) -> str | None:
        return (self.metadata.annotations or {}).get(JOB_ID_ANNOTATION) or None

    @property
    def own_job_id(self) -> str | None:
        """The job id that was written for this very pod: together with a status, which a new pod has not whatever its
        manifest says. An existing virtual kubelet writes no start time, but container statuses."""
        status = self.status
        is_new = not (status.start_time or status.container_statuses) and status.phase in ("", "Pending")
        return None if is_new else self.job_id

    @property
    def wanted_ip(self) -> str | None:
        """The address that the pod asks to be known by; None when it asks for none, or for what is no address."""
        wanted = (self.metadata.annotations or {}).get("interlink.eu/pod-ip", "").strip()
        try:
            return str(ip_address(wanted))
        except ValueError:
            return None

    @property
    def is_mirror(self) -> bool:
        """It shows a static pod of another kubelet, and nobody may act on it."""
        return _MIRROR_ANNOTATION in (self.metadata.annotations or {})

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def grace_s(self) -> int:
        """Seconds between TERM and KILL: what the deletion asked for, else what the pod asks for, else 30."""
        for seconds in (self.metadata.deletion_grace_period_seconds, self.spec.termination_grace_period_seconds):
            if seconds is not None:
                return min(max(0, seconds), _LONGEST_GRACE_S)
        return 30


JOB_ID_ANNOTATION = "JobID"
_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_KEPT_BACK_ANNOTATIONS = (
    "interlink.eu/disable-offload-containers",
    "interlink.eu/disable-offload-init-containers",
)
_LONGEST_GRACE_S = 2**31 - 1


class Seen(msgspec.Struct, frozen=True):
    """A pod as it came: what we read of it, and the whole object."""

    pod: Pod
    raw: bytes


def seen(data: bytes) -> Seen:
    """Raises msgspec.MsgspecError for what is no pod."""
    return Seen(pod=msgspec.json.decode(data, type=Pod), raw=data)


def kept_back(pod: Pod) -> frozenset[str]:
    """The containers that the pod's annotations exclude from its job."""
    annotations = pod.metadata.annotations or {}
    lists = (annotations.get(key, "") for key in _KEPT_BACK_ANNOTATIONS)
    return frozenset(name.strip() for names in lists for name in names.split(",") if name.strip())


def offloaded(pod: Pod) -> Pod:
    """The pod as its job knows it: without the containers that are kept back."""
    names = kept_back(pod)
    if not names:
        return pod

    def without(containers: list[Container] | None) -> list[Container]:
        return [container for container in containers or [] if container.name not in names]

    spec = msgspec.structs.replace(
        pod.spec, containers=without(pod.spec.containers), init_containers=without(pod.spec.init_containers)
    )
    return msgspec.structs.replace(pod, spec=spec)


def without_probes(pod: Pod) -> Pod:
    """For a site that does not look into running containers: they are ready when they run."""

    def bare(containers: list[Container] | None) -> list[Container] | None:
        none = {"startup_probe": None, "readiness_probe": None, "liveness_probe": None}
        return [msgspec.structs.replace(c, **none) for c in containers or []] or None

    spec = msgspec.structs.replace(
        pod.spec, containers=bare(pod.spec.containers), init_containers=bare(pod.spec.init_containers)
    )
    return msgspec.structs.replace(pod, spec=spec)


def data_volumes(pod: Pod) -> list[str]:
    """The volumes that hold data which comes with the pod, or none yet: not those that are the machine's."""
    return [
        volume.name
        for volume in pod.spec.volumes or []
        if any((volume.config_map, volume.secret, volume.projected, volume.downward_api, volume.empty_dir))
    ]


def without_volumes(pod: Pod, names: Collection[str]) -> Pod:
    """And without what containers mount of them."""

    def bare(containers: list[Container] | None) -> list[Container]:
        return [
            msgspec.structs.replace(c, volume_mounts=[m for m in c.volume_mounts or [] if m.name not in names])
            for c in containers or []
        ]

    spec = msgspec.structs.replace(
        pod.spec,
        volumes=[volume for volume in pod.spec.volumes or [] if volume.name not in names],
        containers=bare(pod.spec.containers),
        init_containers=bare(pod.spec.init_containers),
    )
    return msgspec.structs.replace(pod, spec=spec)


def skeleton(pod: Pod) -> Pod:
    """What suffices to ask any plugin for a pod's status and logs: names, images, no environment, no commands."""

    def bare(containers: list[Container] | None) -> list[Container] | None:
        return [
            Container(name=c.name, image=c.image, restart_policy=c.restart_policy) for c in containers or []
        ] or None

    kept = {key: value for key, value in (pod.metadata.annotations or {}).items() if key == JOB_ID_ANNOTATION}
    return Pod(
        metadata=ObjectMeta(
            name=pod.metadata.name,
            namespace=pod.metadata.namespace,
            uid=pod.metadata.uid,
            annotations=kept or None,
            creation_timestamp=pod.metadata.creation_timestamp,
            deletion_timestamp=pod.metadata.deletion_timestamp,
            deletion_grace_period_seconds=pod.metadata.deletion_grace_period_seconds,
        ),
        spec=PodSpec(
            node_name=pod.spec.node_name,
            restart_policy=pod.spec.restart_policy,
            termination_grace_period_seconds=pod.spec.termination_grace_period_seconds,
            containers=bare(pod.spec.containers),
            init_containers=bare(pod.spec.init_containers),
        ),
        status=PodStatus(phase=pod.status.phase),
    )
