"""The Slurm plugin's configuration file and environment: the keys of the existing plugin, and ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from interlink.model import configuration, quantities
from interlink.model.errors import ConfigurationError, InvalidQuantity
from interlink.plugins.slurm import flags
from interlink.plugins.slurm.commands import Programs
from interlink.plugins.slurm.flags import Option
from interlink.sdk import listening
from interlink.sdk.batch import rotation
from interlink.sdk.batch.rotation import LogLimits
from interlink.sdk.errors import Rejected
from interlink.sdk.listening import Listening
from interlink.sdk.runtimes import settings as runtime_settings
from interlink.sdk.runtimes.settings import RuntimeSettings
from interlink.sdk.tls import TLSFile
from interlink.wire.messages import Taint

Words = str | list[str]


class FlavorKeys(msgspec.Struct, frozen=True, rename="pascal"):
    name: str = ""
    description: str = ""
    cpu_default: int | None = msgspec.field(name="CPUDefault", default=None)
    memory_default: str | int | None = None
    uid: int | None = msgspec.field(name="UID", default=None)
    slurm_flags: list[str] = []


class NamespaceKeys(msgspec.Struct, frozen=True, rename="pascal"):
    name: str = "*"
    account: str = ""
    partition: str = ""
    qos: str = msgspec.field(name="QOS", default="")
    uid: int | None = msgspec.field(name="UID", default=None)


class GPUKeys(msgspec.Struct, frozen=True, rename="pascal"):
    resource: str
    gres: str = "gpu"
    option: str = "--gres={gres}:{count}"


class SlurmFile(msgspec.Struct, frozen=True, rename="pascal"):
    """The file that `--config` or `SLURMCONFIGPATH` names, else `/etc/interlink/SlurmConfig.yaml` where it exists.

    Socket: where to listen, as unix:///path; wins over the address and the port.
    SidecarAddress: where to listen, as http://host or https://host.
    SidecarPort: the port to listen on.
    TLS: for https: Enabled, CertFile, KeyFile; with CACertFile clients must show a certificate of that authority.
    TokenFile: a file with the bearer token that callers must show; it is read anew for each request.
    DataRootFolder: where the job directories are: on the file system that plugin and nodes share.
    SbatchPath: the command to submit with.
    ScancelPath: the command to cancel with.
    SqueuePath: the command that lists jobs.
    SinfoPath: the command that lists nodes.
    SacctPath: the command that asks accounting.
    ScontrolPath: the command that shows Slurm's configuration.
    UseAccounting: whether to ask sacct about jobs that the controller has forgotten; found out when not set.
    BashPath: the shell that runs job scripts.
    PythonPath: Python 3.6 or newer on the nodes.
    CommandPrefix: shell lines that every job runs first, as the job's user.
    ContainerRuntime: singularity, apptainer, charliecloud, podman, enroot, or none (programs of the nodes).
    RuntimePath: the runtime's program on the nodes; found by its name when not set.
    RuntimeOptions: options of every container; apptainer has --containall when not set, podman --cgroups=disabled.
    ImagePrefix: put before images that name neither a scheme nor an absolute path.
    Images: what images are here: a path or an address with its scheme, by name or by a pattern with one *.
    ImageFolder: where pulled images are kept, in a folder for each user; ~ is the home of the job's user.
    ImageMaxAge: after how many seconds an image is pulled again where the pod says imagePullPolicy Always.
    PassEnvironment: variables of the job that containers get; those that name the job's GPUs they get anyway.
    SingularityPath: as RuntimePath, for singularity and apptainer.
    SingularityDefaultOptions: as RuntimeOptions, for singularity and apptainer.
    SingularityPrefix: accepted and not used, as in the existing plugin.
    EnrootPath: as RuntimePath, for enroot.
    EnrootDefaultOptions: as RuntimeOptions, for enroot.
    EnrootPrefix: accepted and not used, as in the existing plugin.
    ExportPodData: false leaves out configMap, secret, projected, downward API and emptyDir volumes, and their mounts.
    EnableProbes: false leaves out the probes of pods; a container is ready when it runs then.
    Tsocks: set up a SOCKS proxy through ssh to a login node in every job.
    TsocksPath: the library that uses the proxy.
    TsocksLoginNode: the login node.
    Flavors: named sets of defaults, by name; the annotation `slurm-job.vk.io/flavor` chooses one.
    Flavors[].Name: the flavor's name, when not that of its key.
    Flavors[].Description: for people.
    Flavors[].CPUDefault: CPUs of pods that name none.
    Flavors[].MemoryDefault: memory of pods that name none, as a Kubernetes quantity or as Slurm writes it (16G).
    Flavors[].UID: the user of the jobs, as a number; needs root.
    Flavors[].SlurmFlags: sbatch options.
    DefaultFlavor: the flavor of pods that choose none.
    DefaultUID: the user of jobs, as a number, where nothing else names one; needs root.
    Namespaces: account, partition, QOS and user by Kubernetes namespace; the first that fits counts.
    Namespaces[].Name: the namespace; * for all others.
    Namespaces[].Account: --account.
    Namespaces[].Partition: --partition.
    Namespaces[].QOS: --qos.
    Namespaces[].UID: the user of the jobs, as a number; needs root.
    GPUs: which Kubernetes resources are GPUs; nvidia.com/gpu and amd.com/gpu when not set.
    GPUs[].Resource: the resource's name.
    GPUs[].Gres: what Slurm calls them.
    GPUs[].Option: the sbatch option for a request, with {gres} and {count}.
    DefaultCPUs: CPUs of pods that name none.
    DefaultMemory: memory of pods that name none, as a Kubernetes quantity; Slurm's own default when not set.
    AllowedFlags: the only sbatch options that a pod may set, by name without dashes; all but a few when not set.
    DeniedFlags: sbatch options that a pod may not set, by name without dashes.
    DropOptions: options that are never passed, by name without dashes, whoever asks for them (for instance mem).
    SetOptions: options that every job gets, in place of any other of the name.
    TrustPods: false refuses what lets a pod's author run commands outside containers or as another user.
    IgnoreOutOfMemory: true lets a job succeed that ran out of memory but whose programs all ended with 0.
    Partitions: the partitions whose nodes count as capacity; all when not set.
    MaxPods: how many pods the node says it takes.
    CapacityInterval: how many seconds an answer of sinfo is used.
    Taints: taints of the node, each with key, value and effect.
    ResourceScriptPath: a program that prints the answer to a ping, in place of sinfo.
    KeepDeletedJobs: how many seconds the directory of a deleted job is kept after its end.
    ContainerLogMaxSize: a container's log goes on in a new file at this size, as 10Mi; it has no limit when not set.
    ContainerLogMaxFiles: how many files of a container's log are kept.
    SettleTime: how many seconds a job's own files may lag behind Slurm on the shared file system.
    LostJobGrace: after so many seconds a missing job that never began is submitted again; MessageTimeout + 5 or more.
    VKConfigPath: accepted and not used, as in the existing plugin.
    Namespace: accepted and not used, as in the existing plugin.
    VerboseLogging: log at level debug.
    ErrorsOnlyLogging: log errors only; VerboseLogging wins.
    SIDECARPORT: wins over SidecarPort.
    SBATCHPATH: wins over SbatchPath.
    SCANCELPATH: wins over ScancelPath.
    SINFOPATH: wins over SinfoPath.
    SINGULARITYPATH: wins over SingularityPath.
    TSOCKS: wins over Tsocks.
    TSOCKSPATH: wins over TsocksPath.
    SHARED_FS: accepted, as DataRootFolder is always shared; anything but `true` is named in the log.
    SLURMCONFIGPATH: the configuration file when `--config` is not given.
    """

    socket: str = ""
    sidecar_address: str = "http://127.0.0.1"
    sidecar_port: str | int = ""
    tls: TLSFile = msgspec.field(name="TLS", default=TLSFile())
    token_file: str = ""
    data_root_folder: str = ""
    sbatch_path: str = "sbatch"
    scancel_path: str = "scancel"
    squeue_path: str = "squeue"
    sinfo_path: str = "sinfo"
    sacct_path: str = "sacct"
    scontrol_path: str = "scontrol"
    use_accounting: bool | None = None
    bash_path: str = "/bin/bash"
    python_path: str = "/usr/bin/python3"
    command_prefix: str = ""
    container_runtime: str = "singularity"
    runtime_path: str = ""
    runtime_options: Words = ""
    image_prefix: str = ""
    images: dict[str, str] = {}
    image_folder: str = "~/.interlink/images"
    image_max_age: float = 3600.0
    pass_environment: list[str] = []
    singularity_path: str = ""
    singularity_default_options: Words = ""
    singularity_prefix: str = ""
    enroot_path: str = ""
    enroot_default_options: Words = ""
    enroot_prefix: str = ""
    export_pod_data: bool = True
    enable_probes: bool = True
    tsocks: bool = False
    tsocks_path: str = ""
    tsocks_login_node: str = ""
    flavors: dict[str, FlavorKeys] | list[FlavorKeys] = {}
    default_flavor: str = ""
    default_uid: int | None = msgspec.field(name="DefaultUID", default=None)
    namespaces: list[NamespaceKeys] = []
    gpus: list[GPUKeys] = msgspec.field(name="GPUs", default_factory=list)
    default_cpus: int = msgspec.field(name="DefaultCPUs", default=1)
    default_memory: str = ""
    allowed_flags: list[str] = []
    denied_flags: list[str] = []
    drop_options: list[str] = []
    set_options: list[str] = []
    trust_pods: bool = True
    ignore_out_of_memory: bool = False
    partitions: list[str] = []
    max_pods: int = 1000
    capacity_interval: float = 30.0
    taints: list[dict[str, str]] | None = None
    resource_script_path: str = ""
    keep_deleted_jobs: float = 3600.0
    container_log_max_size: str | int = ""
    container_log_max_files: int = 5
    settle_time: float = 10.0
    lost_job_grace: float = 15.0
    vk_config_path: str = msgspec.field(name="VKConfigPath", default="")
    namespace: str = ""
    verbose_logging: bool = False
    errors_only_logging: bool = False


class Flavor(msgspec.Struct, frozen=True):
    name: str
    cpus: int | None
    memory_bytes: int | None
    uid: int | None
    options: list[Option]


class Policy(msgspec.Struct, frozen=True):
    """What a site says about the jobs of its pods."""

    flavors: dict[str, Flavor] = {}
    default_flavor: str = ""
    default_uid: int | None = None
    namespaces: list[NamespaceKeys] = []
    gpus: list[GPUKeys] = []
    cpus: int = 1
    memory_bytes: int | None = None
    allowed_flags: list[str] = []
    denied_flags: list[str] = []
    dropped: list[str] = []
    fixed: list[Option] = []
    trusts_pods: bool = True
    may_change_user: bool = False


class Script(msgspec.Struct, frozen=True):
    """What surrounds the runner in every job script."""

    bash: str = "/bin/bash"
    python: str = "/usr/bin/python3"
    prefix: str = ""
    tsocks_library: str = ""
    tsocks_login_node: str = ""


class SlurmSettings(msgspec.Struct, frozen=True):
    listening: Listening
    root: Path
    programs: Programs
    uses_accounting: bool | None
    policy: Policy
    runs_probes: bool
    exports_volumes: bool
    script: Script
    runtime: RuntimeSettings
    memory_is_fatal: bool
    partitions: list[str]
    max_pods: int
    capacity_interval_s: float
    taints: list[Taint] | None
    resource_script: str
    keep_deleted_jobs_s: float
    log_limits: LogLimits
    settle_s: float
    lost_after_s: float
    log_level: str
    expects_no_sharing: bool
    unknown_keys: list[str]


_GPUS = [GPUKeys(resource="nvidia.com/gpu"), GPUKeys(resource="amd.com/gpu")]


def load(text: str, environment: Mapping[str, str], *, source: str, is_root: bool) -> SlurmSettings:
    """The environment wins over the file. Raises ConfigurationError naming the key."""
    file, unknown = configuration.parse(text, SlurmFile, source=source)
    try:
        return _load(file, unknown, environment, source=source, is_root=is_root)
    except _Wrong as error:
        raise ConfigurationError(f"{source}: {error}") from error


class _Wrong(Exception):
    """The text names the key."""


def _load(
    file: SlurmFile, unknown: list[str], environment: Mapping[str, str], *, source: str, is_root: bool
) -> SlurmSettings:
    if not file.data_root_folder:
        raise _Wrong("DataRootFolder: missing; set it to a folder on the file system that plugin and nodes share")
    if file.max_pods < 1:
        raise _Wrong("MaxPods: must be at least 1")
    for key, value in (
        ("KeepDeletedJobs", file.keep_deleted_jobs),
        ("SettleTime", file.settle_time),
        ("LostJobGrace", file.lost_job_grace),
        ("CapacityInterval", file.capacity_interval),
    ):
        if not value >= 0:
            raise _Wrong(f"{key}: must not be negative, as {value} is")
    return SlurmSettings(
        listening=_listening(file, environment, source),
        root=Path(file.data_root_folder).expanduser().absolute(),
        programs=Programs(
            sbatch=environment.get("SBATCHPATH") or file.sbatch_path,
            scancel=environment.get("SCANCELPATH") or file.scancel_path,
            squeue=file.squeue_path,
            sinfo=environment.get("SINFOPATH") or file.sinfo_path,
            sacct=file.sacct_path,
            scontrol=file.scontrol_path,
        ),
        uses_accounting=file.use_accounting,
        policy=_policy(file, is_root=is_root),
        runs_probes=file.enable_probes,
        exports_volumes=file.export_pod_data,
        script=_script(file, environment),
        runtime=_runtime(file, environment),
        memory_is_fatal=not file.ignore_out_of_memory,
        partitions=file.partitions,
        max_pods=file.max_pods,
        capacity_interval_s=file.capacity_interval,
        taints=None if file.taints is None else [_taint(taint) for taint in file.taints],
        resource_script=file.resource_script_path,
        keep_deleted_jobs_s=file.keep_deleted_jobs,
        log_limits=_log_limits(file),
        settle_s=file.settle_time,
        lost_after_s=file.lost_job_grace,
        log_level="debug" if file.verbose_logging else "error" if file.errors_only_logging else "info",
        expects_no_sharing=environment.get("SHARED_FS", "true").lower() != "true",
        unknown_keys=unknown,
    )


def _log_limits(file: SlurmFile) -> LogLimits:
    try:
        return rotation.limits(file.container_log_max_size, file.container_log_max_files)
    except ValueError as error:
        raise _Wrong(str(error)) from error


def _listening(file: SlurmFile, environment: Mapping[str, str], source: str) -> Listening:
    port = environment.get("SIDECARPORT") or file.sidecar_port
    if not file.socket and port in ("", None):
        raise _Wrong("SidecarPort: missing; set it, or Socket to unix:///path")
    return listening.read(
        socket=file.socket,
        address=file.sidecar_address,
        port=port,
        tls_files=file.tls,
        token_file=file.token_file,
        source=source,
    )


def _policy(file: SlurmFile, *, is_root: bool) -> Policy:
    flavors = {flavor.name: flavor for flavor in _flavors(file.flavors)}
    if file.default_flavor and file.default_flavor not in flavors:
        raise _Wrong(f"DefaultFlavor: there is no flavor {file.default_flavor!r}")
    for gpu in file.gpus:
        try:
            gpu.option.format(gres=gpu.gres, count=1)
        except (KeyError, IndexError, ValueError) as error:
            raise _Wrong(f"GPUs: Option: {gpu.option!r} may hold only {{gres}} and {{count}}") from error
    users = [file.default_uid, *(f.uid for f in flavors.values()), *(n.uid for n in file.namespaces)]
    if any(uid is not None for uid in users) and not is_root:
        raise _Wrong("DefaultUID, Flavors and Namespaces: a UID needs the plugin to run as root")
    return Policy(
        flavors=flavors,
        default_flavor=file.default_flavor,
        default_uid=file.default_uid,
        namespaces=file.namespaces,
        gpus=file.gpus or _GPUS,
        cpus=file.default_cpus,
        memory_bytes=_memory(file.default_memory, "DefaultMemory") if file.default_memory else None,
        allowed_flags=[name.lstrip("-") for name in file.allowed_flags],
        denied_flags=[name.lstrip("-") for name in file.denied_flags],
        dropped=[name.lstrip("-") for name in file.drop_options],
        fixed=_options(file.set_options, "SetOptions"),
        trusts_pods=file.trust_pods,
        may_change_user=is_root,
    )


def _flavors(keys: Mapping[str, FlavorKeys] | Sequence[FlavorKeys]) -> list[Flavor]:
    named = list(keys.items()) if isinstance(keys, Mapping) else [(flavor.name, flavor) for flavor in keys]
    return [
        Flavor(
            name=flavor.name or name,
            cpus=flavor.cpu_default,
            memory_bytes=_memory(str(flavor.memory_default), f"Flavors.{name}.MemoryDefault")
            if flavor.memory_default
            else None,
            uid=flavor.uid,
            options=_options(flavor.slurm_flags, f"Flavors.{name}.SlurmFlags"),
        )
        for name, flavor in named
    ]


def _options(texts: Sequence[str], key: str) -> list[Option]:
    try:
        return [option for text in texts for option in flags.parse(text, place=key)]
    except Rejected as error:
        raise _Wrong(str(error)) from error


def _memory(text: str, key: str) -> int:
    """`16G`, `16GB` and `16000M` are powers of 1024, as Slurm has them, like Gi; a bare number is bytes."""
    slurm = {"K": "Ki", "M": "Mi", "G": "Gi", "T": "Ti"}
    trimmed = text.strip().removesuffix("B")
    if trimmed[-1:].upper() in slurm and not trimmed.endswith("i"):
        trimmed = trimmed[:-1] + slurm[trimmed[-1:].upper()]
    try:
        return int(quantities.amount(trimmed))
    except InvalidQuantity as error:
        raise _Wrong(f"{key}: {error}") from error


def _runtime(file: SlurmFile, environment: Mapping[str, str]) -> RuntimeSettings:
    """The keys of the existing plugin say the same for one runtime each."""
    kind = file.container_runtime
    program, options = file.runtime_path, file.runtime_options
    if kind in ("singularity", "apptainer"):
        program = environment.get("SINGULARITYPATH") or file.singularity_path or program
        options = file.singularity_default_options or options
    elif kind == "enroot":
        program, options = file.enroot_path or program, file.enroot_default_options or options
    try:
        return runtime_settings.read(
            kind=kind,
            program=program,
            options=options,
            passed=file.pass_environment,
            prefix=file.image_prefix,
            table=file.images,
            folder=file.image_folder,
            max_age_s=file.image_max_age,
        )
    except ValueError as error:
        raise _Wrong(str(error)) from error


def _script(file: SlurmFile, environment: Mapping[str, str]) -> Script:
    is_wanted = environment.get("TSOCKS", "").lower() in ("true", "1") if environment.get("TSOCKS") else file.tsocks
    library = environment.get("TSOCKSPATH") or file.tsocks_path
    if is_wanted and not (library and file.tsocks_login_node):
        raise _Wrong("Tsocks: needs TsocksPath and TsocksLoginNode")
    return Script(
        bash=file.bash_path,
        python=file.python_path,
        prefix=file.command_prefix,
        tsocks_library=library if is_wanted else "",
        tsocks_login_node=file.tsocks_login_node if is_wanted else "",
    )


def _taint(keys: Mapping[str, str]) -> Taint:
    """Keys in any case, as in `key: a` or `Key: a`."""
    lowered = {key.lower(): value for key, value in keys.items()}
    if not lowered.get("key") or not lowered.get("effect"):
        raise _Wrong("Taints: each needs key and effect")
    return Taint(key=lowered["key"], value=lowered.get("value", ""), effect=lowered["effect"])
