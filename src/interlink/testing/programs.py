"""The three programs as real processes on loopback, each to be killed and started again at will.

They are started as a user starts them, with configuration files in a folder of the test, and log into files there.
"""

import contextlib
import http.client
import json
import os
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from interlink.testing import ports, waiting
from interlink.testing.clusters import Cluster
from interlink.testing.controlplane import ControlPlane
from interlink.testing.daemons import Daemon
from interlink.testing.errors import DaemonError
from interlink.testing.slurm import SlurmSite

READY_WITHIN_S = 30
FAILPOINTS = "INTERLINK_FAILPOINTS"


class Program:
    """One of the three. `start` returns when it answers; `kill` when it is dead."""

    def __init__(
        self,
        arguments: list[str],
        *,
        log: Path,
        environ: Mapping[str, str],
        answers: Callable[[], bool],
        is_detached: bool = False,
    ) -> None:
        self.log = log
        self.argv = [sys.executable, "-m", "interlink", *arguments]
        self.environ = dict(environ)
        self._answers = answers
        self._is_detached = is_detached
        self._daemon: Daemon | None = None

    @property
    def pid(self) -> int | None:
        return self._daemon.pid if self._daemon else None

    def start(self, *, failpoints: str = "", is_awaited: bool = True) -> None:
        environ = {**self.environ, FAILPOINTS: failpoints} if failpoints else self.environ
        self._daemon = Daemon(self.argv, log=self.log, environ=environ, is_detached=self._is_detached)
        self._daemon.start()
        if is_awaited:
            self.await_ready()

    def await_ready(self) -> None:
        """Raises DaemonError with the end of its log when it does not answer in time."""

        def is_decided() -> bool:
            return self.pid is None or self._answers()

        if not waiting.until(is_decided, deadline_s=READY_WITHIN_S) or self.pid is None:
            raise DaemonError(f"{' '.join(self.argv[2:5])} did not come up; end of {self.log}:\n{self.tail()}")

    def kill(self) -> None:
        """SIGKILL; does nothing when it does not run."""
        if self._daemon:
            self._daemon.kill()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when it does not end in time."""
        if self._daemon:
            self._daemon.stop(deadline_s=20)

    def terminate(self, *, deadline_s: float = 20) -> int | None:
        """SIGTERM; the exit code, or None when it has not ended in time."""
        assert self._daemon is not None
        return self._daemon.terminate(deadline_s=deadline_s)

    def restart(self) -> None:
        self.kill()
        self.start()

    def await_death(self, *, deadline_s: float = 30) -> None:
        """Wait for a fail-point to kill it. Raises DaemonError when none does."""
        if not waiting.until(lambda: self.pid is None, deadline_s=deadline_s):
            raise DaemonError(f"{' '.join(self.argv[2:5])} lives on; its fail-point was not reached")

    def await_exit(self, *, deadline_s: float = 30) -> int | None:
        """The exit code, once it has ended by itself; None when it has not ended in time."""
        assert self._daemon is not None
        return self._daemon.await_exit(deadline_s=deadline_s)

    def tail(self) -> str:
        return self._daemon.tail() if self._daemon else ""


class Programs:
    """Plugin, server and, when there is a cluster, a virtual kubelet for one node."""

    def __init__(
        self,
        folder: Path,
        *,
        cluster: Cluster | None = None,
        node_name: str = "",
        status_interval_s: float = 0.5,
        is_detached: bool = False,
        plugin_port: int = 0,
        server_keys: Mapping[str, object] = MappingProxyType({}),
        kubelet_keys: Mapping[str, object] = MappingProxyType({}),
        kubeconfig: Path | None = None,
        site: SlurmSite | None = None,
        plugin_keys: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """`plugin_port`: of a plugin of the test's own, which then stands in for `plugin`; `server_keys`,
        `kubelet_keys` and `plugin_keys` go into the configuration files; `kubeconfig`: as whom the virtual kubelet
        speaks, if not as administrator; with a `site` the plugin is that for Slurm."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.jobs = folder / "jobs"
        self.cache = folder / "interlink" / "CachedPods"
        self.node_name = node_name
        self._has_own_plugin = plugin_port == 0
        self.plugin_port = plugin_port or ports.free()
        self.server_port, self.kubelet_port = ports.free(), ports.free()
        self._server_keys = {"StatusInterval": status_interval_s, **server_keys}
        self._kubelet_keys = dict(kubelet_keys)
        self._kubeconfig = kubeconfig
        self._is_detached = is_detached
        self.plugin = self._plugin(site, plugin_keys)
        self.server = self._program("server", ["server"], self._server_file(), self.server_port)
        self.kubelet = self._kubelet(cluster) if cluster else None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def all(self) -> dict[str, Program]:
        programs = {"plugin": self.plugin} if self._has_own_plugin else {}
        programs["server"] = self.server
        return programs | ({"virtual kubelet": self.kubelet} if self.kubelet else {})

    def start(self, *, failpoints: Mapping[Program, str] = MappingProxyType({})) -> None:
        """All at once, as on a machine that boots: none needs another to be there first."""
        for program in self.all().values():
            program.start(failpoints=failpoints.get(program, ""), is_awaited=False)
        for program in self.all().values():
            program.await_ready()

    def stop(self) -> None:
        for program in reversed(self.all().values()):
            program.stop()

    def wait_log(self, program: Program, text: str, *, deadline_s: float = 30) -> None:
        """Wait for a piece of text in a program's log. Raises DaemonError when it does not come."""
        if not waiting.until(lambda: text in program.log.read_text(), deadline_s=deadline_s):
            raise DaemonError(f"{text} did not come within {deadline_s} s; end of {program.log}:\n{program.tail()}")

    def get(self, path: str) -> str:
        """The server's answer, whatever its code. Raises OSError when it is away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read().decode()

    def _program(self, name: str, arguments: list[str], config: Path, port: int) -> Program:
        return Program(
            [*arguments, "--config", str(config)],
            log=self.folder / f"{name}.log",
            environ=_bare_environment(),
            answers=lambda: _answers(port, tls=None),
            is_detached=self._is_detached,
        )

    def _plugin(self, site: SlurmSite | None, keys: Mapping[str, object]) -> Program:
        keys = {"SidecarPort": self.plugin_port, "DataRootFolder": str(self.jobs), **keys}
        if site is None:
            return self._program("plugin", ["plugin", "local"], self._file("plugin.yaml", **keys), self.plugin_port)
        hurried = {"ContainerRuntime": "none", "SettleTime": 1, "LostJobGrace": 2, "CapacityInterval": 1}
        config = self._file("plugin.yaml", **(hurried | dict(keys)))
        program = self._program("plugin", ["plugin", "slurm"], config, self.plugin_port)
        program.environ["SLURM_CONF"] = str(site.conf)
        return program

    def _server_file(self) -> Path:
        keys: dict[str, object] = {
            "InterlinkAddress": "http://127.0.0.1",
            "InterlinkPort": self.server_port,
            "SidecarURL": "http://127.0.0.1",
            "SidecarPort": self.plugin_port,
            "InterlinkDir": str(self.cache.parent),
        }
        return self._file("server.yaml", **(keys | self._server_keys))

    def second_kubelet(self, cluster: Cluster) -> Program:
        """Another instance for the same node, which is not started yet."""
        return self._kubelet(cluster, name="second-virtual-kubelet", port=ports.free())

    def _kubelet(self, cluster: Cluster, *, name: str = "virtual-kubelet", port: int = 0) -> Program:
        port = port or self.kubelet_port
        keys: dict[str, object] = {"InterlinkURL": "http://127.0.0.1", "InterlinkPort": self.server_port}
        config = self._file(f"{name}.yaml", **(keys | self._certificate(cluster) | self._kubelet_keys))
        environment = {
            "KUBECONFIG": str(self._kubeconfig or cluster.kubeconfig),
            "KUBELET_URL": "127.0.0.1",
            "KUBELET_PORT": str(port),
            "POD_IP": "127.0.0.1",
        }
        return Program(
            ["virtual-kubelet", "--node-name", self.node_name, "--config", str(config)],
            log=self.folder / f"{name}.log",
            environ={**_bare_environment(), **environment},
            answers=lambda: _answers(port, tls=_unverified()),
            is_detached=self._is_detached,
        )

    def _certificate(self, cluster: Cluster) -> dict[str, object]:
        """Of the authority that our own API server trusts; a cluster of somebody else is asked for nothing."""
        if not isinstance(cluster, ControlPlane):
            return {"DisableCSR": True}
        pair = cluster.issue_serving(["127.0.0.1", self.node_name])
        return {"KubeletCertFile": str(pair.cert), "KubeletKeyFile": str(pair.key)}

    def _file(self, name: str, **keys: object) -> Path:
        path = self.folder / name
        path.write_text(json.dumps(keys, indent=2) + "\n")
        return path


def _bare_environment() -> dict[str, str]:
    """What a service manager gives: nothing that could configure the programs by accident."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in os.environ}


def _answers(port: int, tls: ssl.SSLContext | None) -> bool:
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    )
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status in (200, 401)  # the node's endpoint serves nobody it does not know
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _unverified() -> ssl.SSLContext:
    """For asking whether it answers, not for trusting what it says."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
