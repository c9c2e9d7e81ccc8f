"""What a user sees who starts a program with something wrong: one line, and exit code 2."""

from pathlib import Path

import pytest
import stamina
from click.testing import CliRunner, Result

from interlink.cli import pods
from interlink.cli.main import main

SERVER = "InterlinkAddress: http://127.0.0.1\nInterlinkPort: 0\nSidecarURL: http://127.0.0.1\nSidecarPort: 1\n"
UNUSABLE = "/dev/null/interlink"  # so that no program starts by mistake
VARIABLES: tuple[str, ...] = (
    "INTERLINKCONFIGPATH",
    "CONFIGPATH",
    "INTERLINKURL",
    "INTERLINKPORT",
    "SIDECARURL",
    "SIDECARPORT",
    "INTERLINK_SERVER",
    "INTERLINK_FAILPOINTS",
    "NODENAME",
    "KUBECONFIG",
)


def run(*arguments: object, **environment: str) -> Result:
    clean = dict.fromkeys(VARIABLES) | {"INTERLINK_DIR": UNUSABLE}
    return CliRunner(env=clean | environment).invoke(main, [str(argument) for argument in arguments])


def assert_one_line(result: Result, *, exit_code: int = 2) -> str:
    """The only line of the errors, without the word before it."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == exit_code
    *usage, last = result.stderr.strip().splitlines()
    assert all(line.startswith(("Usage:", "Try ")) or not line for line in usage), result.stderr
    assert (result.stdout, last.startswith("Error: ")) == ("", True)
    return last.removeprefix("Error: ")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


PROGRAMS = [("server",), ("virtual-kubelet", "--node-name", "vk"), ("plugin", "local")]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "--config: cannot read {}: No such file or directory"),
        (b"\xff", "--config: cannot read {}: it is not UTF-8 text"),
        (b"a: [", "{}: not valid YAML: "),
        (b"- a", "{}: expected keys and values, found a list"),
        (b"VerboseLogging: loud", "{}: VerboseLogging: expected `bool`"),
    ],
)
def test_a_configuration_file_that_cannot_be_used(
    config: Path, program: tuple[str, ...], content: bytes | None, text: str
) -> None:
    """The file is named, and the key where there is one."""
    if content is not None:
        config.write_bytes(content)

    assert assert_one_line(run(*program, "--config", config)).startswith(text.format(config))


def test_a_folder_is_no_configuration_file(tmp_path: Path) -> None:
    """Which the operating system says."""
    assert assert_one_line(run("server", "--config", tmp_path)).endswith(": Is a directory")


MISTAKES = [
    (("server",), "", "InterlinkAddress: missing"),
    (("server",), SERVER.replace("http:", "ftp:"), "InterlinkAddress: 'ftp://127.0.0.1' must start with"),
    (("server",), SERVER.replace("Port: 0", "Port: x"), "InterlinkAddress: the port 'x'"),
    (("server",), SERVER + "TLS: {Enabled: true}", "TLS.Enabled"),
    (("server",), SERVER.replace("http://127.0.0.1", "https://h", 1), "TLS: CertFile and KeyFile"),
    (("virtual-kubelet",), "InterlinkURL: http://h:1", "the node needs a name: give --node-name or set NODENAME"),
    (("virtual-kubelet", "--node-name", "vk"), "", "InterlinkURL: missing"),
    (("virtual-kubelet", "--node-name", "vk"), "InterlinkURL: h", "InterlinkURL: 'h' must start with"),
    (("plugin", "local"), "", "SidecarPort: missing"),
    (("plugin", "local"), "SidecarPort: x", "SidecarPort: the port 'x'"),
    (("plugin", "local"), "Socket: unix://s", "SidecarPort: 'unix://s' must name an absolute path"),
    (("plugin", "local"), "SidecarPort: 1\nMaxPods: 0", "MaxPods: must be at least 1"),
]


@pytest.mark.parametrize(("program", "content", "text"), MISTAKES)
def test_a_key_that_is_wrong_is_named(config: Path, program: tuple[str, ...], content: str, text: str) -> None:
    """With what is expected of it."""
    config.write_text(content)

    assert text in assert_one_line(run(*program, "--config", config))


def test_without_a_file_the_environment_is_named() -> None:
    """That is where the mistake is then."""
    assert assert_one_line(run("server", INTERLINKURL="h")).startswith("environment: InterlinkAddress: 'h'")


@pytest.mark.parametrize(
    ("program", "variable"),
    [(("server",), "INTERLINKCONFIGPATH"), (("virtual-kubelet", "--node-name", "vk"), "CONFIGPATH")],
)
def test_a_variable_may_name_the_file(config: Path, program: tuple[str, ...], variable: str) -> None:
    """As existing installations have it."""
    assert f"cannot read {config}" in assert_one_line(run(*program, **{variable: str(config)}))


def test_a_misspelt_failpoint_stops_the_start(config: Path) -> None:
    """A crash test never runs without its crash."""
    config.write_text(SERVER)

    assert "INTERLINK_FAILPOINTS" in assert_one_line(run("server", "--config", config, INTERLINK_FAILPOINTS="x=die"))


def test_a_directory_that_cannot_be_used_is_named(config: Path, tmp_path: Path) -> None:
    """Where a file is in its place, for example."""
    config.write_text(SERVER)
    (tmp_path / "taken").touch()

    error = assert_one_line(run("server", "--config", config, INTERLINK_DIR=f"{tmp_path}/taken"))
    assert error.startswith(f"cannot use INTERLINK_DIR {tmp_path}/taken: ")


def test_a_kubeconfig_that_is_not_there_is_named(config: Path, tmp_path: Path) -> None:
    """Before anything is listened on."""
    config.write_text("InterlinkURL: http://127.0.0.1:1")
    result = run("virtual-kubelet", "--node-name", "vk", "--config", config, KUBECONFIG=f"{tmp_path}/absent")

    assert assert_one_line(result).startswith(f"kubeconfig {tmp_path}/absent: ")


def test_an_unknown_command_is_said_to_be() -> None:
    """With exit code 2 as for any wrong use."""
    assert assert_one_line(run("serve")) == "No such command 'serve'."


@pytest.mark.parametrize("arguments", [[], ["server"], ["virtual-kubelet"], ["plugin"], ["pods"], ["cache"]])
def test_every_command_explains_itself(arguments: list[str]) -> None:
    """`--help` needs no configuration."""
    result = run(*arguments, "--help")

    assert (result.exit_code, "Usage:" in result.stdout) == (0, True)


# --- interlink pods --------------------------------------------------------------------------------------------------

NOWHERE = ("pods", "--server", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    "arguments", [("list",), ("show", "uid-1"), ("logs", "uid-1", "c"), ("delete", "uid-1")], ids=lambda a: a[0]
)
def test_a_server_that_is_away_is_one_line(arguments: tuple[str, ...]) -> None:
    """Nothing is wrong with the command, so the exit code is 1."""
    error = assert_one_line(run(*NOWHERE, *arguments), exit_code=1)

    assert error == "cannot reach the interLink server at http://127.0.0.1:9: Connection refused"


@pytest.mark.parametrize("owner", ["vk", "/vk", "c/", "a b/vk", "c/../vk"])
def test_an_owner_that_is_none_is_refused(owner: str) -> None:
    """It is CLUSTER/NODE."""
    assert "--owner" in assert_one_line(run("pods", "--owner", owner, "list"))


def test_a_manifest_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Before the server is asked."""
    assert f"{tmp_path}/absent" in assert_one_line(run(*NOWHERE, "submit", "-f", tmp_path / "absent"))


@pytest.mark.parametrize("content", ["a: [", "just words", "kind: Pod"])
def test_a_manifest_that_holds_no_pod_is_one_line(tmp_path: Path, content: str) -> None:
    """And nothing has been submitted."""
    (tmp_path / "m.yaml").write_text(content)
    result = run(*NOWHERE, "submit", "-f", tmp_path / "m.yaml", "--output", "json")

    assert not isinstance(result.exception, Exception), result.exception
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("server", ["h", "ftp://h", "http://h:x", "http://[::1"])
def test_a_server_address_that_is_none_is_a_mistake(server: str) -> None:
    """Exit code 2, as for a bad --owner."""
    assert "--server" in assert_one_line(run("pods", "--server", server, "list"))


def test_a_failed_submission_prints_no_table(tmp_path: Path) -> None:
    """Its error is all that there is to read."""
    (tmp_path / "m.yaml").write_text("{kind: Deployment, metadata: {name: d}}")

    error = assert_one_line(run(*NOWHERE, "submit", "-f", tmp_path / "m.yaml"), exit_code=1)
    assert error == f"{tmp_path}/m.yaml: Deployment d: expected Pod, Job, ConfigMap or Secret"


def test_a_submission_that_waits_says_why_once(capsys: pytest.CaptureFixture[str]) -> None:
    """In the words of the error, and again only when the reason is another one."""
    waiting = pods._Waiting()
    for reason in ("no server", "no server", "no plugin"):
        waiting.tell(retry(OSError(reason)))

    assert capsys.readouterr().err.splitlines() == ["Trying again: no server", "Trying again: no plugin"]


def retry(error: Exception) -> stamina.instrumentation.RetryDetails:
    return stamina.instrumentation.RetryDetails(
        name="create", args=(), kwargs={}, retry_num=1, wait_for=0.1, waited_so_far=0.0, caused_by=error
    )


def test_conformance_of_a_plugin_that_is_away_is_one_line() -> None:
    """Not a failure of each of its promises."""
    error = assert_one_line(run("conformance", "--plugin", "http://127.0.0.1:9"), exit_code=1)

    assert error == "cannot reach the plugin at http://127.0.0.1:9: Connection refused"
