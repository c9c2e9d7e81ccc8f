"""The runner, as real processes: one job directory, one `python3 runner.py run`, real signals and kills."""

import contextlib
import fcntl
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.pythons import AGES, Python

RUNNER = Path(__file__).parents[2] / "src/interlink/sdk/batch/runner.py"
on_every_python = pytest.mark.parametrize("python", AGES, indirect=True)
LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)", re.DOTALL)
IS_GONE = "while [ -e %s ]; do sleep 0.02; done"
IS_THERE = "until [ -e %s ]; do sleep 0.02; done"


def eventually(condition: Callable[[], Any], what: str = "the condition", within_s: float = 10) -> Any:
    """The first true value of `condition`."""
    give_up_at = time.monotonic() + within_s
    while time.monotonic() < give_up_at:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come within {within_s} s")


def container(name: str, script: str = "", **keys: Any) -> dict[str, Any]:
    return {"name": name, "image": "img", "argv": ["/bin/sh", "-c", script], **keys}


class Job:
    """A job directory and the runners that were started in it."""

    def __init__(self, path: Path, python: Python) -> None:
        self.path = path
        self.python = python
        self.runners: list[subprocess.Popen[bytes]] = []

    def write(self, *containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **keys: Any) -> None:
        names = {"tag": "il-c-u-a0", "pod_uid": "u", "namespace": "ns", "name": "pod", "attempt": 0}
        defaults = {"restart_policy": "Never", "grace_s": 5, "deadline_s": None, "backoff_base_s": 0.1}
        spec = {**names, **defaults, "init_containers": list(init), "containers": list(containers), **keys}
        (self.path / "spec.json").write_text(json.dumps(spec))

    def environment(self, name: str, pairs: list[tuple[bytes, bytes]]) -> str:
        """Write an environment file; returns its name for the specification."""
        texts = [[key.decode(), value.decode("utf-8", "surrogateescape")] for key, value in pairs]
        (self.path / "env").mkdir(exist_ok=True)
        (self.path / "env" / f"{name}.json").write_text(json.dumps(texts))
        return f"env/{name}.json"

    def start(self, failpoints: str = "", **options: Any) -> "subprocess.Popen[bytes]":
        env = {**os.environ, "LD_PRELOAD": "", "INTERLINK_FAILPOINTS": failpoints}
        argv = [*self.python, "-I", "-S", str(RUNNER), "run", str(self.path)]
        runner = subprocess.Popen(argv, cwd=self.path, env=env, stderr=subprocess.DEVNULL, **options)
        self.runners.append(runner)
        return runner

    def run(self, failpoints: str = "", **options: Any) -> int:
        return self.start(failpoints, **options).wait(15)

    def holder(self) -> int:
        """The process that runs the job."""
        return int(eventually(self.file("runner.lock").read_text))

    def state(self) -> dict[str, Any]:
        try:
            document = json.loads((self.path / "state.json").read_bytes())
        except FileNotFoundError:
            return {}
        assert isinstance(document, dict)
        return document

    def status(self, name: str) -> dict[str, Any]:
        state = self.state()
        statuses = state.get("initContainers", []) + state.get("containers", [])
        return next((status for status in statuses if status["name"] == name), {"state": {}})

    def terminated(self, name: str) -> dict[str, Any]:
        found = self.status(name)["state"]["terminated"]
        assert isinstance(found, dict)
        return found

    def is_running(self, name: str) -> bool:
        return "running" in self.status(name)["state"]

    def log(self, name: str, restart: int = 0) -> list[tuple[bytes, bytes, bytes]]:
        """The log's entries: stream, flag, bytes."""
        try:
            lines = (self.path / "logs" / name / f"{restart}.log").read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        found = [LINE.fullmatch(line) for line in lines]
        return [(match[1], match[2], match[3]) for match in found if match]

    def output(self, name: str, restart: int = 0) -> bytes:
        return b"".join(text + (b"\n" if flag == b"F" else b"") for _, flag, text in self.log(name, restart))

    def file(self, name: str) -> Path:
        return self.path / name

    def words(self, name: str) -> list[str]:
        """What programs have written into a shared file."""
        path = self.file(name)
        return path.read_text().split() if path.exists() else []


@pytest.fixture(name="job")
def _job(tmp_path: Path, python: Python) -> Iterator[Job]:
    path = tmp_path / "job"
    path.mkdir(mode=0o700)
    job = Job(path, python)
    yield job
    for runner in job.runners:
        if runner.poll() is None:
            os.kill(job.holder(), signal.SIGKILL)
        runner.wait()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# Order and ends

TICK_NS = 20_000_000
"""The kernel stamps files with the time of its last tick, a bell is set to the exact one."""


def test_init_containers_run_one_after_the_other_before_the_regular_ones(job: Job) -> None:
    """An init container starts when the one before it has succeeded."""
    init = (container("first", "sleep 0.2; echo first >> order"), container("second", "echo second >> order"))
    job.write(container("main", "echo main >> order"), init=init)

    assert job.run() == 0
    assert job.words("order") == ["first", "second", "main"]
    assert job.status("first")["ready"] is True
    assert job.state()["phase"] == "ended"


def test_whoever_looks_at_the_jobs_is_told_of_news(job: Job) -> None:
    """The bell beside the job directories is rung when the state has been written; a job without one runs as well."""
    bell = job.path.parent / ".bell"
    job.write(container("main", "test ! -e ../.bell"))
    assert job.run() == 0
    assert not bell.exists()

    other = Job(job.path.parent / "other", job.python)
    other.path.mkdir()
    bell.touch()
    os.utime(bell, (0, 0))
    other.write(container("main", "exit 3"))
    assert other.run() == 3
    assert bell.stat().st_mtime_ns >= (other.path / "state.json").stat().st_mtime_ns - TICK_NS


def test_a_failed_init_container_ends_the_pod(job: Job) -> None:
    """With restart policy Never the other containers stay waiting for ever."""
    job.write(container("main", "touch started"), init=(container("first", "exit 7"), container("second")))

    assert job.run() == 7
    assert job.status("main")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert not job.file("started").exists()


def test_a_failed_init_container_is_restarted(job: Job) -> None:
    """With restart policy OnFailure an init container runs until it succeeds."""
    job.write(
        container("main", "exit 0"),
        init=(container("first", "mkdir one && exit 1; exit 0"),),
        restart_policy="OnFailure",
    )

    assert job.run() == 0
    assert job.status("first")["restartCount"] == 1


def test_regular_containers_run_at_the_same_time(job: Job) -> None:
    """Two containers can wait for each other."""
    job.write(container("a", f"touch a; {IS_THERE % 'b'}"), container("b", f"touch b; {IS_THERE % 'a'}"))

    assert job.run() == 0


@on_every_python
def test_exit_codes_and_signals_are_recorded(job: Job) -> None:
    """A program that is killed by signal n has exit code 128+n; the runner exits with the highest code."""
    job.write(container("fine"), container("bad", "exit 3"), container("killed", "kill -9 $$"))

    assert job.run() == 137
    assert (job.terminated("fine")["exitCode"], job.terminated("fine")["reason"]) == (0, "Completed")
    assert (job.terminated("bad")["exitCode"], job.terminated("bad")["reason"]) == (3, "Error")
    assert (job.terminated("killed")["exitCode"], job.terminated("killed")["signal"]) == (137, 9)
    assert job.status("bad")["usage"]["peak_memory_bytes"] > 0


def test_a_program_that_cannot_be_started_is_named(job: Job) -> None:
    """A missing program is a StartError whose message says which."""
    job.write(container("main") | {"argv": ["/no/such/program"]})

    assert job.run() == 128
    assert job.terminated("main")["reason"] == "StartError"
    assert "/no/such/program: No such file" in job.terminated("main")["message"]


def test_what_cannot_be_run_is_refused_clearly(job: Job) -> None:
    """A gRPC probe starts nothing; the reason is on record."""
    job.write(container("main", "touch started", liveness_probe={"grpc": {"port": 1}}))

    assert job.run() == 128
    assert job.state()["reason"] == "InvalidSpec"
    assert "gRPC is not supported" in job.state()["message"]
    assert not job.file("started").exists()


def test_leftovers_of_a_programs_group_are_killed_with_it(job: Job) -> None:
    """What a program leaves in the background does not outlive it."""
    job.write(container("main", "sleep 60 & echo $!"))

    assert job.run() == 0
    assert not is_alive(int(job.output("main")))


def test_a_daemon_that_keeps_the_output_open_does_not_hang_the_end(job: Job) -> None:
    """A double-forked process in a session of its own is killed at the end of the job."""
    job.write(container("main", "setsid sh -c 'echo $$ > daemon; exec sleep 60' & until [ -s daemon ]; do :; done"))

    began = time.monotonic()
    assert job.run() == 0
    assert time.monotonic() - began < 4
    assert not is_alive(int(job.words("daemon")[0]))


# Exactly once


def test_runners_launched_at_the_same_time_start_the_job_once(job: Job) -> None:
    """One wins; the others leave everything alone, and their exit codes say that they did nothing."""
    job.write(container("main", "echo x >> starts; sleep 0.3; exit 5"))
    runners = [job.start() for _ in range(4)]

    assert sorted(runner.wait(15) for runner in runners) == [5, 98, 98, 98]
    assert job.words("starts") == ["x"]


def test_a_later_launch_does_nothing(job: Job) -> None:
    """A claimed attempt is never run again and its record is not touched; another attempt is."""
    job.write(container("main", "echo x >> starts"))
    job.run()
    before = job.file("state.json").stat().st_mtime_ns

    assert job.run() == 98
    assert job.file("state.json").stat().st_mtime_ns == before
    job.write(container("main", "echo x >> starts"), attempt=1)
    job.run()
    assert job.words("starts") == ["x", "x"]


@pytest.mark.parametrize(
    ("point", "starts"),
    [
        ("runner.claim.before", 1),
        ("runner.claim.after", 0),
        ("runner.start.before", 0),
        ("runner.start.after", 1),
        ("runner.state.before", 0),
        ("runner.state.after", 0),
    ],
)
def test_a_runner_killed_anywhere_starts_nothing_twice(job: Job, point: str, starts: int) -> None:
    """After kill -9 at any point of the start, a second launch never leads to a second run."""
    script = "echo x >> starts; sleep 60" if point == "runner.start.after" else "echo x >> starts"
    job.write(container("main", script))

    assert job.run(f"{point}=kill") == 137
    assert job.run() == (0 if point == "runner.claim.before" else 98)
    assert len(job.words("starts")) <= starts
    if point == "runner.claim.before":
        assert job.words("starts") == ["x"]


@on_every_python
def test_nothing_survives_a_killed_runner(job: Job) -> None:
    """kill -9 of the runner leaves no program behind, no daemon that a program has started, and no secret."""
    daemon = "setsid sh -c 'echo $$ >> pids; exec sleep 60' &"
    job.file("volumes/secret/one").mkdir(parents=True)
    job.file("volumes/secret/one/key").write_text("x")
    env_file = job.environment("main", [(b"PASSWORD", b"x")])
    job.write(container("main", f"{daemon} echo $$ >> pids; exec sleep 60", env_file=env_file))
    runner = job.start()
    pids = eventually(lambda: len(job.words("pids")) == 2 and job.words("pids"))
    os.kill(job.holder(), signal.SIGKILL)

    assert runner.wait(10) == 137
    assert not any(is_alive(int(pid)) for pid in pids)
    assert job.state()["phase"] == "running"
    assert not job.file("env").exists()
    assert not job.file("volumes/secret").exists()


def test_a_job_ends_in_order_when_its_guard_is_killed(job: Job) -> None:
    """The process that was launched only watches: without it the job is stopped as if it had been asked to."""
    job.write(container("main", "trap 'echo term; exit 3' TERM; echo up; while :; do sleep 0.02; done"))
    guard = job.start()
    eventually(lambda: job.output("main"))
    guard.kill()

    eventually(lambda: job.state()["phase"] == "ended", "the end of the job")
    assert job.terminated("main")["exitCode"] == 3


# What a program is given


@on_every_python
def test_environment_and_arguments_are_exact_to_the_byte(job: Job) -> None:
    """Every byte from 1 to 255 arrives; nothing of the runner's own environment does."""
    every = bytes(range(1, 256))
    env_file = job.environment("main", [(b"EVERY", every), (b"EMPTY", b"")])
    argument = every.decode("utf-8", "surrogateescape")
    script = 'cat /proc/self/environ; printf %s. "$1"'
    job.write(container("main", env_file=env_file) | {"argv": ["/bin/sh", "-c", script, "sh", argument]})

    assert job.run() == 0
    variables, _, argument_seen = job.output("main").rpartition(b"\0")
    ours = [item for item in variables.split(b"\0") if not item.startswith((b"PWD=", b"OLDPWD=", b"SHLVL=", b"_="))]
    assert sorted(ours) == sorted([b"EVERY=" + every, b"EMPTY="])
    assert argument_seen == every + b"."


def test_a_program_without_a_shell_gets_nothing_but_its_environment(job: Job) -> None:
    """Not even the variables that shells add."""
    env_file = job.environment("main", [(b"A", b"1")])
    job.write(container("main", env_file=env_file) | {"argv": ["/bin/cat", "/proc/self/environ"]})

    job.run()
    assert job.output("main") == b"A=1\0"


@on_every_python
def test_signals_and_files_are_as_in_a_fresh_process(job: Job) -> None:
    """No signal is blocked or ignored, whatever the job script did; no file is open but the first three."""
    script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0"
    job.write(container("main", f"exec sh -c {json.dumps(script)}") | {"argv": ["/bin/sh", "-c", script]})

    def ignore_and_block() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])

    assert job.run(preexec_fn=ignore_and_block) == 0
    blocked, ignored, files = job.output("main").decode().splitlines()
    of_the_c_library = 0b11 << 31  # signals 32 and 33: programs cannot change them, and a caller may have ignored them
    assert int(blocked.split()[1], 16) == 0
    assert int(ignored.split()[1], 16) & ~of_the_c_library == 0
    assert files == "0 1 2 3 /dev/null"


# Logs


@on_every_python
def test_log_lines_carry_time_stream_and_flag(job: Job) -> None:
    """The CRI format: long lines come in pieces of 16 KiB, and a last line without newline stays partial."""
    long = 16 * 1024 * 2 + 5
    job.write(container("main", f"echo out; head -c {long} /dev/zero | tr '\\0' x; echo; echo err >&2; printf end"))
    job.run()

    stdout = [(flag, text) for stream, flag, text in job.log("main") if stream == b"stdout"]
    piece = b"x" * 16 * 1024
    assert stdout == [(b"F", b"out"), (b"P", piece), (b"P", piece), (b"F", b"x" * 5), (b"P", b"end")]
    assert (b"stderr", b"F", b"err") in job.log("main")


def test_logs_are_complete_after_kill_9(job: Job) -> None:
    """All that a program wrote before it was killed is in its log."""
    job.write(container("main", "seq 1 30000; kill -9 $$"))
    job.run()

    assert job.output("main") == b"".join(b"%d\n" % number for number in range(1, 30001))


def test_binary_output_is_kept(job: Job, tmp_path: Path) -> None:
    """A log holds bytes, not text."""
    noise = os.urandom(200_000)
    (tmp_path / "noise").write_bytes(noise)
    job.write(container("main", f"cat {tmp_path}/noise"))
    job.run()

    assert job.output("main") == noise


def test_a_line_can_be_read_as_soon_as_it_is_written(job: Job) -> None:
    """Followers see a line while the program runs on."""
    job.write(container("main", f"echo now; {IS_THERE % 'seen'}"))
    runner = job.start()
    eventually(lambda: job.output("main") == b"now\n")
    job.file("seen").touch()

    assert runner.wait(10) == 0


def test_logs_are_rotated_by_size(job: Job) -> None:
    """With log_max_bytes a log is cut into log_max_files files; the newest lines are in N.log."""
    job.write(
        container("main", "for i in $(seq 1 60); do echo $i; sleep 0.002; done"), log_max_bytes=800, log_max_files=3
    )
    job.run()

    assert job.log("main")[-1][2] == b"60"
    assert {path.name for path in job.file("logs/main").iterdir()} == {"0.log", "0.log.1", "0.log.2"}


# Restarts


def test_a_failed_container_is_restarted_with_back_off(job: Job) -> None:
    """Between runs it waits in CrashLoopBackOff, twice as long each time, with the last end on record."""
    job.write(container("main", f"{IS_THERE % 'go'}; rm go; exit 4"), restart_policy="OnFailure", backoff_base_s=0.3)

    def waits_again(restarts: int) -> dict[str, Any] | None:
        status = job.status("main")
        is_it = status["state"].get("waiting") and status["lastState"] and status["restartCount"] == restarts
        return status if is_it else None

    job.start()
    job.file("go").touch()
    first = eventually(lambda: waits_again(0))
    job.file("go").touch()
    second = eventually(lambda: waits_again(1))

    assert first["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert "back-off 0.3s restarting failed container=main pod=pod_ns(u)" in first["state"]["waiting"]["message"]
    assert first["lastState"]["terminated"]["exitCode"] == 4
    assert "back-off 0.6s" in second["state"]["waiting"]["message"]


def test_a_restarted_container_keeps_a_log_for_each_run(job: Job) -> None:
    """OnFailure runs until success; restartCount tells the runs apart."""
    job.write(container("main", "mkdir one 2> /dev/null && exit 1; echo again"), restart_policy="OnFailure")

    assert job.run() == 0
    assert job.status("main")["restartCount"] == 1
    assert job.status("main")["lastState"]["terminated"]["exitCode"] == 1
    assert job.log("main", 1)[-1][2] == b"again"


def test_always_restarts_a_program_that_succeeded(job: Job) -> None:
    """Until the job is stopped; then the last end counts and nothing is started any more."""
    job.write(container("main", "echo x >> starts"), restart_policy="Always", backoff_base_s=0.02, backoff_cap_s=0.02)
    runner = job.start()
    eventually(lambda: len(job.words("starts")) >= 3)
    runner.terminate()

    assert runner.wait(10) == 0
    assert job.terminated("main")["exitCode"] == 0


def test_the_state_can_be_read_at_any_moment(job: Job) -> None:
    """state.json is replaced as a whole: a reader never sees half of it."""
    job.write(*(container(name) for name in "abc"), restart_policy="Always", backoff_base_s=0, backoff_cap_s=0)
    job.start()
    eventually(job.state)

    seen = [job.state()["containers"][0]["restartCount"] for _ in range(2000)]
    assert seen == sorted(seen)
    eventually(lambda: job.status("a")["restartCount"] > 3)


# Stopping


STUBBORN = "trap 'echo term' TERM; echo up; while :; do sleep 0.02; done"


@on_every_python
def test_term_comes_once_and_kill_after_the_grace_period(job: Job) -> None:
    """A program that ignores TERM is killed when its grace period is over."""
    job.write(container("main", STUBBORN), grace_s=0.3)
    runner = job.start()
    eventually(lambda: job.output("main"))
    runner.terminate()
    runner.send_signal(signal.SIGINT)

    assert runner.wait(10) == 137
    assert job.output("main") == b"up\nterm\n"
    assert job.state()["reason"] == "Terminated"


def test_term_goes_to_the_main_program_only(job: Job) -> None:
    """As in a container: the program decides what its children get."""
    child = "sh -c 'trap \"echo child\" TERM; while :; do sleep 0.02; done' &"
    job.write(container("main", f"{child} trap 'echo main; exit 0' TERM; echo up; while :; do sleep 0.02; done"))
    runner = job.start()
    eventually(lambda: job.output("main"))
    runner.terminate()

    assert runner.wait(10) == 0
    assert job.output("main") == b"up\nmain\n"


def test_a_job_cancelled_before_it_starts_runs_nothing(job: Job) -> None:
    """The record says so, for every container."""
    job.write(container("main", "touch started"), init=(container("first", "touch started"),))
    job.file("cancelled").touch()

    assert job.run() == 143
    assert job.state()["phase"] == "ended"
    assert {job.status(name)["state"]["waiting"]["reason"] for name in ("first", "main")} == {"Cancelled"}
    assert not job.file("started").exists()


@on_every_python
def test_a_running_job_sees_that_it_is_cancelled(job: Job) -> None:
    """The file is enough; it may grant a shorter grace period, and a still shorter one later."""
    job.write(container("main", STUBBORN), grace_s=60)
    runner = job.start()
    eventually(lambda: job.output("main"))
    job.file("cancelled").write_text('{"grace_s": 50}')
    eventually(lambda: job.output("main") == b"up\nterm\n")
    job.file("cancelled").write_text('{"grace_s": 0}')

    assert runner.wait(10) == 137
    assert job.state()["reason"] == "Cancelled"


def test_a_stopped_job_starts_nothing_more(job: Job) -> None:
    """A stop while init containers run leaves the regular ones waiting."""
    job.write(container("main", "touch started"), init=(container("first", "echo up; exec sleep 60"),))
    runner = job.start()
    eventually(lambda: job.output("first"))
    runner.terminate()

    assert runner.wait(10) == 143
    assert job.status("main")["state"]["waiting"]["reason"] == "Cancelled"
    assert not job.file("started").exists()


def test_the_deadline_stops_the_job(job: Job) -> None:
    """activeDeadlineSeconds, with the words that a kubelet uses."""
    job.write(container("main", "exec sleep 60"), deadline_s=0.4)

    assert job.run() == 143
    assert job.state()["reason"] == "DeadlineExceeded"
    assert job.state()["message"] == "Pod was active on the node longer than the specified deadline"


def test_users_signals_reach_the_programs(job: Job) -> None:
    """What a batch system sends ahead of its time limit does not end the runner."""
    job.write(container("main", "trap 'exit 9' USR1; echo up; while :; do sleep 0.02; done"))
    runner = job.start()
    eventually(lambda: job.output("main"))
    runner.send_signal(signal.SIGHUP)
    runner.send_signal(signal.SIGUSR1)

    assert runner.wait(10) == 9


def test_secrets_are_removed_at_the_end(job: Job) -> None:
    """Environments and secret volumes go; other volumes stay."""
    env_file = job.environment("main", [(b"PASSWORD", b"x")])
    for kind in ("secret", "empty"):
        job.file(f"volumes/{kind}/one").mkdir(parents=True)
    job.file("volumes/secret/one/key").write_text("x")
    job.file("volumes/secret/one/link").symlink_to("key")
    job.write(container("main", env_file=env_file))

    assert job.run() == 0
    assert not job.file("env").exists()
    assert [path.name for path in job.file("volumes").iterdir()] == ["empty"]


# Termination messages


def test_the_termination_message_is_read_from_its_file(job: Job) -> None:
    """At most 4,096 bytes of it, and not the message of an earlier run."""
    message = str(job.file("message"))
    job.file("message").write_text("old")
    script = "mkdir one && exit 1; head -c 5000 /dev/zero | tr '\\0' m > message; exit 0"
    job.write(container("main", script, termination_message_path=message), restart_policy="OnFailure")

    job.run()
    assert job.terminated("main")["message"] == "m" * 4096
    assert "message" not in job.status("main")["lastState"]["terminated"]


@on_every_python
def test_the_log_stands_in_for_the_message_of_a_failure(job: Job) -> None:
    """FallbackToLogsOnError gives the last 80 lines or 2,048 bytes, only on failure."""
    policy = {"termination_message_policy": "FallbackToLogsOnError", "termination_message_path": str(job.file("none"))}
    job.write(container("bad", "seq 1 100; exit 1", **policy), container("good", "echo x", **policy))

    job.run()
    assert job.terminated("bad")["message"].split() == [str(number) for number in range(21, 101)]
    assert "message" not in job.terminated("good")


def test_a_termination_message_that_is_a_link_or_a_pipe_is_not_read(job: Job) -> None:
    """The file belongs to the program: it must not lead the runner astray."""
    job.file("target").write_text("secret")
    script = "ln -s target link; mkfifo pipe"
    job.write(
        container("link", script, termination_message_path=str(job.file("link"))),
        container("pipe", IS_THERE % "pipe", termination_message_path=str(job.file("pipe"))),
    )

    assert job.run() == 0
    assert "message" not in job.terminated("link")


# Sidecars


@on_every_python
def test_sidecars_start_first_and_stop_last(job: Job) -> None:
    """In reverse order, after the regular containers; their exit codes do not count."""

    def sidecar(name: str) -> dict[str, Any]:
        script = f"trap 'echo -{name} >> order; exit 1' TERM; echo +{name} >> order; while :; do sleep 0.02; done"
        started = {"exec": ["grep", "-q", f"[+]{name}", "order"], "period_s": 0.05, "failure_threshold": 100}
        return container(name, script, sidecar=True, startup_probe=started)

    job.write(container("main", "echo main >> order"), init=(sidecar("a"), sidecar("b")))

    assert job.run() == 0
    assert job.words("order") == ["+a", "+b", "main", "-b", "-a"]


def test_a_sidecar_is_restarted_whatever_the_policy(job: Job) -> None:
    """Even with restart policy Never, and after success."""
    sidecar = container("side", "echo x >> starts", sidecar=True)
    wait = 'until [ "$(wc -l < starts)" -ge 2 ]; do sleep 0.02; done'
    job.write(container("main", wait), init=(sidecar,), backoff_base_s=0.02)

    assert job.run() == 0
    assert job.status("side")["restartCount"] >= 1


# Probes and hooks


def probe(action: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {**action, "period_s": 0.05, "timeout_s": 1, "failure_threshold": 1, **keys}


def test_the_startup_probe_holds_back_started_and_ready(job: Job) -> None:
    """A container is started and ready once its startup probe has passed."""
    startup = probe({"exec": ["test", "-e", "up"]}, failure_threshold=1000)
    job.write(container("main", IS_THERE % "end", startup_probe=startup))
    job.start()
    eventually(lambda: job.is_running("main"))

    assert (job.status("main")["started"], job.status("main")["ready"]) == (False, False)
    job.file("up").touch()
    eventually(lambda: job.status("main")["started"] and job.status("main")["ready"])


def test_the_readiness_probe_sets_ready_only(job: Job) -> None:
    """Ready comes and goes while the container runs on."""
    job.write(container("main", IS_THERE % "end", readiness_probe=probe({"exec": ["test", "-e", "up"]})))
    runner = job.start()
    eventually(lambda: job.is_running("main"))
    assert job.status("main")["ready"] is False
    job.file("up").touch()
    eventually(lambda: job.status("main")["ready"])
    job.file("up").unlink()
    eventually(lambda: not job.status("main")["ready"])
    job.file("end").touch()

    assert runner.wait(10) == 0
    assert job.status("main")["restartCount"] == 0


def test_a_failed_liveness_probe_restarts_the_container(job: Job) -> None:
    """The program is stopped as in a deletion; then the restart policy decides."""
    liveness = probe({"exec": ["sh", "-c", "! test -e sick"]})
    script = "rm -f sick; trap 'exit 6' TERM; echo up; while :; do sleep 0.02; done"
    job.write(container("main", script, liveness_probe=liveness), restart_policy="OnFailure", backoff_base_s=0.02)
    job.start()
    eventually(lambda: job.output("main"))
    job.file("sick").touch()

    eventually(lambda: job.output("main", 1))
    assert job.status("main")["lastState"]["terminated"]["exitCode"] == 6


def failing(job: Job) -> dict[str, str]:
    """What the failing probes of `main` say."""
    found: dict[str, str] = job.status("main").get("interlink", {}).get("failing", {})
    return found


@on_every_python
def test_a_failing_probe_leaves_its_words_until_it_succeeds(job: Job) -> None:
    """What its command printed, in one line that can be shown anywhere, and not all of it."""
    strange = "printf 'no\\033[31m way\\n\\001 out\\n'; test -e up"
    long = "test -e up || { head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1; }"
    job.write(
        container(
            "main",
            IS_THERE % "end",
            readiness_probe=probe({"exec": ["sh", "-c", strange]}),
            liveness_probe=probe({"exec": ["sh", "-c", long]}, failure_threshold=99),
        )
    )
    job.start()

    said = eventually(lambda: len(failing(job)) == 2 and failing(job))
    assert said == {"liveness": "x" * 200, "readiness": "no way ? out"}
    job.file("up").touch()
    eventually(lambda: job.status("main")["ready"] and not failing(job))


def test_a_probe_that_prints_nothing_has_an_exit_code(job: Job) -> None:
    """And is forgotten when the program is started again."""
    liveness = probe({"exec": ["sh", "-c", "test -e again || exit 3"]}, initial_delay_s=0.3)
    script = "[ -e end ] && touch again; echo up; exec sleep 60"
    job.write(container("main", script, liveness_probe=liveness), restart_policy="Always", backoff_base_s=1)
    job.start()
    eventually(lambda: job.status("main").get("lastState"), "the wait for the next start")
    assert failing(job) == {"liveness": "command exited with code 3"}
    job.file("end").touch()

    eventually(lambda: job.status("main")["restartCount"] == 1 and job.is_running("main"), "the next start")
    assert "interlink" not in job.status("main")


@on_every_python
def test_a_probe_that_hangs_counts_as_failed(job: Job) -> None:
    """An exec probe is killed at its timeout."""
    job.write(container("main", "exec sleep 60", liveness_probe=probe({"exec": ["sleep", "50"]}, timeout_s=0.1)))

    assert job.run() == 143


@pytest.fixture(name="web")
def _web() -> Iterator[tuple[str, int, list[str]]]:
    """A web server: its host, port and the paths it was asked for; `/bad` is an error."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers['Host']}")
            self.send_response(500 if self.path == "/bad" else 204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield "127.0.0.1", server.server_port, asked
        server.shutdown()
        thread.join()


@on_every_python
def test_http_and_tcp_probes_ask_the_network(job: Job, web: tuple[str, int, list[str]]) -> None:
    """2xx and an open port are success; headers, also Host, are sent as given."""
    host, port, asked = web
    ready = {"http": {"url": f"http://{host}:{port}/ok?a=1", "headers": [["Host", "pod.example"]]}}
    job.write(
        container("web", IS_THERE % "end", readiness_probe=probe(ready)),
        container("tcp", IS_THERE % "end", readiness_probe=probe({"tcp": {"host": host, "port": port}})),
    )
    job.start()

    eventually(lambda: job.status("web").get("ready") and job.status("tcp").get("ready"))
    assert asked[0] == "/ok?a=1 pod.example"


def test_http_errors_and_closed_ports_fail_probes(job: Job, web: tuple[str, int, list[str]]) -> None:
    """Both stop a container whose liveness they are."""
    host, port, _ = web
    with socket.create_server((host, 0)) as unused:
        closed = unused.getsockname()[1]
    job.write(
        container("web", "exec sleep 60", liveness_probe=probe({"http": {"url": f"http://{host}:{port}/bad"}})),
        container("tcp", "exec sleep 60", liveness_probe=probe({"tcp": {"host": host, "port": closed}})),
    )

    assert job.run() == 143
    web_said, tcp_said = (status["interlink"]["failing"]["liveness"] for status in job.state()["containers"])
    assert web_said == "HTTP probe failed with statuscode: 500"
    assert tcp_said == f"dial tcp {host}:{closed}: Connection refused"


def test_post_start_runs_with_the_containers_environment(job: Job) -> None:
    """Right after the start; until it is done the container is not ready."""
    env_file = job.environment("main", [(b"NAME", b"value"), (b"PATH", b"/usr/bin:/bin")])
    hook = {"exec": ["sh", "-c", f"echo $NAME > hook; {IS_THERE % 'go'}"]}
    job.write(container("main", IS_THERE % "end", post_start=hook, env_file=env_file))
    job.start()

    assert eventually(lambda: job.words("hook")) == ["value"]
    assert job.status("main")["ready"] is False
    job.file("go").touch()
    eventually(lambda: job.status("main")["ready"])


def test_a_failed_post_start_stops_the_container(job: Job) -> None:
    """The program gets TERM; then the restart policy decides."""
    job.write(container("main", "exec sleep 60", post_start={"exec": ["false"]}))

    assert job.run() == 143


def test_pre_stop_runs_before_term_within_the_grace_period(job: Job) -> None:
    """A hook that takes too long is cut off, and TERM still comes."""
    script = "trap 'echo term >> order; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    hook = {"exec": ["sh", "-c", "echo hook >> order"]}
    slow = {"exec": ["sleep", "50"]}
    job.write(container("main", script, pre_stop=hook), container("slow", script, pre_stop=slow), grace_s=1)
    runner = job.start()
    eventually(lambda: job.output("main") and job.output("slow"))
    runner.terminate()

    assert runner.wait(10) == 0
    assert job.words("order") == ["hook", "term", "term"]


def test_an_exec_probe_runs_inside_the_container(job: Job) -> None:
    """By way of the words that lead into it."""
    inside = ["/bin/sh", "-c", 'echo "$@" > asked', "inside"]
    job.write(container("main", IS_THERE % "end", inside=inside, post_start={"exec": ["a b", "$c"]}))
    job.start()

    assert eventually(lambda: job.words("asked")) == ["a", "b", "$c"]


# What only the machine of the job knows


@on_every_python
def test_variables_of_the_job_are_passed_on(job: Job) -> None:
    """Those that are named, under their new names, and a home in any case; the container's own win."""
    env_file = job.environment("main", [(b"SECOND", b"own")])
    passed = {"PATH": "FIRST", "LANG": "SECOND", "NO_SUCH": "THIRD", "HOME": "HOME"}
    job.write(container("main", "/usr/bin/env > env.txt", passed=passed, env_file=env_file))

    assert job.run() == 0
    found = dict(line.split("=", 1) for line in job.words("env.txt"))
    assert (found["FIRST"], found["SECOND"], "THIRD" in found) == (os.environ["PATH"], "own", False)
    assert Path(found["HOME"]).is_absolute()


def test_a_program_is_found_on_the_jobs_own_path(job: Job) -> None:
    """Not on that of the container; one that the machine lacks fails the start, with its name."""
    env_file = job.environment("main", [(b"PATH", b"/nowhere")])
    main = container("main", env_file=env_file, argv=["/bin/echo", "sh"], program_at=1)
    job.write(main, container("other", argv=["no-such-program"], program_at=0))

    assert job.run() == 128
    assert job.output("main").strip().endswith(b"/sh")
    assert job.terminated("other")["message"] == "cannot start: no-such-program: not found on this machine"


@pytest.fixture(name="top")
def _top() -> Iterator[Path]:
    """A directory that the runner makes."""
    top = Path("/dev/shm", f"interlink-test-{os.getpid()}")
    yield top
    shutil.rmtree(top, ignore_errors=True)


def test_directories_of_the_machine_live_as_long_as_the_job(job: Job, top: Path) -> None:
    """Nobody else enters them; what an earlier job had left is not seen."""
    (top / "v").mkdir(parents=True)
    (top / "v" / "old").touch()
    script = f"ls {top}/v > seen; stat -c %a {top} {top}/v/w >> seen; touch {top}/v/new; {IS_THERE % 'end'}"
    job.write(container("main", script), node_directories={str(top): ["v", "v/w"]})
    runner = job.start()
    eventually((top / "v" / "new").exists)
    job.file("end").touch()

    assert runner.wait(10) == 0
    assert job.words("seen") == ["w", "700", "1777"]
    assert not top.exists()


def test_directories_of_the_machine_go_when_the_runner_is_killed(job: Job, top: Path) -> None:
    """The process that watches over it removes them."""
    job.write(container("main", IS_THERE % "end"), node_directories={str(top): ["v"]})
    runner = job.start()
    eventually(lambda: job.is_running("main"))
    os.kill(job.holder(), signal.SIGKILL)
    runner.wait(10)

    assert not top.exists()


def test_directories_that_killed_jobs_have_left_are_removed(job: Job, top: Path) -> None:
    """By the next job of the user there: memory that nobody uses is given back. What a living job has stays."""
    dead, living = top.with_name(f"{top.name}-dead"), top.with_name(f"{top.name}-living")
    for path in (dead, living):
        path.mkdir()
        (path / ".held").touch()
    try:
        with (living / ".held").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            job.write(container("main", "true"), node_directories={str(top): ["v"]})

            assert job.run() == 0
        assert (dead.exists(), living.exists(), top.exists()) == (False, True, False)
    finally:
        for path in (dead, living):
            shutil.rmtree(path, ignore_errors=True)


def test_a_directory_of_the_machine_that_cannot_be_made_fails_the_pod(job: Job) -> None:
    """Every container says why; no disk takes the place of memory."""
    job.write(container("main", "touch started"), node_directories={"/proc/no/such": ["v"]})

    assert job.run() == 128
    assert "a directory of this machine cannot be made: /proc/no/such" in job.terminated("main")["message"]
    assert not job.file("started").exists()


def test_what_is_not_honoured_is_said_once(job: Job) -> None:
    """In the job's own output."""
    job.write(container("main", "true", notes=["securityContext: runAsUser"]), notes=["sizeLimit of v"])
    argv = [*job.python, "-I", "-S", str(RUNNER), "run", str(job.path)]

    done = subprocess.run(argv, capture_output=True, text=True, timeout=15)

    assert done.stderr.count("container main: securityContext: runAsUser") == 1
    assert done.stderr.count("interlink-runner: sizeLimit of v\n") == 1


def test_a_launcher_is_put_before_the_command(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of the machine, found on the job's own path; its words may be variables of the job."""
    monkeypatch.setenv("TASKS", "3")
    launcher = ["echo", "-np", ["TASKS", "1"], ["NO_SUCH", "none"]]
    job.write(container("main", "exit 4", launcher=launcher, passed={"TASKS": "TASKS"}))

    assert job.run() == 0
    assert job.output("main") == b"-np 3 none /bin/sh -c exit 4\n"


def test_a_launcher_that_is_missing_is_named(job: Job) -> None:
    """As any program that cannot be started."""
    job.write(container("main", "exit 0", launcher=["mpiexec-of-nobody", "-np", ["TASKS", "1"]]))

    assert job.run() == 128
    assert job.terminated("main")["message"] == "cannot start: mpiexec-of-nobody: not found on this machine"


# Images


def pulling(job: Job, script: str, **keys: Any) -> dict[str, Any]:
    """A container whose image is pulled by a script, to which `$1` is the file to make."""
    (job.path / "pull.json").write_text(json.dumps([["TOKEN", "t0ken"], ["PATH", "/usr/bin:/bin"]]))
    argv = ["/bin/sh", "-c", f"echo pull >> {job.path}/pulls; {script}", "sh", "{target}"]
    pull: dict[str, Any] = {
        "argv": argv,
        "folder": str(job.path.parent / "images"),
        "key": "i.img",
        "env_file": "pull.json",
    }
    pull |= {"policy": "IfNotPresent", "max_age_s": 60, **keys}
    return container("main", argv=["/bin/cat", "IMAGE"], image_at=1, pull=pull)


def image_of(job: Job) -> Path:
    return job.path.parent / "images" / str(os.geteuid()) / "i.img"


@on_every_python
def test_an_image_is_pulled_and_put_into_the_command(job: Job) -> None:
    """By the command with an environment of its own, to a file that appears whole."""
    job.write(pulling(job, 'echo "$TOKEN $1" > "$1"'))

    assert job.run() == 0
    assert b"t0ken " in job.output("main")
    assert b".part" in job.output("main"), "it was not made under its final name"
    assert [path.name for path in image_of(job).parent.iterdir() if path.suffix == ".part"] == []


def test_containers_of_a_pod_share_a_pull(job: Job) -> None:
    """One pull for all."""
    main = pulling(job, 'sleep 0.3; echo x > "$1"')
    job.write(*({**main, "name": f"c{number}"} for number in range(4)))

    assert job.run() == 0
    assert job.words("pulls") == ["pull"]


def test_ten_jobs_pull_an_image_once(tmp_path: Path, python: Python) -> None:
    """The others wait for it."""
    jobs = []
    for number in range(10):
        (tmp_path / f"j{number}").mkdir()
        job = Job(tmp_path / f"j{number}", python)
        main = pulling(job, f'echo pull >> {tmp_path}/pulls; sleep 0.5; echo x > "$1"')
        job.write(main)
        jobs.append(job)
    runners = [job.start() for job in jobs]

    assert [runner.wait(30) for runner in runners] == [0] * 10
    assert (tmp_path / "pulls").read_text().split() == ["pull"]


def test_a_pull_that_fails_tells_the_registrys_words(job: Job) -> None:
    """After some attempts the container fails with them; nothing is left of the half image."""
    job.write(pulling(job, 'echo half > "$1"; echo "manifest unknown: no such tag" >&2; exit 3'), backoff_base_s=0.05)

    assert job.run() == 128
    ended = job.terminated("main")
    assert (ended["reason"], ended["message"]) == ("ErrImagePull", "manifest unknown: no such tag")
    assert job.words("pulls") == ["pull"] * 3
    assert [path.name for path in image_of(job).parent.iterdir()] == ["i.img.lock"]


def test_a_container_waits_for_its_image_with_the_reason(job: Job) -> None:
    """Between two attempts it says what went wrong."""
    job.write(pulling(job, "echo unauthorized >&2; exit 1"), backoff_base_s=30)
    runner = job.start()
    waiting = {"reason": "ErrImagePull", "message": "unauthorized"}
    eventually(lambda: job.status("main")["state"].get("waiting") == waiting)
    runner.terminate()

    assert runner.wait(10) == 143


def test_a_stopped_pull_leaves_no_half_image(job: Job) -> None:
    """And does not hold up the end of the job."""
    job.write(pulling(job, 'echo half > "$1"; exec sleep 60'))
    runner = job.start()
    eventually(lambda: list(job.path.parent.glob("images/*/*.part")))
    job.file("cancelled").write_text('{"grace_s": 20}')

    assert runner.wait(10) == 143
    assert [path.name for path in image_of(job).parent.iterdir()] == ["i.img.lock"]


def test_a_runner_that_is_killed_while_it_pulls(tmp_path: Path, python: Python) -> None:
    """The pull ends with it, and nothing is taken for the image; the next job pulls again."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = Job(tmp_path / "first", python), Job(tmp_path / "second", python)
    first.write(pulling(first, 'echo half > "$1"; exec sleep 4321'))
    second.write(pulling(second, 'echo whole > "$1"'))

    runner = first.start()
    eventually(lambda: list(tmp_path.glob("images/*/*.part")))
    os.kill(first.holder(), signal.SIGKILL)
    runner.wait(10)
    assert not image_of(first).exists()

    assert second.run() == 0
    assert sorted(path.name for path in image_of(second).parent.iterdir()) == ["i.img", "i.img.lock"]
    assert image_of(second).read_text() == "whole\n"


def test_the_next_pull_removes_what_a_killed_one_left(job: Job) -> None:
    """Also a directory; and the image of a killed pull is never taken for one."""
    folder = image_of(job).parent
    (folder / "i.img.elsewhere-7.part" / "bin").mkdir(parents=True)
    (folder / "i.img.elsewhere-8.part").touch()
    job.write(pulling(job, 'echo x > "$1"'))

    assert job.run() == 0
    assert sorted(path.name for path in folder.iterdir()) == ["i.img", "i.img.lock"]


POLICIES = [("IfNotPresent", 99, 0), ("Never", 99, 0), ("Always", 50, 0), ("Always", 99, 1)]


@pytest.mark.parametrize(("policy", "age_s", "pulls"), POLICIES)
def test_an_image_that_is_there_is_used(job: Job, policy: str, age_s: int, pulls: int) -> None:
    """Where the policy says always, one that is too old is pulled again."""
    image_of(job).parent.mkdir(parents=True)
    image_of(job).write_text("old")
    os.utime(image_of(job), (time.time() - age_s,) * 2)
    job.write(pulling(job, 'echo new > "$1"', policy=policy))

    assert job.run() == 0
    assert len(job.words("pulls") if job.file("pulls").exists() else []) == pulls


def test_an_image_that_may_not_be_pulled(job: Job) -> None:
    """And is not there."""
    job.write(pulling(job, "true", policy="Never"))

    assert job.run() == 128
    assert job.terminated("main")["reason"] == "ErrImageNeverPull"
    assert not job.file("pulls").exists()


# Job scripts


def write_script(
    job: Job, script: str, *names: str, init: tuple[str, ...] = (), program: dict[str, Any] | None = None, **keys: Any
) -> None:
    argv = {"name": "jobScript", "argv": ["sh", "-c", script], "program_at": 0, "stops_group": True}
    shadows = [{"name": name, "image": "img"} for name in (*init, *names)]
    job.write(
        *shadows[len(init) :],
        init=tuple(shadows[: len(init)]),
        script=argv | {"cwd": str(job.path), "has_job_environment": True} | (program or {}),
        **keys,
    )


@on_every_python
def test_a_script_says_how_its_containers_ended(job: Job) -> None:
    """It runs once; each container has the output and the exit code that the script wrote for it."""
    script = "echo x >> starts; for c in a b; do echo I am $c > run-$c.out; done; echo 0 > run-a.status"
    write_script(job, script + "; echo 3 > run-b.status", "a", "b")

    assert job.run() == 3
    assert [(job.terminated(c)["exitCode"], job.terminated(c)["reason"]) for c in "ab"] == [
        (0, "Completed"),
        (3, "Error"),
    ]
    assert (job.output("a"), job.output("b")) == (b"I am a\n", b"I am b\n")
    assert job.words("starts") == ["x"]
    assert [status["name"] for status in job.state()["containers"]] == ["a", "b"]


@pytest.mark.parametrize(("ending", "code", "reason"), [("exit 0", 0, "Completed"), ("exit 4", 4, "Error")])
@pytest.mark.parametrize("status", ["", "echo oops > run-a.status;", "mkdir run-a.status;", "echo 256 > run-a.status;"])
def test_without_a_readable_status_a_container_has_the_scripts_end(
    job: Job, status: str, ending: str, code: int, reason: str
) -> None:
    """Its message says so; its output is that of the script, if it has none of its own."""
    write_script(job, f"echo hello; {status} {ending}", "a")

    assert job.run() == code
    assert (job.terminated("a")["exitCode"], job.terminated("a")["reason"]) == (code, reason)
    assert "run-a.status" in job.terminated("a")["message"]
    assert job.output("jobScript") == b"hello\n"
    assert not job.file("logs/a").exists()


def test_an_output_that_grows_as_it_is_copied_keeps_no_job_from_ending(job: Job) -> None:
    """A script that lays the log in the place of the output had it copied into itself, for ever."""
    write_script(job, "mkdir -p logs/a; echo hi > logs/a/0.log; ln -s logs/a/0.log run-a.out", "a")

    assert job.run() == 0
    assert job.file("logs/a/0.log").stat().st_size < 100_000


def test_a_script_that_cannot_be_started_ends_its_containers(job: Job) -> None:
    """With the words of a program that cannot be started."""
    write_script(job, "", "a", program={"argv": ["/no/such/shell"]})

    assert job.run() == 128
    assert job.terminated("a")["reason"] == "StartError"
    assert "/no/such/shell: not found on this machine" in job.terminated("a")["message"]


def test_a_container_of_a_script_ends_with_its_status(job: Job) -> None:
    """While others run. The last one ends with the script, which may have results to save before the pod is over."""
    write_script(
        job, f"echo 1 > run-a.status; {IS_THERE % 'go'}; echo 0 > run-b.status; {IS_THERE % 'saved'}; exit 5", "a", "b"
    )
    runner = job.start()
    eventually(lambda: job.status("a")["state"].get("terminated"))

    assert job.is_running("b")
    job.file("go").touch()
    eventually(job.file("run-b.status").exists)
    time.sleep(1)  # more than a look
    assert job.is_running("b")
    job.file("saved").touch()
    assert runner.wait(10) == 5
    assert job.terminated("b")["exitCode"] == 0


def test_init_containers_of_a_script_end_before_the_others_begin(job: Job) -> None:
    """With their status, or when the script has gone on to a later container."""
    write_script(
        job,
        f"echo 0 > init-i.status; {IS_THERE % 'go'}; echo > run-a.out; {IS_THERE % 'end'}; exit 6",
        "a",
        init=("i", "j"),
    )
    runner = job.start()
    eventually(lambda: job.is_running("j"))

    assert job.terminated("i")["exitCode"] == 0
    assert "waiting" in job.status("a")["state"]
    job.file("go").touch()
    eventually(lambda: job.is_running("a"))
    assert job.terminated("j")["exitCode"] == 0
    job.file("end").touch()
    assert runner.wait(10) == 6
    assert job.terminated("a")["exitCode"] == 6


def test_a_failed_init_container_of_a_script(job: Job) -> None:
    """The other containers never start; the script ends as it wants to."""
    write_script(job, "echo 9 > init-i.status; touch saved; exit 9", "a", init=("i",))

    assert job.run() == 9
    assert job.terminated("i")["exitCode"] == 9
    assert job.status("a")["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert job.file("saved").exists()


def test_programs_of_a_script_have_the_grace_period(job: Job) -> None:
    """TERM reaches them, although the shell that runs them dies of it at once; their last output is kept."""
    trap = "trap 'sleep 0.5; echo saved; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    write_script(job, f'sh -c "{trap}" > run-a.out; echo $? > run-a.status', "a")
    runner = job.start()
    eventually(lambda: job.output("a"))
    began = time.monotonic()
    job.file("cancelled").write_text('{"grace_s": 30}')

    assert runner.wait(10) == 143
    assert time.monotonic() - began < 5
    assert job.output("a") == b"up\nsaved\n"
    assert job.terminated("a")["exitCode"] == 143
    assert job.state()["reason"] == "Cancelled"


def test_a_script_that_does_not_heed_term_is_killed(job: Job) -> None:
    """With all that it has started, at the end of the grace period."""
    write_script(job, "trap '' TERM; sleep 60 & echo $! > pid; echo up; wait; sleep 60", "a")
    runner = job.start()
    eventually(lambda: job.words("pid"))
    job.file("cancelled").write_text('{"grace_s": 1}')

    assert runner.wait(10) == 137
    assert job.terminated("a")["exitCode"] == 137
    assert not is_alive(int(job.words("pid")[0]))


def test_a_deadline_ends_a_script(job: Job) -> None:
    """As it ends containers."""
    write_script(job, "echo 0 > init-i.status; sleep 60", "a", init=("i",), deadline_s=1)

    assert job.run() == 143
    assert job.state()["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"has_job_environment": True}, b"/job /h x\n"),
        ({"has_job_environment": False, "passed": {"MARK": "MARK"}}, b"/job  x\n"),
    ],
)
def test_what_a_script_is_given(
    job: Job, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], output: bytes
) -> None:
    """Its own variables, and those of the job that it may have: all, or some. Its files go with the secrets."""
    monkeypatch.setenv("MARK", "x")
    monkeypatch.setenv("HOME", "/h")
    env = job.environment("jobScript", [(b"SANDBOX", b"/job")])
    write_script(job, 'echo "$SANDBOX $HOME $MARK"', "a", program={"env_file": env} | given)

    assert job.run() == 0
    assert job.output("jobScript") == output
    assert not job.file("env").exists()


def test_what_a_script_uses_is_its_containers(job: Job) -> None:
    """Where it has one; of several nobody knows which of them uses it."""
    write_script(job, "while :; do :; done", "a", usage_s=0.1)
    job.start()
    eventually(lambda: usage(job).get("a", {}).get("cpuSeconds"), "the use of CPU time")

    assert usage(job)["a"]["memoryBytes"] > 0


def test_nothing_of_a_script_survives_a_killed_runner(job: Job) -> None:
    """As of containers."""
    write_script(job, "setsid sh -c 'echo $$ >> pids; exec sleep 60' & echo $$ >> pids; sleep 60", "a")
    runner = job.start()
    pids = eventually(lambda: len(job.words("pids")) == 2 and job.words("pids"))
    os.kill(job.holder(), signal.SIGKILL)

    assert runner.wait(10) == 137
    assert not any(is_alive(int(pid)) for pid in pids)


# Trouble


def test_a_full_disk_delays_the_record_but_does_not_end_the_job(job: Job) -> None:
    """state.json is written as soon as it can be again."""
    job.write(container("main", IS_THERE % "end"))
    job.file("state.json.tmp").mkdir()  # stands for a disk on which nothing can be written
    runner = job.start()
    eventually(lambda: job.file("logs/main/0.log").exists())
    job.file("end").touch()
    with contextlib.suppress(subprocess.TimeoutExpired):
        runner.wait(0.5)
    assert runner.poll() is None
    job.file("state.json.tmp").rmdir()

    assert runner.wait(10) == 0
    assert job.state()["phase"] == "ended"


# What running programs use


def usage(job: Job) -> dict[str, Any]:
    try:
        containers = json.loads(job.file("usage.json").read_bytes())["containers"]
    except FileNotFoundError:
        return {}
    assert isinstance(containers, dict)
    return containers


@on_every_python
def test_what_running_programs_use_is_noted(job: Job) -> None:
    """CPU time and memory of the whole tree of processes, again and again.

    A program that only waits has used a little, which is not nothing: metrics-server shows no pod that used nothing.
    """
    job.write(container("busy", "(while :; do :; done) & wait"), container("idle", "sleep 60"), usage_s=0.1)
    job.start()

    first = eventually(lambda: usage(job).get("busy", {}).get("cpuSeconds"), "the use of CPU time")
    eventually(lambda: usage(job)["busy"]["cpuSeconds"] > first, "more of it")

    assert 0 < usage(job)["idle"]["cpuSeconds"] < 0.1
    assert min(use["memoryBytes"] for use in usage(job).values()) > 10_000


def test_earlier_runs_of_a_container_count(job: Job) -> None:
    """The counter goes on after a restart, and a container that has ended is not shown."""
    script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; [ -e again ] && sleep 60; touch again; exit 1"
    job.write(container("c", script), container("ended", "true"), restart_policy="OnFailure", usage_s=0.1)
    job.start()
    eventually(lambda: job.status("c").get("restartCount") == 1 and job.is_running("c"), "the restart")
    before = job.status("c")["usage"]["cpu_seconds"]

    eventually(lambda: usage(job).get("c", {}).get("cpuSeconds", 0) >= before > 0, "the time of both runs")

    assert "ended" not in usage(job)
