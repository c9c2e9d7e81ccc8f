"""The server's configuration: existing files, the environment, and what is wrong with them."""

import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

from interlink.model.errors import ConfigurationError
from interlink.sdk.addresses import Address
from interlink.server import settings
from interlink.server.settings import ServerSettings
from interlink.wire import codec
from interlink.wire.messages import ApptainerOptions, ScratchVolumes, ScriptBuildConfig, SingularityHubProxy

BARE = "InterlinkAddress: http://i\nInterlinkPort: 1\nSidecarURL: http://p\nSidecarPort: 2\n"
FULL = """
InterlinkAddress: unix:///run/i.sock
SidecarURL: http://plugin
SidecarPort: "4000"
InterlinkDir: /var/lib/interlink
StatusInterval: 0.5
JobLostGrace: 0
SweepInterval: 7
TombstoneLifetime: 8
CreateHold: 9
MaxPods: 10
MaxWaitingCreates: 11
MaxBodyBytes: 12
VerboseLogging: true
DataRootFolder: .interlink/
JobScriptTemplate: ""
Pprof: {Enabled: true, Address: 127.0.0.1, Port: 6060}
JobScriptBuildConfig:
  singularity_hub: {server: hub, master_token: t, cache_validity_seconds: 3}
  apptainer_options: {executable: /a, fakeroot: true, fuse_mode: overlayfs, no_privs: true}
  volumes_options:
    scratch_area: /s
    apptainer_cachedir: /c
    image_dir: /i
    additional_directories_in_path: [/x]
    fuse_sleep_seconds: 5
"""
SCRIPTS = ScriptBuildConfig(
    singularity_hub=SingularityHubProxy("hub", "t", 3),
    apptainer_options=ApptainerOptions(executable="/a", fakeroot=True, fuse_mode="overlayfs", no_privs=True),
    volumes=ScratchVolumes("/s", "/c", "/i", ["/x"], 5),
)


def load(text: str = BARE, **environment: str) -> ServerSettings:
    return settings.load(text, environment, source="i.yaml")


def test_two_addresses_are_enough() -> None:
    """Everything else has a default."""
    found = load()

    assert (found.address, found.plugin) == (Address("http", "i", 1), Address("http", "p", 2))
    assert (found.tls, found.plugin_tls, found.scripts, found.log_level) == (None, None, None, "info")
    assert (found.status_interval_s, found.job_lost_grace_s, found.create_hold_s) == (2, 60, 100)
    assert found.directory == Path.home() / ".interlink"


FOUND: list[tuple[str, Any]] = [
    ("address", Address("unix", socket="/run/i.sock")),
    ("plugin", Address("http", "plugin", 4000)),
    ("directory", Path("/var/lib/interlink")),
    ("status_interval_s", 0.5),
    ("job_lost_grace_s", 0),
    ("sweep_interval_s", 7),
    ("tombstone_lifetime_s", 8),
    ("create_hold_s", 9),
    ("max_pods", 10),
    ("max_waiting_creates", 11),
    ("max_body_bytes", 12),
    ("log_level", "debug"),
    ("scripts", SCRIPTS),
    ("unknown_keys", []),
]


@pytest.mark.parametrize(("field", "value"), FOUND, ids=[row[0] for row in FOUND])
def test_every_key_of_the_file_counts(field: str, value: Any) -> None:
    """Those of existing files, with their names and nesting, and our own."""
    assert getattr(load(FULL), field) == value


@pytest.mark.parametrize(
    ("option", "on_the_wire"),
    [
        ("fakeroot", "fakeroot"),
        ("containall", "containall"),
        ("no_init", "noInit"),
        ("no_home", "noHome"),
        ("no_privs", "noPrivs"),
        ("nvidia_support", "nvidiaSupport"),
        ("cleanenv", "cleanenv"),
        ("unsquash", "unsquash"),
    ],
)
def test_an_option_of_apptainer_is_told_to_builders_and_plugins(option: str, on_the_wire: str) -> None:
    """Under its name in the contract, and no other option with it."""
    scripts = load(BARE + f"JobScriptBuildConfig: {{apptainer_options: {{{option}: true}}}}").scripts
    told = msgspec.json.decode(codec.encode(scripts))["ApptainerOptions"]

    assert [name for name, value in told.items() if value is True] == [on_the_wire]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("VerboseLogging: true\nErrorsOnlyLogging: true", "log_level", "debug"),
        ("ErrorsOnlyLogging: true", "log_level", "error"),
        ("ErrorsOnlyLogging: false", "log_level", "info"),
        ("SidecarTokenFile: /t", "plugin_token_file", Path("/t")),
        ("", "plugin_token_file", None),
    ],
)
def test_a_key_by_itself(text: str, field: str, value: Any) -> None:
    """What stands alone in a file has its effect."""
    assert getattr(load(BARE + text), field) == value


ENVIRONMENT: list[tuple[dict[str, str], str, Any]] = [
    ({"INTERLINKURL": "http://e"}, "address", Address("http", "e", 1)),
    ({"INTERLINKPORT": "9"}, "address", Address("http", "i", 9)),
    ({"INTERLINKURL": "unix:///e"}, "address", Address("unix", socket="/e")),
    ({"SIDECARURL": "http://e"}, "plugin", Address("http", "e", 2)),
    ({"SIDECARPORT": "9"}, "plugin", Address("http", "p", 9)),
    ({"INTERLINK_DIR": "/e"}, "directory", Path("/e")),
    ({"INTERLINK_DIR": "~/e"}, "directory", Path.home() / "e"),
    ({"INTERLINKURL": "", "SIDECARPORT": ""}, "address", Address("http", "i", 1)),
]


@pytest.mark.parametrize(("environment", "field", "value"), ENVIRONMENT)
def test_the_environment_wins(environment: dict[str, str], field: str, value: Any) -> None:
    """Over the file, variable by variable; an empty one is as good as none."""
    assert getattr(load(BARE + "InterlinkDir: /f\n", **environment), field) == value


def test_the_environment_alone_is_enough() -> None:
    """No file is needed."""
    found = load("", INTERLINKURL="http://i", INTERLINKPORT="1", SIDECARURL="http://p", SIDECARPORT="2")

    assert (found.address, found.plugin) == (Address("http", "i", 1), Address("http", "p", 2))


def test_unknown_keys_are_reported() -> None:
    """With their path; they are no error."""
    assert load(BARE + "Colour: red\nTLS: {Cypher: x}").unknown_keys == ["Colour", "TLS.Cypher"]


WRONG = [
    ("", "i.yaml: InterlinkAddress: missing; set it (or INTERLINKURL)"),
    ("InterlinkAddress: http://i:1", "i.yaml: SidecarURL: missing; set it (or SIDECARURL)"),
    (BARE.replace("1", "x"), "i.yaml: InterlinkAddress: the port 'x'"),
    (BARE.replace("http://p", "ftp://p"), "i.yaml: SidecarURL: 'ftp://p' must start with"),
    (BARE + "StatusInterval: 0", "i.yaml: StatusInterval: must be more than 0"),
    (BARE + "StatusInterval: -1", "i.yaml: StatusInterval: must be more than 0"),
    (BARE + "StatusInterval: .nan", "i.yaml: StatusInterval: must be more than 0"),
    (BARE + "SweepInterval: 0", "i.yaml: SweepInterval: must be more than 0"),
    (BARE + "MaxPods: 0", "i.yaml: MaxPods: must be more than 0"),
    (BARE + "MaxWaitingCreates: 0", "i.yaml: MaxWaitingCreates: must be"),
    (BARE + "MaxBodyBytes: 0", "i.yaml: MaxBodyBytes: must be"),
    (BARE + "JobLostGrace: -1", "i.yaml: JobLostGrace: must not be negative"),
    (BARE + "TombstoneLifetime: -1", "i.yaml: TombstoneLifetime: must not be negative"),
    (BARE + "CreateHold: .nan", "i.yaml: CreateHold: must not be negative"),
    (BARE + "MaxPods: many", "i.yaml: MaxPods: expected `int`"),
    (BARE + "JobScriptTemplate: /t", "i.yaml: JobScriptTemplate: there is no file /t"),
    (BARE + "TLS: {Enabled: true}", "i.yaml: TLS.Enabled: InterlinkAddress must start with https://"),
]


@pytest.mark.parametrize(("text", "error"), WRONG)
def test_a_wrong_file_is_refused_with_the_key(text: str, error: str) -> None:
    """The error begins with the file and the key, and says what to set."""
    with pytest.raises(ConfigurationError) as caught:
        load(text)

    assert str(caught.value).startswith(error)


# --- TLS -------------------------------------------------------------------------------------------------------------

HTTPS = BARE.replace("http:", "https:")


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca`, `cert`, `key`, another `key2`, and `words`, which is none of them."""
    folder = tmp_path_factory.mktemp("pems")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(folder / "ca")
    issued.cert_chain_pems[0].write_to_path(folder / "cert")
    issued.private_key_pem.write_to_path(folder / "key")
    authority.issue_cert("localhost").private_key_pem.write_to_path(folder / "key2")
    (folder / "words").write_text("words")
    return folder


def block(name: str, folder: Path, **files: str) -> str:
    return f"{name}: {{{', '.join(f'{key}: {folder / file}' for key, file in files.items())}}}\n"


def test_https_has_a_certificate_and_asks_for_none(pems: Path) -> None:
    """Without an authority any client may come; TLS 1.2 is the least."""
    found = load(HTTPS + block("TLS", pems, CertFile="cert", KeyFile="key"))

    assert found.tls is not None
    assert (found.tls.verify_mode, found.tls.minimum_version) == (ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2)


def test_with_an_authority_clients_must_show_a_certificate(pems: Path) -> None:
    """Of that authority."""
    found = load(HTTPS + block("TLS", pems, CertFile="cert", KeyFile="key", CACertFile="ca"))

    assert found.tls is not None
    assert (found.tls.verify_mode, len(found.tls.get_ca_certs())) == (ssl.CERT_REQUIRED, 1)


def test_an_https_plugin_is_checked_against_its_authority(pems: Path) -> None:
    """And only against that one, by name."""
    text = HTTPS + block("TLS", pems, CertFile="cert", KeyFile="key") + block("SidecarTLS", pems, CACertFile="ca")
    found = load(text).plugin_tls

    assert found is not None
    assert (len(found.get_ca_certs()), found.check_hostname, found.verify_mode) == (1, True, ssl.CERT_REQUIRED)


TLS_ERRORS = [
    ("TLS", {}, "i.yaml: TLS: CertFile and KeyFile are needed"),
    ("TLS", {"CertFile": "cert"}, "i.yaml: TLS: CertFile and KeyFile are needed"),
    ("TLS", {"CertFile": "absent", "KeyFile": "key"}, "i.yaml: TLS.CertFile {0}/absent, i.yaml: TLS.KeyFile"),
    ("TLS", {"CertFile": "words", "KeyFile": "key"}, "i.yaml: TLS.CertFile {0}/words"),
    ("TLS", {"CertFile": "cert", "KeyFile": "key2"}, "i.yaml: TLS.CertFile {0}/cert, i.yaml: TLS.KeyFile {0}/key2"),
    ("TLS", {"CertFile": "cert", "KeyFile": "key", "CACertFile": "absent"}, "i.yaml: TLS.CACertFile {0}/absent"),
    ("TLS", {"CertFile": "cert", "KeyFile": "key", "CACertFile": "words"}, "i.yaml: TLS.CACertFile {0}/words"),
    ("SidecarTLS", {"CACertFile": "absent"}, "i.yaml: SidecarTLS.CACertFile {0}/absent"),
    ("SidecarTLS", {"CertFile": "cert", "KeyFile": "absent"}, "i.yaml: SidecarTLS.CertFile {0}/cert"),
]


@pytest.mark.parametrize(("name", "files", "error"), TLS_ERRORS)
def test_a_tls_file_that_cannot_be_used_is_named(pems: Path, name: str, files: dict[str, str], error: str) -> None:
    """With its key: absent, foreign or not belonging together."""
    good = block("TLS", pems, CertFile="cert", KeyFile="key") if name == "SidecarTLS" else ""
    with pytest.raises(ConfigurationError) as caught:
        load(HTTPS + good + block(name, pems, **files))

    assert str(caught.value).startswith(error.format(pems))
