"""The local plugin's configuration file and environment."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlink.model import configuration
from interlink.model.errors import ConfigurationError
from interlink.sdk import listening
from interlink.sdk.batch import rotation
from interlink.sdk.batch.rotation import LogLimits
from interlink.sdk.listening import Listening
from interlink.sdk.runtimes import settings as runtime_settings
from interlink.sdk.runtimes.settings import RuntimeSettings
from interlink.sdk.tls import TLSFile


class LocalFile(msgspec.Struct, frozen=True, rename="pascal"):
    """The file that `--config` names.

    Socket: where to listen, as unix:///path; wins over the address and the port.
    SidecarAddress: where to listen, as http://host or https://host.
    SidecarPort: the port to listen on.
    TLS: for https: Enabled, CertFile, KeyFile; with CACertFile clients must show a certificate of that authority.
    TokenFile: a file with the bearer token that callers must show; it is read anew for each request.
    DataRootFolder: where the job directories are; ~/.interlink/jobs when not set. It must outlive the plugin.
    MaxPods: how many pods the node says it takes.
    ContainerRuntime: none (programs of this host), apptainer, singularity, charliecloud, podman or enroot.
    RuntimePath: the runtime's program; found by its name when not set.
    RuntimeOptions: options of every container; apptainer has --containall when not set, podman --cgroups=disabled.
    ImagePrefix: put before images that name neither a scheme nor an absolute path.
    Images: what images are here: a path or an address with its scheme, by name or by a pattern with one *.
    ImageFolder: where pulled images are kept, in a folder for each user.
    ImageMaxAge: after how many seconds an image is pulled again where the pod says imagePullPolicy Always.
    PassEnvironment: variables of the plugin that containers get; those that name GPUs they get anyway.
    KeepDeletedJobs: how many seconds the directory of a deleted job is kept after its end.
    ContainerLogMaxSize: a container's log goes on in a new file at this size, as 10Mi; it has no limit when not set.
    ContainerLogMaxFiles: how many files of a container's log are kept.
    VerboseLogging: log at level debug.
    ErrorsOnlyLogging: log errors only; VerboseLogging wins.
    SIDECARPORT: wins over SidecarPort.
    """

    socket: str = ""
    sidecar_address: str = "http://127.0.0.1"
    sidecar_port: str | int = ""
    tls: TLSFile = msgspec.field(name="TLS", default=TLSFile())
    token_file: str = ""
    data_root_folder: str = ""
    max_pods: int = 1000
    container_runtime: str = "none"
    runtime_path: str = ""
    runtime_options: str | list[str] = ""
    image_prefix: str = ""
    images: dict[str, str] = {}
    image_folder: str = "~/.interlink/images"
    image_max_age: float = 3600.0
    pass_environment: list[str] = []
    keep_deleted_jobs: float = 3600.0
    container_log_max_size: str | int = ""
    container_log_max_files: int = 5
    verbose_logging: bool = False
    errors_only_logging: bool = False


class LocalSettings(msgspec.Struct, frozen=True):
    listening: Listening
    root: Path
    max_pods: int
    runtime: RuntimeSettings
    keep_deleted_jobs_s: float
    log_limits: LogLimits
    log_level: str
    unknown_keys: list[str]


def load(text: str, environment: Mapping[str, str], *, source: str) -> LocalSettings:
    """The environment wins over the file. Raises ConfigurationError naming the key."""
    file, unknown = configuration.parse(text, LocalFile, source=source)
    if file.max_pods < 1:
        raise ConfigurationError(f"{source}: MaxPods: must be at least 1")
    if not file.keep_deleted_jobs >= 0:
        raise ConfigurationError(f"{source}: KeepDeletedJobs: must not be negative, as {file.keep_deleted_jobs} is")
    port = environment.get("SIDECARPORT") or file.sidecar_port
    if not file.socket and port in ("", None):
        raise ConfigurationError(f"{source}: SidecarPort: missing; set it, or Socket to unix:///path")
    return LocalSettings(
        listening=listening.read(
            socket=file.socket,
            address=file.sidecar_address,
            port=port,
            tls_files=file.tls,
            token_file=file.token_file,
            source=source,
        ),
        root=Path(file.data_root_folder or "~/.interlink/jobs").expanduser().absolute(),
        max_pods=file.max_pods,
        runtime=_runtime(file, source),
        keep_deleted_jobs_s=file.keep_deleted_jobs,
        log_limits=_log_limits(file, source),
        log_level="debug" if file.verbose_logging else "error" if file.errors_only_logging else "info",
        unknown_keys=unknown,
    )


def _log_limits(file: LocalFile, source: str) -> LogLimits:
    try:
        return rotation.limits(file.container_log_max_size, file.container_log_max_files)
    except ValueError as error:
        raise ConfigurationError(f"{source}: {error}") from error


def _runtime(file: LocalFile, source: str) -> RuntimeSettings:
    try:
        return runtime_settings.read(
            kind=file.container_runtime,
            program=file.runtime_path,
            options=file.runtime_options,
            passed=file.pass_environment,
            prefix=file.image_prefix,
            table=file.images,
            folder=file.image_folder,
            max_age_s=file.image_max_age,
        )
    except ValueError as error:
        raise ConfigurationError(f"{source}: {error}") from error
