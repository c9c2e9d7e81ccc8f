"""Every message between virtual kubelet, server and plugin.

The first part is the existing wire contract, with its field names as they are; receivers take `null` for every list.
The second part is our own dialect: additions under `/interlink/v1/` and the optional member `interlink`, which
the existing programs ignore.
"""

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from interlink.model.ids import Owner
from interlink.model.pods import Pod
from interlink.model.statuses import Remark

# --- the existing contract -------------------------------------------------------------------------------------------


class _Wire(msgspec.Struct, frozen=True, gc=False):
    pass


class Origin(_Wire, frozen=True):
    """Ours: who asks for a job and under which attempt; together with the pod UID it makes the job's tag."""

    cluster: str = ""
    node: str = ""
    attempt: int = 0


class PodCreateRequest(_Wire, frozen=True):
    """Virtual kubelet -> server. `pod` has its environment resolved; the lists hold what its volumes refer to.

    `imagePullSecrets` is ours: the Secrets that the pod names for its registries, left out where it names none.
    """

    pod: Raw
    configmaps: list[Raw] | None = None
    secrets: list[Raw] | None = None
    projectedvolumesmaps: list[Raw] | None = None
    jobscript_url: str = msgspec.field(name="jobscriptURL", default="")
    pull_secrets: list[Raw] | UnsetType = msgspec.field(name="imagePullSecrets", default=UNSET)


class RetrievedContainer(_Wire, frozen=True):
    """What one container mounts."""

    name: str
    config_maps: list[Raw] | None = msgspec.field(name="configMaps", default=None)
    projected_volume_maps: list[Raw] | None = msgspec.field(name="projectedvolumemaps", default=None)
    secrets: list[Raw] | None = None
    empty_dirs: list[str] | None = msgspec.field(name="emptyDirs", default=None)


class SingularityHubProxy(_Wire, frozen=True):
    server: str = ""
    master_token: str = ""
    cache_validity_seconds: int = 0


class ApptainerOptions(_Wire, frozen=True, rename="camel"):
    executable: str = ""
    fakeroot: bool = False
    containall: bool = False
    fuse_mode: str = ""
    no_init: bool = False
    no_home: bool = False
    no_privs: bool = False
    nvidia_support: bool = False
    cleanenv: bool = False
    unsquash: bool = False


class ScratchVolumes(_Wire, frozen=True):
    scratch_area: str = ""
    apptainer_cachedir: str = ""
    image_dir: str = ""
    additional_directories_in_path: list[str] | None = None
    fuse_sleep_seconds: int = 0


class ScriptBuildConfig(_Wire, frozen=True):
    singularity_hub: SingularityHubProxy = msgspec.field(name="SingularityHubProxy", default=SingularityHubProxy())
    apptainer_options: ApptainerOptions = msgspec.field(name="ApptainerOptions", default=ApptainerOptions())
    volumes: ScratchVolumes = msgspec.field(name="Volumes", default=ScratchVolumes())


class RetrievedPodData(_Wire, frozen=True):
    """Server -> plugin. `container` lists init containers first, then containers, in the order of the spec.

    `imagePullSecrets` is ours, as in the request.
    """

    pod: Raw
    container: list[RetrievedContainer] | None = None
    job_config: ScriptBuildConfig = msgspec.field(name="jobConfig", default=ScriptBuildConfig())
    job_script: str | UnsetType = msgspec.field(name="jobScript", default=UNSET)
    interlink: Origin | UnsetType = UNSET
    pull_secrets: list[Raw] | UnsetType = msgspec.field(name="imagePullSecrets", default=UNSET)


class CreateAnswer(_Wire, frozen=True):
    pod_uid: str = msgspec.field(name="PodUID", default="")
    job_id: str = msgspec.field(name="PodJID", default="")


class JobStatus(_Wire, frozen=True):
    """The states of a job's containers, each a Kubernetes ContainerStatus, kept as it came.

    `interlink` is ours: what the batch system says of a running job, left out where it says nothing.
    """

    name: str = ""
    uid: str = msgspec.field(name="UID", default="")
    namespace: str = ""
    job_id: str = msgspec.field(name="JID", default="")
    containers: list[Raw] | None = None
    init_containers: list[Raw] | None = msgspec.field(name="initContainers", default=None)
    remark: Remark | UnsetType | None = msgspec.field(name="interlink", default=UNSET)


class LogOptions(_Wire, frozen=True):
    """Zero means not set; the byte limit's key is `Bytes`."""

    tail: int | None = msgspec.field(name="Tail", default=0)
    limit_bytes: int | None = msgspec.field(name="Bytes", default=0)
    timestamps: bool | None = msgspec.field(name="Timestamps", default=False)
    follow: bool | None = msgspec.field(name="Follow", default=False)
    previous: bool | None = msgspec.field(name="Previous", default=False)
    since_seconds: int | None = msgspec.field(name="SinceSeconds", default=0)
    since_time: str | None = msgspec.field(name="SinceTime", default="0001-01-01T00:00:00Z")


class LogRequest(_Wire, frozen=True):
    namespace: str = msgspec.field(name="Namespace", default="")
    pod_uid: str = msgspec.field(name="PodUID", default="")
    pod_name: str = msgspec.field(name="PodName", default="")
    container: str = msgspec.field(name="ContainerName", default="")
    options: LogOptions = msgspec.field(name="Opts", default=LogOptions())


class Accelerator(_Wire, frozen=True, rename="camel"):
    resource_type: str
    available: str


class Resources(_Wire, frozen=True, omit_defaults=True):
    cpu: str | None = None
    memory: str | None = None
    pods: str | None = None
    accelerators: list[Accelerator] | None = None


class Taint(_Wire, frozen=True):
    key: str
    effect: str
    value: str = ""


class PingAnswer(_Wire, frozen=True, omit_defaults=True):
    """`taints` absent: leave them; an empty list: clear them."""

    status: str = ""
    resources: Resources | None = None
    taints: list[Taint] | UnsetType | None = UNSET


# --- our own dialect -------------------------------------------------------------------------------------------------

CLUSTER_HEADER = "InterLink-Cluster"
NODE_HEADER = "InterLink-Node"
HOLD_HEADER = "InterLink-Hold"
SESSION_HEADER = "InterLink-Http-Session"
PREFER_HEADER = "Prefer"
PREFERENCE_APPLIED_HEADER = "Preference-Applied"
OWN_ROUTES = "/interlink/v1/"
ANNOUNCE = f"{OWN_ROUTES}announce"
CHANGES = f"{OWN_ROUTES}changes"
JOBS = f"{OWN_ROUTES}jobs"
USAGE = f"{OWN_ROUTES}usage"
REFRESH = f"{OWN_ROUTES}refresh"


class KnownPod(_Wire, frozen=True):
    """A pod that Kubernetes has on the node, with the job id of its annotation."""

    pod: Pod
    job_id: str | None = None


class Announcement(_Wire, frozen=True):
    """The complete list of one owner's pods, made after it had been told the changes up to `revision` of `epoch`.

    A pod that it had been told and does not list is gone from Kubernetes. What is newer than `revision` proves
    nothing: its create may have been sent after the list was made.
    """

    owner: Owner
    pods: list[KnownPod]
    epoch: str
    revision: int


class AnnouncementAnswer(_Wire, frozen=True):
    """`epoch` names this life of the server's memory: another one means, announce again."""

    epoch: str
    adopted: int
    deleted: int


class ChangesRequest(_Wire, frozen=True):
    """What changed for `owner` after `since`; waits up to `wait_s` seconds for something to tell."""

    owner: Owner
    epoch: str = ""
    since: int = 0
    wait_s: float = 0.0


class Change(_Wire, frozen=True):
    """The present state of one pod's job. `has_ended`: it will not change again; `rejected`: why there is no job."""

    status: JobStatus
    revision: int
    has_ended: bool = False
    is_deleting: bool = False
    rejected: str | None = None


class Refresh(_Wire, frozen=True):
    """New content of a running pod's projected volumes: its tokens are about to expire. `pod`: its metadata and its
    volumes; `projectedvolumesmaps` as in a create."""

    pod: Pod
    projectedvolumesmaps: list[Raw]


class Changes(_Wire, frozen=True):
    """`revision` is the `since` of the next question. With another epoch than asked the list is complete."""

    epoch: str
    revision: int
    changes: list[Change]
    is_complete: bool = False


class Job(_Wire, frozen=True):
    """A job at the plugin that carries our tag."""

    tag: str
    job_id: str
    node: str
    is_alive: bool


class UsageRequest(_Wire, frozen=True):
    """What do the running containers of these pods use? To a server, `owner` and no pods: of all that are its."""

    owner: Owner | None = None
    pods: list[str] = []


class ContainerUsage(_Wire, frozen=True):
    """CPU time of all runs so far, and the memory at `at`. A container that nothing is known of is left out."""

    pod_uid: str
    container: str
    cpu_seconds: float
    memory_bytes: int
    at: datetime


class Problem(_Wire, frozen=True):
    """The body of our error answers; `kind` is rejected, unreachable, unknown, conflict, not_found or invalid."""

    kind: str
    message: str
