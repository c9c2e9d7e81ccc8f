"""A real Slurm of a test's own: munge, slurmctld, slurmdbd with MariaDB where wanted, and nodes that share this host.

Everything lies in one private folder and listens on free ports of loopback. Each part can be killed, stopped, and
started again; at the end everything that was started is ended by its process id, jobs included. Needs root and the
Debian packages that `tools/setup.sh slurm` installs.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from interlink.testing import ports, waiting
from interlink.testing.daemons import Daemon
from interlink.testing.errors import DaemonError, UnavailableError

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "scontrol")
ACCOUNTING_PROGRAMS = ("slurmdbd", "sacctmgr", "sacct", "mariadbd", "mariadb-install-db", "mariadb")
ADVICE = "no Slurm: run tools/setup.sh slurm as root on Debian (packages slurm-wlm slurmdbd munge mariadb-server)"
READY_WITHIN_S = 30
COMMAND_TIMEOUT_S = 30
CPUS, MEMORY_MB, GPUS = 64, 64_000, 4
_GPU_FILES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")  # Slurm wants devices; nobody opens them


class SlurmSite:
    """Starts with the context, or with `start`, and ends with it.

    nodes: how many, each of 64 CPUs, 64000 MB and 4 GPUs. has_accounting: with slurmdbd. options: added to slurm.conf,
    or put in place of what it would hold. folder: an empty one, when not a new one.
    """

    def __init__(
        self,
        *,
        nodes: int = 2,
        has_accounting: bool = False,
        options: Mapping[str, object] = MappingProxyType({}),
        folder: Path | None = None,
    ) -> None:
        self._check_available(has_accounting=has_accounting)
        self.folder = folder or Path(tempfile.mkdtemp(prefix="interlink-slurm-"))
        self.folder.chmod(0o755)
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self.conf = self.folder / "slurm.conf"
        self.environ = {"PATH": _PATH, "SLURM_CONF": str(self.conf), "LANG": "C.UTF-8"}
        self.has_accounting = has_accounting
        self._options = dict(options)
        self._daemons: dict[str, Daemon] = {}
        self._is_stopped: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # Life

    def start(self) -> None:
        """Return once every node is idle. Raises DaemonError."""
        self._write_configuration()
        self._start_munge()
        if self.has_accounting:
            self._start_accounting()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.await_idle()

    def stop(self) -> None:
        """End all jobs and daemons and remove the folder. May be called again, and after a failed start."""
        for name in list(self._is_stopped):
            self._resume(name)
        if self._daemons.get("slurmctld") is not None and self._daemons["slurmctld"].pid is not None:
            with contextlib.suppress(DaemonError):
                self.cancel_all()
        for daemon in reversed(self._daemons.values()):
            daemon.stop(deadline_s=5)
        self._daemons.clear()
        self._end_steps()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_controller(self) -> None:
        """Start slurmctld, again if it was killed, and wait until it answers."""
        self._launch("slurmctld", [_program("slurmctld"), "-D", "-f", str(self.conf)])
        self._await("slurmctld", lambda: self._answers("scontrol", "ping", expected="is UP"))

    def kill_controller(self) -> None:
        """SIGKILL. On return it has ended."""
        self._daemons["slurmctld"].kill()

    def restart_controller(self) -> None:
        self.kill_controller()
        self.start_controller()
        self.await_nodes()

    def save_state(self, *, holding: str = "") -> Path:
        """A copy of what the controller has written down, once it holds this text: what a crash now would leave."""
        state = self.folder / "state"
        self._await("the controller's state file", lambda: holding.encode() in (state / "job_state").read_bytes())
        copy = Path(tempfile.mkdtemp(dir=self.folder, prefix="saved-"))
        self._await("a copy of the controller's state", lambda: _is_copied(state, copy))
        return copy

    def await_saved(self) -> None:
        """Return once the controller has written down every job as it is now: after a kill it knows them so."""
        mark = secrets.token_hex(8)
        job_ids = self.run("squeue", "-ho", "%A").split()
        for job_id in job_ids:
            self.run("scontrol", "update", f"jobid={job_id}", f"admincomment={mark}")
        file = self.folder / "state" / "job_state"
        self._await("the controller's state file", lambda: file.read_bytes().count(mark.encode()) >= len(job_ids))

    def crash_controller(self, saved: Path) -> None:
        """Kill it and start it from an earlier state: all that it acknowledged since is forgotten."""
        self.kill_controller()
        shutil.rmtree(self.folder / "state")
        shutil.copytree(saved, self.folder / "state")
        self.start_controller()
        self.await_nodes()

    def pause_controller(self) -> None:
        """SIGSTOP: it takes connections and answers nothing."""
        self._pause("slurmctld")

    def resume_controller(self) -> None:
        """SIGCONT; does nothing if it was not paused."""
        self._resume("slurmctld")

    def pause_node(self, name: str) -> None:
        """SIGSTOP its daemon: jobs are sent to it, and not launched; those that run go on."""
        self._pause(name)

    def resume_node(self, name: str) -> None:
        """SIGCONT; does nothing if it was not paused."""
        self._resume(name)

    def _pause(self, name: str) -> None:
        self._signal(name, signal.SIGSTOP)
        self._is_stopped.add(name)

    def _resume(self, name: str) -> None:
        if name in self._is_stopped:
            self._signal(name, signal.SIGCONT)
            self._is_stopped.discard(name)

    def start_node(self, name: str) -> None:
        self._launch(name, [_program("slurmd"), "-D", "-N", name, "-f", str(self.conf)])

    def kill_node(self, name: str) -> None:
        """SIGKILL the node's daemon and all that its jobs had started: what a power cut does."""
        self._daemons[name].kill()
        self._end_steps(name)

    def await_nodes(self) -> None:
        """Wait until every node has registered, which takes a new controller some seconds."""
        self._await("the nodes", lambda: not {"unk", "unk*"} & {state for _, state in self._node_states()})

    def _node_states(self) -> set[tuple[str, ...]]:
        return {tuple(line.split()) for line in self.run("sinfo", "-hNo", "%N %t").splitlines()}

    def await_idle(self) -> None:
        """Every node is there and has nothing to do. One that is drained or down is resumed, and once more when a
        controller that was killed has forgotten that."""
        expected = {(node, "idle") for node in self.nodes}

        def is_idle() -> bool:
            with contextlib.suppress(DaemonError):
                found = self._node_states()
                for node, state in found:
                    if state.startswith(("drain", "drng", "down")):
                        self.run("scontrol", "update", f"nodename={node}", "state=resume")
                return found == expected
            return False

        self._await("the nodes", is_idle)

    # Use

    def run(self, *argv: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """What a Slurm command prints. Raises DaemonError with its words if it fails."""
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, env=self.environ, timeout=timeout_s, check=False, cwd="/"
            )
        except subprocess.TimeoutExpired as error:
            raise DaemonError(f"{' '.join(argv)} took longer than {timeout_s} s") from error
        if done.returncode != 0:
            raise DaemonError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def cancel_all(self) -> None:
        """On return no job is in the queue."""
        self.cancel(self.run("squeue", "-ho", "%A").split())
        self._await("an empty queue", lambda: not self.run("squeue", "-ho", "%A").split())

    def cancel(self, job_ids: Sequence[str]) -> None:
        """End these jobs at once, those that have ended meanwhile included."""
        for options in (["--full", "--signal=KILL"], []) if job_ids else ():
            with contextlib.suppress(DaemonError):
                self.run("scancel", *options, *job_ids)

    def job_ids(self, name: str) -> list[str]:
        """The ids of all jobs of this name that the controller knows, ended ones included."""
        return self.run("squeue", "-ho", "%A", "--states=all", f"--name={name}").split()

    def state(self, job_id: str) -> str:
        """One word, or nothing when the controller does not know the job."""
        with contextlib.suppress(DaemonError):
            return self.run("squeue", "-ho", "%T", "--states=all", "-j", job_id).strip()
        return ""

    def pid(self, name: str) -> int | None:
        return self._daemons[name].pid

    def log(self, name: str) -> str:
        return self._daemons[name].tail(60)

    # Parts

    def _check_available(self, *, has_accounting: bool) -> None:
        _check_available(has_accounting=has_accounting)

    def _write_configuration(self) -> None:
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir()
        first = {node: ports.free() for node in self.nodes}
        options: dict[str, object] = _BASE | {
            "SlurmctldPort": ports.free(),
            "AuthInfo": f"socket={self.folder}/munge/socket",
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": f"{self.folder}/spool/%n",
            "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": f"{self.folder}/slurmd-%n.pid",
            "SlurmctldHost": "localhost(127.0.0.1)",
        }
        if self.has_accounting:
            self._database_port = ports.free()
            options |= {
                "AccountingStorageType": "accounting_storage/slurmdbd",
                "AccountingStorageHost": "127.0.0.1",
                "AccountingStoragePort": self._database_port,
                "AccountingStoragePass": f"{self.folder}/munge/socket",
                "AccountingStoreFlags": "job_comment",
            }
        lines = [f"{key}={value}" for key, value in (options | self._options).items()]
        lines += [
            f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={CPUS}"
            f" RealMemory={MEMORY_MB} Gres=gpu:{GPUS} State=UNKNOWN"
            for node, port in first.items()
        ]
        lines += [
            "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=10",
            "PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=CANCEL",
            "PartitionName=short Nodes=ALL MaxTime=10 State=UP PriorityTier=10",
        ]
        self.conf.write_text("\n".join(lines) + "\n")
        (self.folder / "gres.conf").write_text(f"Name=gpu File={','.join(_GPU_FILES)}\n")
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        folder.chmod(0o755)
        key = folder / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={folder / name}" for option, name in files.items()]
        self._launch("munged", [_program("munged"), "--foreground", "--force", f"--key-file={key}", *options])
        self._await("munged", (folder / "socket").exists)

    def _start_accounting(self) -> None:
        """MariaDB first, then slurmdbd, then the cluster's name: started the other way round it never registers."""
        data, socket = self.folder / "database", self.folder / "database.socket"
        install = ["--no-defaults", f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal"]
        subprocess.run([_program("mariadb-install-db"), *install], check=True, capture_output=True, timeout=60)
        port = ports.free()
        small = ["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]
        places = [f"--datadir={data}", f"--socket={socket}", f"--port={port}", f"--pid-file={self.folder}/database.pid"]
        self._launch(
            "mariadbd",
            [_program("mariadbd"), "--no-defaults", "--user=root", "--bind-address=127.0.0.1", *places, *small],
        )
        self._await("MariaDB", socket.exists)
        client = [_program("mariadb"), "--no-defaults", "--user=root", f"--socket={socket}", "-e", _GRANTS]
        self._await("MariaDB", lambda: subprocess.run(client, capture_output=True, timeout=30).returncode == 0)
        configuration = self.folder / "slurmdbd.conf"
        configuration.touch(mode=0o600)
        configuration.write_text(
            textwrap.dedent(f"""\
                AuthType=auth/munge
                AuthInfo=socket={self.folder}/munge/socket
                DbdHost=localhost
                DbdAddr=127.0.0.1
                DbdPort={self._database_port}
                SlurmUser=root
                StorageType=accounting_storage/mysql
                StorageHost=127.0.0.1
                StoragePort={port}
                StorageUser=slurm
                StoragePass=slurm
                StorageLoc=slurm
                PidFile={self.folder}/slurmdbd.pid
                """)
        )
        self._launch("slurmdbd", [_program("slurmdbd"), "-D"])
        self._await(
            "slurmdbd", lambda: self._answers("sacctmgr", "-i", "add", "cluster", "test", expected="", timeout_s=5)
        )

    def _launch(self, name: str, argv: Sequence[str]) -> None:
        if name not in self._daemons:
            self._daemons[name] = Daemon(argv, log=self.folder / f"{name}.log", environ=self.environ)
        self._daemons[name].start()

    def _answers(self, *argv: str, expected: str, timeout_s: float = COMMAND_TIMEOUT_S) -> bool:
        with contextlib.suppress(DaemonError):
            return expected in self.run(*argv, timeout_s=timeout_s)
        return False

    def _await(self, what: str, is_ready: Callable[[], bool]) -> None:
        def check() -> bool:
            for name, daemon in self._daemons.items():
                if name not in self.nodes:
                    daemon.check()
            return is_ready()

        if not waiting.until(check, deadline_s=READY_WITHIN_S):
            logs = "\n".join(f"--- {name}\n{daemon.tail()}" for name, daemon in self._daemons.items())
            raise DaemonError(f"{what} was not ready in {READY_WITHIN_S} s; ends of the logs:\n{logs}")

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._daemons[name].pid if name in self._daemons else None
        if pid is not None:
            os.kill(pid, number)

    def _end_steps(self, node: str = "") -> None:
        """Kill the step daemons of our nodes, and what they run: they outlive slurmd and carry our SLURM_CONF."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _is_step(entry, self.conf, node):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(entry.name), signal.SIGKILL)


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_GRANTS = (
    "create database if not exists slurm; create user if not exists slurm@'127.0.0.1' identified by 'slurm';"
    " grant all on slurm.* to slurm@'127.0.0.1'"
)
_BASE: dict[str, object] = {
    "ClusterName": "test",
    "AuthType": "auth/munge",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core_Memory",
    "ReturnToService": 2,
    "SlurmdParameters": "config_overrides",
    "JobAcctGatherType": "jobacct_gather/none",
    "MailProg": "/bin/true",
    "SchedulerParameters": "sched_interval=1,batch_sched_delay=0,bf_interval=1",
    "GresTypes": "gpu",
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "CANCEL",
    "DefMemPerCPU": 100,
    "KillWait": 2,
    "MessageTimeout": 3,
    "MinJobAge": 300,
    "MaxJobCount": 20000,
    "SlurmdTimeout": 300,
    "SlurmctldTimeout": 30,
    "UnkillableStepTimeout": 10,
    "SlurmctldDebug": "info",
    "SlurmdDebug": "info",
}


def _check_available(*, has_accounting: bool) -> None:
    wanted = PROGRAMS + (ACCOUNTING_PROGRAMS if has_accounting else ())
    missing = [name for name in wanted if shutil.which(name, path=_PATH) is None]
    if missing:
        raise UnavailableError(f"{ADVICE}; missing: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise UnavailableError("a Slurm of our own needs root")


def _is_copied(source: Path, target: Path) -> bool:
    """False when files went while they were copied: the controller replaces them as it likes."""
    try:
        shutil.copytree(source, target, dirs_exist_ok=True)
    except shutil.Error:
        return False
    return True


def _program(name: str) -> str:
    return shutil.which(name, path=_PATH) or name


def _is_step(process: Path, conf: Path, node: str) -> bool:
    """Whether a process belongs to a job of ours, here or on one node."""
    try:
        environ = (process / "environ").read_bytes().split(b"\0")
        name = (process / "comm").read_text().strip()
    except OSError:
        return False
    if f"SLURM_CONF={conf}".encode() not in environ:
        return False
    is_job = any(item.startswith(b"SLURM_JOB_ID=") for item in environ)
    if not (is_job or name == "slurmstepd"):
        return False
    return not node or not is_job or f"SLURMD_NODENAME={node}".encode() in environ
