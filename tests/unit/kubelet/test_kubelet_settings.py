"""The virtual kubelet's configuration: existing files, the environment, and what is wrong with them."""

from pathlib import Path
from typing import Any

import pytest

from interlink.kubelet import settings
from interlink.kubelet.settings import KubeletSettings
from interlink.model.errors import ConfigurationError
from interlink.sdk.addresses import Address
from interlink.wire.messages import Taint

BARE = "InterlinkURL: http://h\nInterlinkPort: 3000\n"
FULL = """
InterlinkURL: https://interlink.example
InterlinkPort: "443"
VKTokenFile: /tokens/t
VerboseLogging: true
ErrorsOnlyLogging: true
Resources:
  CPU: 12
  Memory: 64Gi
  Pods: "200"
  EphemeralStorage: 5T
  Accelerators:
    - {ResourceType: nvidia.com/gpu, Model: a100, Available: 2}
    - {ResourceType: xilinx.com/fpga, Available: "1"}
NodeLabels: ["a=b", "c.d/e=f", "f="]
NodeTaints:
  - {Key: k, Value: v, Effect: NoExecute}
  - {Key: l}
  - {Key: m, Effect: Never}
DrainSeconds: 30
KubeletCertFile: /c
KubeletKeyFile: /k
ClusterID: blue
ConcurrentCreates: 5
"""


def load(text: str = BARE, *, node_name: str = "vk", **environment: str) -> KubeletSettings:
    return settings.load(text, environment, source="vk.yaml", node_name=node_name)


def test_two_keys_are_enough() -> None:
    """Everything else has a default."""
    found = load()

    assert found.server == Address(scheme="http", host="h", port=3000)
    assert found.resources == {"cpu": "100", "memory": "3000G", "pods": "10000", "ephemeral-storage": "1000G"}
    assert (found.listen_host, found.listen_port, found.node_ip) == ("0.0.0.0", 5820, "127.0.0.1")
    assert (found.kubeconfig, found.token_file, found.certificate, found.cluster_id) == (None, None, None, "")
    assert (found.log_level, found.unknown_keys) == ("info", [])


FOUND: list[tuple[str, Any]] = [
    ("server", Address(scheme="https", host="interlink.example", port=443)),
    ("token_file", Path("/tokens/t")),
    (
        "resources",
        {
            "cpu": "12",
            "memory": "64Gi",
            "pods": "200",
            "ephemeral-storage": "5T",
            "nvidia.com/gpu": "2",
            "xilinx.com/fpga": "1",
        },
    ),
    ("labels", {"nvidia-gpu-type": "a100", "a": "b", "c.d/e": "f", "f": ""}),
    ("taints", [Taint("k", "NoExecute", "v"), Taint("l", "NoSchedule"), Taint("m", "NoSchedule")]),
    ("drain_s", 30.0),
    ("certificate", (Path("/c"), Path("/k"))),
    ("cluster_id", "blue"),
    ("concurrent_creates", 5),
    ("log_level", "debug"),
    ("unknown_keys", []),
]


@pytest.mark.parametrize(("field", "value"), FOUND, ids=[row[0] for row in FOUND])
def test_every_key_of_the_file_counts(field: str, value: Any) -> None:
    """As in existing files, numbers may be quoted or not."""
    assert getattr(load(FULL), field) == value


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("KUBECONFIG", "/kc", "kubeconfig", Path("/kc")),
        ("KUBECONFIG", "", "kubeconfig", None),
        ("KUBELET_URL", "127.0.0.1", "listen_host", "127.0.0.1"),
        ("KUBELET_PORT", "0", "listen_port", 0),
        ("KUBELET_PORT", "65535", "listen_port", 65535),
        ("KUBELET_PORT", "", "listen_port", 5820),
        ("POD_IP", "10.1.2.3", "node_ip", "10.1.2.3"),
    ],
)
def test_the_environment_says_where_we_are(variable: str, value: str, field: str, expected: Any) -> None:
    """An empty variable is as good as none."""
    assert getattr(load(**{variable: value}), field) == expected


@pytest.mark.parametrize(
    ("text", "level"),
    [("VerboseLogging: true", "debug"), ("ErrorsOnlyLogging: true", "error"), ("VerboseLogging: false", "info")],
)
def test_the_log_level_follows_from_two_switches(text: str, level: str) -> None:
    """Verbose wins over errors only."""
    assert load(BARE + text).log_level == level


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("", "csr_signer", "kubernetes.io/kubelet-serving"),
        ("KubeletCSRSignerName: example.com/s", "csr_signer", "example.com/s"),
        ("DisableCSR: true", "csr_signer", None),
        ("DisableCSR: true\nKubeletCSRSignerName: example.com/s", "csr_signer", None),
        ("", "has_projected_volumes", True),
        ("DisableProjectedVolumes: true", "has_projected_volumes", False),
        ("", "is_authenticating", True),
        ("KubeletAuthentication: none", "is_authenticating", False),
        ("JobScriptBuilderURL: http://b", "job_script_builder_url", "http://b"),
    ],
)
def test_a_key_by_itself(text: str, field: str, value: Any) -> None:
    """What stands alone in a file has its effect."""
    assert getattr(load(BARE + text), field) == value


@pytest.mark.parametrize(
    "text",
    [
        "SkipDownwardAPIResolution: true",
        "PodCIDR: {Subnet: 10.0.0.0/8, MaxPods: 3}",
        "Network: {EnableTunnel: true, TunnelImage: t, WildcardDNS: d}",
        "KubeletHTTP: {Insecure: true}",
        "VKConfigPath: /c\nServiceAccount: s\nNamespace: n\nPodIP: 10.0.0.1",
    ],
)
def test_keys_of_existing_files_that_mean_nothing_here(text: str) -> None:
    """They change nothing, and nobody is warned of them."""
    assert load(BARE + text) == load(BARE)


def test_unknown_keys_are_reported() -> None:
    """With their path; they are no error."""
    assert load(BARE + "Colour: red\nResources: {Ram: 1}").unknown_keys == ["Colour", "Resources.Ram"]


WRONG = [
    ("", "vk.yaml: InterlinkURL: missing"),
    ("InterlinkURL: h", "vk.yaml: InterlinkURL: 'h' must start with"),
    ("InterlinkURL: http://h", "vk.yaml: InterlinkURL: the port '' must be"),
    (BARE + "ConcurrentCreates: 0", "vk.yaml: ConcurrentCreates: must be at least 1"),
    (BARE + "KubeletCertFile: /c", "vk.yaml: KubeletCertFile and KubeletKeyFile"),
    (BARE + "KubeletKeyFile: /k", "vk.yaml: KubeletCertFile and KubeletKeyFile"),
    (BARE + "NodeLabels: [a]", "vk.yaml: NodeLabels: 'a' must be key=value"),
    (BARE + "NodeLabels: ['a b=c']", "vk.yaml: NodeLabels: 'a b=c' is no key and value"),
    (BARE + "NodeLabels: [a=b c]", "vk.yaml: NodeLabels: 'a=b c' is no key and value"),
    (BARE + "NodeTaints: [{Key: a b}]", "vk.yaml: NodeTaints: 'a b'"),
    (
        BARE + "Resources: {Accelerators: [{ResourceType: gpu, Available: 1}]}",
        "vk.yaml: Resources.Accelerators[0].ResourceType: 'gpu'",
    ),
    (BARE + "NodeTaints: [{Value: v}]", "vk.yaml: NodeTaints"),
    (BARE + "Resources: {Accelerators: [{Available: 1}]}", "vk.yaml: Resources.Accelerators"),
    (BARE + "Resources: {CPU: many}", "vk.yaml: Resources.CPU: 'many' is no quantity"),
    (BARE + "Resources: {Memory: -1Gi}", "vk.yaml: Resources.Memory: must not be negative"),
    (
        BARE + "Resources: {Accelerators: [{ResourceType: a/b, Available: x}]}",
        "vk.yaml: Resources.Accelerators[0].Available: 'x'",
    ),
    (BARE + "DrainSeconds: -1", "vk.yaml: DrainSeconds: must not be negative"),
    (BARE + "VerboseLogging: loud", "vk.yaml: VerboseLogging: "),
]


@pytest.mark.parametrize(("text", "error"), WRONG)
def test_a_wrong_file_is_refused_with_the_key(text: str, error: str) -> None:
    """The error begins with the file and the key."""
    with pytest.raises(ConfigurationError) as caught:
        load(text)

    assert str(caught.value).startswith(error)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "1.5", " "])
def test_a_wrong_port_is_refused_with_the_variable(port: str) -> None:
    """KUBELET_PORT is a number."""
    with pytest.raises(ConfigurationError, match=r"^KUBELET_PORT: "):
        load(KUBELET_PORT=port)


def test_a_node_needs_a_name() -> None:
    """The error says both ways to give it one."""
    with pytest.raises(ConfigurationError, match="--node-name or set NODENAME"):
        load(node_name="")


@pytest.mark.parametrize("address", ["node.example", "10.0.0", "10.0.0.1/24"])
def test_an_address_that_is_none_is_refused_with_the_variable(address: str) -> None:
    """POD_IP is an IP address, which certificates and pod statuses need."""
    with pytest.raises(ConfigurationError, match=r"^POD_IP: "):
        load(POD_IP=address)
