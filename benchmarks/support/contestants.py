"""An implementation of the wire contract as three processes: the measuring plugin, a server, a virtual kubelet.

Server and virtual kubelet are commands that are configured by the existing configuration files (their paths in
INTERLINKCONFIGPATH and CONFIGPATH) and environment variables.
"""

import contextlib
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.support import processes
from benchmarks.support.stage import ROOT, Plugin
from interlink.sdk.addresses import Address
from interlink.sdk.transport import Link
from interlink.testing import ports
from interlink.testing.controlplane import ControlPlane
from interlink.testing.daemons import Daemon


class Commands(msgspec.Struct, frozen=True):
    name: str
    server: str
    virtual_kubelet: str


OURS = Commands(
    "interlink",
    f"{shlex.quote(sys.executable)} -m interlink server",
    f"{shlex.quote(sys.executable)} -m interlink virtual-kubelet",
)


class Contestant:
    """Use it as a context; leaving it ends its processes."""

    def __init__(self, commands: Commands, folder: Path, cluster: ControlPlane) -> None:
        self.node = f"bench-{commands.name}"
        self._plugin_port, self._server_port = ports.free(), ports.free()
        environment = self._environment(folder, cluster)
        argv = [sys.executable, "-m", "benchmarks.support.measuring_plugin", "--port", str(self._plugin_port)]
        self.daemons = {
            "plugin": Daemon(argv, log=folder / "plugin.log", environ={**environment, "PYTHONPATH": str(ROOT)}),
            "server": Daemon(shlex.split(commands.server), log=folder / "server.log", environ=environment),
            "virtual kubelet": Daemon(
                shlex.split(commands.virtual_kubelet), log=folder / "vk.log", environ=environment
            ),
        }
        self._spent = dict.fromkeys(self.daemons, 0.0)
        self._peaks = dict.fromkeys(self.daemons, 0.0)

    def __enter__(self) -> "Contestant":
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self.daemons.values()):
            daemon.stop()

    @contextlib.asynccontextmanager
    async def plugin(self) -> Any:
        link = Link(Address(scheme="http", host="127.0.0.1", port=self._plugin_port), peer="plugin")
        try:
            yield Plugin(link)
        finally:
            await link.close()

    def start(self, *names: str) -> None:
        for name in names:
            self.daemons[name].start()

    def kill(self, name: str) -> None:
        """SIGKILL; what it has used until now is remembered."""
        self._account(name)
        self.daemons[name].kill()

    def restart(self, name: str) -> float:
        """When it was started again."""
        self.kill(name)
        self.start(name)
        return time.monotonic()

    def used(self) -> dict[str, dict[str, float]]:
        """CPU seconds and peak memory (MB) of each program since the beginning, restarts included."""
        return {
            name: {"cpu_s": round(self._cpu_s(name), 2), "peak_mb": round(self._peak_mb(name))} for name in self.daemons
        }

    def cpu_s(self) -> float:
        """Of the server and the virtual kubelet together."""
        return self._cpu_s("server") + self._cpu_s("virtual kubelet")

    def _cpu_s(self, name: str) -> float:
        pid = self.daemons[name].pid
        return self._spent[name] + (processes.cpu_s(pid) if pid else 0.0)

    def _peak_mb(self, name: str) -> float:
        pid = self.daemons[name].pid
        return max(self._peaks[name], processes.memory(pid).peak_mb if pid else 0.0)

    def _account(self, name: str) -> None:
        self._spent[name], self._peaks[name] = self._cpu_s(name), self._peak_mb(name)

    def _environment(self, folder: Path, cluster: ControlPlane) -> dict[str, str]:
        kubelet_port = ports.free()
        pair = cluster.issue_serving(["127.0.0.1", self.node])
        server = self._file(
            folder / "InterLinkConfig.yaml",
            InterlinkAddress="http://127.0.0.1",
            InterlinkPort=str(self._server_port),
            SidecarURL="http://127.0.0.1",
            SidecarPort=str(self._plugin_port),
            DataRootFolder=str(folder),
        )
        kubelet = self._file(
            folder / "VirtualKubeletConfig.yaml",
            InterlinkURL="http://127.0.0.1",
            InterlinkPort=str(self._server_port),
            Resources={"CPU": "1000000", "Memory": "1000000Gi", "Pods": "1000000"},
            KubeletCertFile=str(pair.cert),
            KubeletKeyFile=str(pair.key),
        )
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            "INTERLINKCONFIGPATH": str(server),
            "INTERLINK_DIR": str(folder / "interlink"),
            "CONFIGPATH": str(kubelet),
            "NODENAME": self.node,
            "KUBECONFIG": str(cluster.kubeconfig),
            "KUBELET_URL": "127.0.0.1",
            "KUBELET_PORT": str(kubelet_port),
            "POD_IP": "127.0.0.1",
        }

    def _file(self, path: Path, **keys: object) -> Path:
        path.write_text(json.dumps(keys, indent=2) + "\n")
        return path


@contextlib.contextmanager
def started(commands: Commands, folder: Path, cluster: ControlPlane) -> Iterator[Contestant]:
    """Plugin and server run, the virtual kubelet does not yet."""
    folder.mkdir(parents=True)
    with Contestant(commands, folder, cluster) as contestant:
        contestant.start("plugin", "server")
        yield contestant
