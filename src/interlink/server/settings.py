"""The server's configuration file and environment, with the keys of the existing InterLinkConfig.yaml."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlink.model import configuration
from interlink.model.errors import ConfigurationError
from interlink.sdk import addresses, profiles, tls
from interlink.sdk.addresses import Address
from interlink.sdk.tls import TLSFile
from interlink.wire.messages import ApptainerOptions, ScratchVolumes, ScriptBuildConfig, SingularityHubProxy


class ApptainerFile(msgspec.Struct, frozen=True):
    """The same options as on the wire, under the names that the file gives them."""

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


class ScriptFile(msgspec.Struct, frozen=True):
    """The block `JobScriptBuildConfig`."""

    singularity_hub: SingularityHubProxy = SingularityHubProxy()
    apptainer_options: ApptainerFile = ApptainerFile()
    volumes_options: ScratchVolumes = ScratchVolumes()


class ServerFile(msgspec.Struct, frozen=True, rename="pascal"):
    """`InterLinkConfig.yaml`. Times are in seconds.

    InterlinkAddress: where to listen: unix:///path, http://host or https://host.
    InterlinkPort: the port to listen on; not used with a unix socket.
    SidecarURL: where the plugin is: unix:///path, http://host or https://host.
    SidecarPort: the plugin's port.
    InterlinkDir: the directory that holds CachedPods; it may be lost.
    StatusInterval: the pause between two questions to the plugin about all live jobs.
    JobLostGrace: how long the plugin must deny a job before its pod fails with reason JobLost.
    SweepInterval: the pause between two looks for jobs without pods, while pods come and go; else ten minutes.
    TombstoneLifetime: how long a virtual kubelet that cannot confirm is silent about a deleted pod until we forget it.
    CreateHold: how long a create waits for a plugin that cannot be reached, when the virtual kubelet does not say.
    MaxPods: when so many pods are known, creates are answered with 429; what has a job already is adopted all the same.
    MaxWaitingCreates: how many creates may wait for the plugin; more are answered with 429.
    MaxBodyBytes: the largest request; a larger one is answered with 413.
    VerboseLogging: log at level debug.
    ErrorsOnlyLogging: log errors only; VerboseLogging wins.
    TLS: for https: Enabled, CertFile, KeyFile; with CACertFile clients must show a certificate of that authority.
    SidecarTLS: for an https plugin: CACertFile to trust, CertFile and KeyFile to show.
    SidecarTokenFile: a file with the bearer token that the plugin wants to see; read anew for each call.
    SidecarTakesLists: true sends a create as a list of one, as plugins made with the existing Python SDK want it.
    JobScriptBuildConfig: what a job-script builder is told about scripts.
    JobScriptTemplate: the path of a Go template that makes each job's script; needs interlink-go-template on PATH.
    DataRootFolder: accepted and not used, as before.
    Pprof: profiles over HTTP, for whoever looks for the cause of a slow program.
    Pprof.Enabled: serve /debug/pprof/profile?seconds=30 and /debug/pprof/goroutine.
    Pprof.Address: 127.0.0.1 when not set; whoever reaches it can slow the program down.
    Pprof.Port: 6061 when not set.
    INTERLINKCONFIGPATH: the configuration file, when --config is not given.
    INTERLINKURL: wins over InterlinkAddress.
    INTERLINKPORT: wins over InterlinkPort.
    SIDECARURL: wins over SidecarURL.
    SIDECARPORT: wins over SidecarPort.
    INTERLINK_DIR: wins over InterlinkDir; ~/.interlink when neither is set.
    """

    interlink_address: str = ""
    interlink_port: str | int = ""
    sidecar_url: str = msgspec.field(name="SidecarURL", default="")
    sidecar_port: str | int = ""
    interlink_dir: str = ""
    status_interval: float = 2.0
    job_lost_grace: float = 60.0
    sweep_interval: float = 30.0
    tombstone_lifetime: float = 86400.0
    create_hold: float = 100.0
    max_pods: int = 100_000
    max_waiting_creates: int = 10_000
    max_body_bytes: int = 64 * 1024 * 1024
    verbose_logging: bool = False
    errors_only_logging: bool = False
    tls: TLSFile = msgspec.field(name="TLS", default=TLSFile())
    sidecar_tls: TLSFile = msgspec.field(name="SidecarTLS", default=TLSFile())
    sidecar_token_file: str = ""
    sidecar_takes_lists: bool = False
    job_script_build_config: ScriptFile | None = None
    job_script_template: str = ""
    data_root_folder: str = ""
    pprof: profiles.PprofFile = profiles.PprofFile()


class ServerSettings(msgspec.Struct, frozen=True):
    """`tls` and `plugin_tls` are None where the address is not https, `profiles` when they are off. Times are in
    seconds."""

    address: Address
    tls: ssl.SSLContext | None
    plugin: Address
    plugin_tls: ssl.SSLContext | None
    plugin_token_file: Path | None
    plugin_takes_lists: bool
    directory: Path
    status_interval_s: float
    job_lost_grace_s: float
    sweep_interval_s: float
    tombstone_lifetime_s: float
    create_hold_s: float
    max_pods: int
    max_waiting_creates: int
    max_body_bytes: int
    scripts: ScriptBuildConfig | None
    template: Path | None
    profiles: Address | None
    log_level: str
    unknown_keys: list[str]


def load(text: str, environment: Mapping[str, str], *, source: str) -> ServerSettings:
    """The environment wins over the file. Raises ConfigurationError naming the key."""
    file, unknown = configuration.parse(text, ServerFile, source=source)
    _check(file, source)
    address = _address(
        environment.get("INTERLINKURL") or file.interlink_address,
        environment.get("INTERLINKPORT") or file.interlink_port,
        f"{source}: InterlinkAddress",
        "INTERLINKURL",
    )
    plugin = _address(
        environment.get("SIDECARURL") or file.sidecar_url,
        environment.get("SIDECARPORT") or file.sidecar_port,
        f"{source}: SidecarURL",
        "SIDECARURL",
    )
    return ServerSettings(
        address=address,
        tls=_listening_tls(address, file, source),
        plugin=plugin,
        plugin_tls=tls.client_context(file.sidecar_tls, key=f"{source}: SidecarTLS") if _is_https(plugin) else None,
        plugin_token_file=Path(file.sidecar_token_file) if file.sidecar_token_file else None,
        plugin_takes_lists=file.sidecar_takes_lists,
        directory=Path(environment.get("INTERLINK_DIR") or file.interlink_dir or "~/.interlink").expanduser(),
        status_interval_s=file.status_interval,
        job_lost_grace_s=file.job_lost_grace,
        sweep_interval_s=file.sweep_interval,
        tombstone_lifetime_s=file.tombstone_lifetime,
        create_hold_s=file.create_hold,
        max_pods=file.max_pods,
        max_waiting_creates=file.max_waiting_creates,
        max_body_bytes=file.max_body_bytes,
        scripts=_scripts(file.job_script_build_config),
        template=Path(file.job_script_template) if file.job_script_template else None,
        profiles=profiles.address(file.pprof, environment, port=6061, source=source),
        log_level="debug" if file.verbose_logging else "error" if file.errors_only_logging else "info",
        unknown_keys=unknown,
    )


def _check(file: ServerFile, source: str) -> None:
    """What the types cannot say."""
    positive = {
        "StatusInterval": file.status_interval,
        "SweepInterval": file.sweep_interval,
        "MaxPods": file.max_pods,
        "MaxWaitingCreates": file.max_waiting_creates,
        "MaxBodyBytes": file.max_body_bytes,
    }
    not_negative = {
        "JobLostGrace": file.job_lost_grace,
        "TombstoneLifetime": file.tombstone_lifetime,
        "CreateHold": file.create_hold,
    }
    for key, value in positive.items():
        if not value > 0:
            raise ConfigurationError(f"{source}: {key}: must be more than 0, not {value}")
    for key, value in not_negative.items():
        if not value >= 0:
            raise ConfigurationError(f"{source}: {key}: must not be negative, as {value} is")
    if file.job_script_template and not Path(file.job_script_template).is_file():
        raise ConfigurationError(f"{source}: JobScriptTemplate: there is no file {file.job_script_template}")


def _listening_tls(address: Address, file: ServerFile, source: str) -> ssl.SSLContext | None:
    if file.tls.enabled and not _is_https(address):
        raise ConfigurationError(f"{source}: TLS.Enabled: InterlinkAddress must start with https:// then")
    return tls.server_context(file.tls, key=f"{source}: TLS") if _is_https(address) else None


def _is_https(address: Address) -> bool:
    return address.scheme == "https"


def _address(url: str, port: str | int, key: str, variable: str) -> Address:
    if not url:
        raise ConfigurationError(
            f"{key}: missing; set it (or {variable}) to unix:///path or http://host, with the port beside it"
        )
    return addresses.parse(url, port, key=key)


def _scripts(file: ScriptFile | None) -> ScriptBuildConfig | None:
    if file is None:
        return None
    return ScriptBuildConfig(
        singularity_hub=file.singularity_hub,
        apptainer_options=ApptainerOptions(**msgspec.structs.asdict(file.apptainer_options)),
        volumes=file.volumes_options,
    )
