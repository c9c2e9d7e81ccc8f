"""A real Kubernetes control plane on loopback: etcd, API server, controller manager, scheduler.

It is up in seconds, keeps everything in one private temporary folder, and leaves nothing behind. No kubelet
runs: a pod starts only when the test, or the virtual kubelet under test, provides its node.
"""

import http.client
import shutil
import ssl
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from interlink.testing import assets, certificates, commands, kubectl, ports, waiting
from interlink.testing.daemons import Daemon
from interlink.testing.errors import DaemonError, UnavailableError

READY_WITHIN_S = 60
STOPPED_WITHIN_S = 10
PORTS_TO_TRY = 4
GIVEN_TO_DEFAULT_NAMESPACE = (
    "/api/v1/namespaces/default/serviceaccounts/default",
    "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
)


class ControlPlane:
    """Starts with the context, or with `start`, and ends with it; satisfies `Cluster`.

    programs: the folder of the four programs; None asks `assets.find`. Without a controller manager or a
    scheduler it starts all the same, and `missing` names them.
    is_durable: etcd syncs to disk. Killing any daemon loses nothing either way, a power cut would.
    keep: all daemons outlive the context and this process; `folder` then holds `pids`.
    apiserver_args: added to the API server's command line.
    """

    def __init__(
        self,
        programs: Path | None = None,
        *,
        is_durable: bool = False,
        keep: bool = False,
        apiserver_args: Sequence[str] = (),
    ) -> None:
        self.programs = programs or _found()
        self._is_durable = is_durable
        self._keep = keep
        self._apiserver_args = list(apiserver_args)
        self.missing = assets.missing(self.programs)
        self.folder = Path(tempfile.mkdtemp(prefix="interlink-kube-"))
        self.kubeconfig = self.folder / "kubeconfig"
        self._authority = certificates.Authority(self.folder)
        self.ca, self.ca_key = self._authority.pair
        self.admin = self._authority.issue_client("admin", group="system:masters")
        self._layout = self._lay_out()
        self._port = 0
        self._daemons: dict[str, Daemon] = {}

    @property
    def url(self) -> str:
        """Where the API server answers; stays the same when it is restarted."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def client_ca(self) -> Path:
        """The authority of the certificate that the API server shows to kubelets."""
        return self.ca

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self._keep:
            self.stop()

    def start(self) -> None:
        """Return once the API answers and the default namespace has its service account. Raises DaemonError."""
        self._launch("etcd", commands.etcd(self._layout, is_durable=self._is_durable))
        self._start_on_a_free_port()
        if "kube-controller-manager" not in self.missing:
            self._launch("kube-controller-manager", commands.controller_manager(self._layout))
        if "kube-scheduler" not in self.missing:
            self._launch("kube-scheduler", commands.scheduler(self._layout))
        if "kube-controller-manager" not in self.missing:
            self._await("the default namespace", lambda: all(map(self._has, GIVEN_TO_DEFAULT_NAMESPACE)))
        self._note_pids()

    def stop(self) -> None:
        """End the daemons, last started first, and remove the folder. May be called again, and after a failed start."""
        for daemon in reversed(self._daemons.values()):
            daemon.stop(deadline_s=STOPPED_WITHIN_S)
        self._daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubectl(self, *arguments: str, input: str | None = None, timeout_s: float = 60) -> str:  # noqa: A002
        """What kubectl printed, run as an administrator with a cache of its own; raises KubectlError."""
        cache = self.folder / "kubectl"
        return kubectl.run(*arguments, kubeconfig=self.kubeconfig, cache=cache, stdin=input, timeout_s=timeout_s)

    def issue_serving(self, names: Sequence[str]) -> certificates.Pair:
        """Certificate and key for a kubelet at these names and addresses; the API server accepts it."""
        return self._authority.issue_serving(f"kubelet-{names[0]}", list(names))

    def issue_client(self, name: str, *, group: str | None = None) -> certificates.Pair:
        """Certificate and key of a Kubernetes user, for instance `system:node:NAME` in `system:nodes`."""
        return self._authority.issue_client(name, group=group)

    def kill_apiserver(self) -> None:
        """KILL the API server. On return it has ended."""
        self._daemons["kube-apiserver"].kill()

    def stop_apiserver(self) -> None:
        """Ask the API server to end. On return it has ended."""
        self._daemons["kube-apiserver"].stop(deadline_s=STOPPED_WITHIN_S)

    def start_apiserver(self) -> None:
        """Start the API server again at the same address and wait until it is ready."""
        self._daemons["kube-apiserver"].start()
        self._await("the API server", lambda: self._has("/readyz"))
        self._note_pids()

    def restart_apiserver(self) -> None:
        """Stop and start the API server."""
        self.stop_apiserver()
        self.start_apiserver()

    def _lay_out(self) -> commands.Layout:
        return commands.Layout(
            programs=self.programs,
            folder=self.folder,
            authority=self._authority.pair,
            serving=self._authority.issue_serving("kube-apiserver", ["127.0.0.1", "localhost", "kubernetes.default"]),
            kubelet_client=self._authority.issue_client("kube-apiserver-kubelet-client", group="system:masters"),
            signing_key=certificates.make_signing_key(self.folder / "service-accounts.key"),
            kubeconfig=self.kubeconfig,
        )

    def _start_on_a_free_port(self) -> None:
        for attempt in range(1, PORTS_TO_TRY + 1):
            self._port = ports.free()
            kubectl.write_config(self.kubeconfig, url=self.url, ca=self.ca, client=self.admin)
            try:
                self._start_new_apiserver()
            except DaemonError as error:
                if attempt == PORTS_TO_TRY or "address already in use" not in str(error):
                    raise
            else:
                return

    def _start_new_apiserver(self) -> None:
        has_controllers = "kube-controller-manager" not in self.missing
        argv = commands.apiserver(self._layout, self._port, has_controllers=has_controllers)
        self._launch("kube-apiserver", [*argv, *self._apiserver_args])
        self._await("the API server", lambda: self._has("/readyz"))

    def _launch(self, name: str, argv: list[str]) -> None:
        daemon = Daemon(argv, log=self.folder / f"{name}.log", is_detached=self._keep)
        daemon.start()
        self._daemons[name] = daemon

    def _note_pids(self) -> None:
        (self.folder / "pids").write_text("".join(f"{daemon.pid}\n" for daemon in self._daemons.values()))

    def _await(self, what: str, is_ready: Callable[[], bool]) -> None:
        def check() -> bool:
            for daemon in self._daemons.values():
                daemon.check()
            return is_ready()

        if not waiting.until(check, deadline_s=READY_WITHIN_S):
            logs = "\n".join(f"--- {name}\n{daemon.tail()}" for name, daemon in self._daemons.items())
            raise DaemonError(f"{what} was not ready in {READY_WITHIN_S} s; ends of the logs:\n{logs}")

    def _has(self, path: str) -> bool:
        """True if the API server answers 200 to a GET of this path."""
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(*self.admin)
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=5, context=context)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _found() -> Path:
    programs = assets.find()
    if programs is None:
        raise UnavailableError(assets.ADVICE)
    return programs
