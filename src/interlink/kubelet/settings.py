"""The virtual kubelet's configuration file and environment, with the keys of the existing one."""

import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlink.model import configuration, names, quantities
from interlink.model.errors import ConfigurationError, InvalidQuantity
from interlink.sdk import addresses, profiles, tls
from interlink.sdk.addresses import Address
from interlink.sdk.tls import TLSFile
from interlink.wire.messages import Taint

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class AcceleratorSetting(msgspec.Struct, frozen=True, rename="pascal"):
    resource_type: str
    model: str = ""
    available: str | int = "0"


class ResourcesSetting(msgspec.Struct, frozen=True, rename="pascal"):
    cpu: str | int = msgspec.field(name="CPU", default="100")
    memory: str | int = "3000G"
    pods: str | int = "10000"
    ephemeral_storage: str | int = "1000G"
    accelerators: list[AcceleratorSetting] | None = None


class TaintSetting(msgspec.Struct, frozen=True, rename="pascal"):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class HTTPSetting(msgspec.Struct, frozen=True, rename="pascal"):
    insecure: bool = False
    ca_cert: str = ""


class KubeletHTTPSetting(msgspec.Struct, frozen=True, rename="pascal"):
    insecure: bool = False


class KubeletFile(msgspec.Struct, frozen=True, rename="pascal"):
    """The file that `--config` or CONFIGPATH names.

    InterlinkURL: where the server is: unix:///path, http://host or https://host.
    InterlinkPort: the server's port; not used with a unix socket.
    VKTokenFile: a file whose content is sent to the server as bearer token; read anew for each call. An empty one
        sends none.
    TLS: for an https server: with Enabled, CACertFile is the authority to trust (else the system's), CertFile and
        KeyFile the certificate to show.
    HTTP: for an https server, without a TLS block.
    HTTP.Insecure: trust any server. For tests only: whoever is in between reads every Secret.
    HTTP.CaCert: a file with the authority to trust, where TLS.CACertFile does not name one; PEM or DER.
    Resources: what the node offers; what the plugin says of itself wins.
    Resources.CPU: cores, as a Kubernetes quantity.
    Resources.Memory: as a Kubernetes quantity.
    Resources.Pods: how many pods.
    Resources.EphemeralStorage: as a Kubernetes quantity.
    Resources.Accelerators: further resources, as GPUs.
    Resources.Accelerators[].ResourceType: the name of the resource, as nvidia.com/gpu.
    Resources.Accelerators[].Model: shown as a label of the node: nvidia-gpu-type=A100.
    Resources.Accelerators[].Available: how many, as a Kubernetes quantity.
    NodeLabels: labels of the node beside its own, each key=value.
    NodeTaints: taints of the node beside its own.
    NodeTaints[].Key: the taint's key.
    NodeTaints[].Value: the taint's value.
    NodeTaints[].Effect: NoSchedule, PreferNoSchedule or NoExecute; anything else is NoSchedule.
    KubeletCertFile: the certificate that the node's HTTPS endpoint shows; read anew when it changes.
    KubeletKeyFile: the key of that certificate.
    DisableCSR: without KubeletCertFile the certificate is asked of the cluster, by a CertificateSigningRequest that
        somebody must approve; until then, and always with this key, the endpoint shows one of its own making, which
        the API server has no reason to trust.
    KubeletCSRSignerName: the signer that is asked.
    KubeletCertDir: a directory that keeps the certificate from the cluster, with its key; without one each start asks
        for a new one, which must be approved again.
    KubeletAuthentication: webhook asks Kubernetes who calls the endpoint and what the caller may do, as a kubelet does;
        none lets everybody in who reaches the port.
    KubeletClientCAFile: the authority of client certificates at the endpoint (PEM), read anew when it changes; without
        one, the authority that the API server publishes in ConfigMap kube-system/extension-apiserver-authentication.
    KubeletHTTP: accepted and not used, as before.
    KubeletHTTP.Insecure: accepted and not used, as before.
    ClusterID: the cluster's name at the server and in the names of jobs; without one it is taken from the UID of the
        namespace kube-system. Do not change it while pods run.
    ConcurrentCreates: how many creates may be under way at the same time.
    KubernetesApiAddr: with KubernetesApiPort, where pods reach the API server when its service's address does not do;
        their KUBERNETES_* variables name it.
    KubernetesApiPort: the port there.
    KubernetesApiCaCrt: the certificate authority's text (PEM) that pods get in place of kube-root-ca.crt.
    DisableProjectedVolumes: leave projected and downward API volumes out of pods.
    SkipDownwardAPIResolution: accepted and not used: what a pod refers to is always resolved.
    JobScriptBuilderURL: sent to the server with each pod: where it has job scripts built.
    PodCIDR: accepted and not used: pods have the node's address, or the one that they ask for.
    Network: accepted and not used: there are no tunnels.
    Pprof: profiles over HTTP, for whoever looks for the cause of a slow program.
    Pprof.Enabled: serve /debug/pprof/profile?seconds=30 and /debug/pprof/goroutine.
    Pprof.Address: 127.0.0.1 when not set; whoever reaches it can slow the program down.
    Pprof.Port: 6060 when not set.
    VKConfigPath: accepted and not used, as before.
    ServiceAccount: accepted and not used, as before.
    Namespace: accepted and not used, as before.
    PodIP: accepted and not used, as before.
    DrainSeconds: at SIGTERM the node takes no new pods, and the program stays until its pods have ended, but no longer
        than this; 0 stops at once, and the jobs go on.
    VerboseLogging: log at level debug.
    ErrorsOnlyLogging: log errors only; VerboseLogging wins.
    CONFIGPATH: the configuration file, when --config is not given.
    NODENAME: the node's name, when --node-name is not given.
    KUBECONFIG: the file that says where Kubernetes is; without it the service account of the pod it runs in is used.
    KUBELET_URL: the address to listen on for the API server; 0.0.0.0 when not set.
    KUBELET_PORT: the port to listen on for the API server; 5820 when not set.
    POD_IP: the node's address, at which the API server reaches that port, and the address of its pods; 127.0.0.1 when
        not set.
    """

    interlink_url: str = msgspec.field(name="InterlinkURL", default="")
    interlink_port: str | int = ""
    vk_token_file: str = msgspec.field(name="VKTokenFile", default="")
    resources: ResourcesSetting = ResourcesSetting()
    node_labels: list[str] | None = None
    node_taints: list[TaintSetting] | None = None
    kubelet_cert_file: str = ""
    kubelet_key_file: str = ""
    disable_csr: bool = msgspec.field(name="DisableCSR", default=False)
    kubelet_csr_signer_name: str = msgspec.field(name="KubeletCSRSignerName", default="kubernetes.io/kubelet-serving")
    kubelet_cert_dir: str = ""
    kubelet_authentication: Literal["webhook", "none"] = "webhook"
    kubelet_client_ca_file: str = msgspec.field(name="KubeletClientCAFile", default="")
    kubelet_http: KubeletHTTPSetting | None = msgspec.field(name="KubeletHTTP", default=None)
    http: HTTPSetting = msgspec.field(name="HTTP", default=HTTPSetting())
    tls: TLSFile = msgspec.field(name="TLS", default=TLSFile())
    cluster_id: str = msgspec.field(name="ClusterID", default="")
    concurrent_creates: int = 32
    kubernetes_api_addr: str = ""
    kubernetes_api_port: str | int = ""
    kubernetes_api_ca_crt: str = ""
    disable_projected_volumes: bool = False
    skip_downward_api_resolution: bool = msgspec.field(name="SkipDownwardAPIResolution", default=False)
    job_script_builder_url: str = msgspec.field(name="JobScriptBuilderURL", default="")
    pod_cidr: Any = msgspec.field(name="PodCIDR", default=None)
    network: Any = None
    pprof: profiles.PprofFile = profiles.PprofFile()
    vk_config_path: str = msgspec.field(name="VKConfigPath", default="")
    service_account: str = ""
    namespace: str = ""
    pod_ip: str = msgspec.field(name="PodIP", default="")
    drain_seconds: float = 0.0
    verbose_logging: bool = False
    errors_only_logging: bool = False


class KubeletSettings(msgspec.Struct, frozen=True):
    """`kubeconfig` None: the service account of the pod that we run in. `cluster_id` empty: from the cluster.

    `certificate` None: asked of the cluster's `csr_signer`, or self-signed when that is None. `client_authority` None:
    the published one.
    """

    node_name: str
    server: Address
    server_tls: ssl.SSLContext | None
    token_file: Path | None
    kubeconfig: Path | None
    listen_host: str
    listen_port: int
    node_ip: str
    certificate: tuple[Path, Path] | None
    csr_signer: str | None
    certificate_directory: Path | None
    is_authenticating: bool
    client_authority: Path | None
    cluster_id: str
    resources: dict[str, str]
    labels: dict[str, str]
    taints: list[Taint]
    concurrent_creates: int
    kubernetes_for_pods: tuple[str, int] | None
    ca_for_pods: str
    has_projected_volumes: bool
    job_script_builder_url: str
    profiles: Address | None
    drain_s: float
    log_level: str
    unknown_keys: list[str]


def load(text: str, environment: Mapping[str, str], *, source: str, node_name: str) -> KubeletSettings:
    """Raises ConfigurationError naming the key or variable."""
    file, unknown = configuration.parse(text, KubeletFile, source=source)
    if not node_name:
        raise ConfigurationError("the node needs a name: give --node-name or set NODENAME")
    if not file.interlink_url:
        raise ConfigurationError(f"{source}: InterlinkURL: missing; set it to unix:///path or http://host")
    if file.concurrent_creates < 1:
        raise ConfigurationError(f"{source}: ConcurrentCreates: must be at least 1")
    if not file.drain_seconds >= 0:
        raise ConfigurationError(f"{source}: DrainSeconds: must not be negative, as {file.drain_seconds} is")
    kubeconfig = environment.get("KUBECONFIG")
    server = addresses.parse(file.interlink_url, file.interlink_port, key=f"{source}: InterlinkURL")
    return KubeletSettings(
        node_name=node_name,
        server=server,
        server_tls=_server_tls(server, file, source),
        token_file=Path(file.vk_token_file) if file.vk_token_file else None,
        kubeconfig=Path(kubeconfig) if kubeconfig else None,
        listen_host=environment.get("KUBELET_URL") or "0.0.0.0",  # noqa: S104 -- the API server must reach it
        listen_port=_port(environment.get("KUBELET_PORT") or "5820"),
        node_ip=_ip(environment.get("POD_IP") or "127.0.0.1"),
        certificate=_certificate(file, source),
        csr_signer=None if file.disable_csr else file.kubelet_csr_signer_name,
        certificate_directory=Path(file.kubelet_cert_dir) if file.kubelet_cert_dir else None,
        is_authenticating=file.kubelet_authentication == "webhook",
        client_authority=Path(file.kubelet_client_ca_file) if file.kubelet_client_ca_file else None,
        cluster_id=file.cluster_id,
        resources=_resources(file.resources, source),
        labels=_models(file.resources) | _labels(file.node_labels or [], source),
        taints=[_taint(item, source) for item in file.node_taints or []],
        concurrent_creates=file.concurrent_creates,
        kubernetes_for_pods=_kubernetes_for_pods(file, source),
        ca_for_pods=file.kubernetes_api_ca_crt,
        has_projected_volumes=not file.disable_projected_volumes,
        job_script_builder_url=file.job_script_builder_url,
        profiles=profiles.address(file.pprof, environment, port=6060, source=source),
        drain_s=file.drain_seconds,
        log_level="debug" if file.verbose_logging else "error" if file.errors_only_logging else "info",
        unknown_keys=unknown,
    )


def _ip(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise ConfigurationError(f"POD_IP: {text!r} is no IP address") from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ConfigurationError(f"KUBELET_PORT: {text!r} must be a number from 0 to 65535")
    return int(text)


def _kubernetes_for_pods(file: KubeletFile, source: str) -> tuple[str, int] | None:
    address, port = file.kubernetes_api_addr, str(file.kubernetes_api_port)
    if bool(address) != bool(port):
        raise ConfigurationError(f"{source}: KubernetesApiAddr and KubernetesApiPort must be set together")
    if port and not (port.isdecimal() and 0 < int(port) <= 65535):
        raise ConfigurationError(f"{source}: KubernetesApiPort: {port!r} must be a number from 1 to 65535")
    return (address, int(port)) if address else None


def _certificate(file: KubeletFile, source: str) -> tuple[Path, Path] | None:
    if bool(file.kubelet_cert_file) != bool(file.kubelet_key_file):
        raise ConfigurationError(f"{source}: KubeletCertFile and KubeletKeyFile must be set together")
    return (Path(file.kubelet_cert_file), Path(file.kubelet_key_file)) if file.kubelet_cert_file else None


def _server_tls(server: Address, file: KubeletFile, source: str) -> ssl.SSLContext | None:
    if server.scheme != "https":
        if file.tls.enabled:
            raise ConfigurationError(f"{source}: TLS.Enabled: InterlinkURL must start with https:// then")
        return None
    wanted = file.tls if file.tls.enabled else TLSFile()
    authority_key = f"{source}: TLS.CACertFile"
    if not wanted.ca_cert_file:
        wanted = msgspec.structs.replace(wanted, ca_cert_file=file.http.ca_cert)
        authority_key = f"{source}: HTTP.CaCert"
    return tls.client_context(wanted, key=f"{source}: TLS", authority_key=authority_key, is_insecure=file.http.insecure)


def _resources(setting: ResourcesSetting, source: str) -> dict[str, str]:
    named = {
        "cpu": ("CPU", setting.cpu),
        "memory": ("Memory", setting.memory),
        "pods": ("Pods", setting.pods),
        "ephemeral-storage": ("EphemeralStorage", setting.ephemeral_storage),
    }
    found = {name: _quantity(amount, f"{source}: Resources.{key}") for name, (key, amount) in named.items()}
    for number, item in enumerate(setting.accelerators or []):
        if "/" not in item.resource_type or not names.is_qualified(item.resource_type):
            raise ConfigurationError(
                f"{source}: Resources.Accelerators[{number}].ResourceType: {item.resource_type!r} must be a name with"
                " its domain, as nvidia.com/gpu"
            )
        found[item.resource_type] = _quantity(item.available, f"{source}: Resources.Accelerators[{number}].Available")
    return found


def _quantity(amount: str | int, key: str) -> str:
    try:
        if quantities.parse(amount) < 0:
            raise ConfigurationError(f"{key}: must not be negative, as {amount!r} is")
    except InvalidQuantity as error:
        raise ConfigurationError(f"{key}: {error}") from error
    return str(amount)


def _models(setting: ResourcesSetting) -> dict[str, str]:
    """nvidia.com/gpu of model A100 is nvidia-gpu-type=A100, as existing installations select by it."""
    return dict(_model(item) for item in setting.accelerators or [] if item.model and "/" in item.resource_type)


def _model(item: AcceleratorSetting) -> tuple[str, str]:
    domain, _, kind = item.resource_type.rpartition("/")
    value = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.model)[:63].strip("-_.")
    return f"{domain.partition('.')[0]}-{kind}-type", value


def _taint(setting: TaintSetting, source: str) -> Taint:
    if not (names.is_qualified(setting.key) and names.is_label_value(setting.value)):
        raise ConfigurationError(
            f"{source}: NodeTaints: {setting.key!r}={setting.value!r} is no key and value of a taint"
        )
    effect = setting.effect if setting.effect in _EFFECTS else "NoSchedule"
    return Taint(key=setting.key, value=setting.value, effect=effect)


def _labels(pairs: list[str], source: str) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise ConfigurationError(f"{source}: NodeLabels: {pair!r} must be key=value")
        key, value = pair.split("=", 1)
        if not (names.is_qualified(key) and names.is_label_value(value)):
            raise ConfigurationError(f"{source}: NodeLabels: {pair!r} is no key and value of a label")
    return dict(pair.split("=", 1) for pair in pairs)
