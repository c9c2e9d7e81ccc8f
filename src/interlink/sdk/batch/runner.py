#!/usr/bin/env python3
"""The runner: what a job does on the machine where it lands.

It owns the processes of one pod and the files they leave in the job directory: ``state.json`` (the job's own truth),
``logs/<container>/<restart>.log`` (CRI format), ``claim-<attempt>`` and ``runner.lock``; and ``usage.json``, a hint of
what running programs use, which may be lost. It promises that

- an attempt starts its programs at most once, however often the runner is launched (lock, then an atomic claim);
- ``state.json`` is always complete and durable: it is replaced, never edited, and says "ended" only after every
  process is gone and the secrets are removed;
- a program gets its arguments and environment byte for byte and nothing of the runner's own;
- no program outlives the runner, not even one that made itself a daemon and not even when the runner is killed;
- an image that has to be pulled is pulled once for all jobs of a user that share a file system, and appears whole.

A pod may bring a script that runs its containers in its own way: then that is the program, and what becomes of the
containers is read from the files that it writes.

It leaves to others how a container is started (of ``argv`` only the words change that the machine alone knows: where
the runtime's program and the pulled image are, how many tasks the job has), what volumes hold, and what a pod's status is. It is one file without dependencies for Python 3.6 and later, because it is copied to machines we know
nothing about; run it with ``python3 -I`` so that a payload's PYTHON* variables cannot reach it.

    runner.py run JOBDIR                       run the job that JOBDIR/spec.json describes
    runner.py enter MOUNTS.json -- COMMAND...  replace this process by COMMAND, which sees the given mounts
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time

TICK_S = 1.0  # how often the runner looks for JOBDIR/cancelled
USAGE_S = 15.0  # how often it notes what running programs use
BACKOFF_BASE_S, BACKOFF_CAP_S, BACKOFF_RESET_S = 10, 300, 600
MIN_GRACE_S = 2  # what a program keeps after its preStop hook has used up the grace period
DRAIN_S = 1.0  # how long a stranger may hold a dead program's pipe open
FOLLOW_S = 0.5  # how often the files are looked at that a job script writes for its containers
FINAL_SAVE_S = 60  # how long the last state is tried again, for example while the disk is full
PULL_ATTEMPTS, LOCK_LOOK_S = 3, 0.2  # of an image, and how often a pull of another job is looked at
LOG_LINE_BYTES = 16 * 1024
READ_BYTES = 64 * 1024
MESSAGE_BYTES, MESSAGES_BYTES = 4096, 12 * 1024  # termination message: of one container, of the pod
TAIL_BYTES, TAIL_LINES = 2048, 80
PROBE_CHARACTERS = 200  # of what a failing probe says
START_FAILED, CANCELLED_EXIT = 128, 128 + signal.SIGTERM
EXIT_CODES = frozenset(map(str, range(256)))
LAUNCHED_AGAIN = 98  # another launch has the job: nothing was done, and that is no success
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
FORWARDED = (signal.SIGUSR1, signal.SIGUSR2)  # what users ask the batch system to send before the time limit
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) + FORWARDED

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE, MS_RELATIME = 1, 32, 4096, 16384, 1 << 19, 1 << 21
MNT_DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
OLD_ROOT = "/.interlink-old-root"


# Small tools


def now_ns():
    return time.time_ns() if hasattr(time, "time_ns") else int(time.time() * 1e9)


def timestamp(digits=6):
    """The time as RFC 3339 in UTC, with so many digits of a second."""
    seconds, rest = divmod(now_ns(), 10**9)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return "%s.%0*dZ" % (whole, digits, rest // 10 ** (9 - digits))


def note(text):
    """Tell the reader of the job's own output; never fatal."""
    with contextlib.suppress(OSError):
        os.write(2, ("interlink-runner: %s\n" % text).encode("utf-8", "replace"))


def to_bytes(text):
    return text.encode("utf-8", "surrogateescape")


def to_path(text):
    """A path of a JSON file as Python wants it, also where its file system encoding is not UTF-8."""
    return os.fsdecode(to_bytes(text)) if text else None


def number(document, key, default):
    value = document.get(key)
    return default if value is None else value


def read_json(path):
    with open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8", "surrogateescape"))


def explain(error):
    """An error as words: what happened, and to which file."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error) or type(error).__name__
    name = error.filename
    name = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return "%s: %s" % (name, error.strerror) if name else error.strerror


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def fsync_directory(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot do this for a directory
            raise
    finally:
        os.close(fd)


def write_durably(path, data):
    """Replace a file as a whole: after this returns, a crash of the machine does not undo it."""
    temporary = path + ".tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)
    fsync_directory(os.path.dirname(path))


def ring(directory):
    """Tell whoever looks at the jobs beside this one that there is news; as far as it may."""
    try:
        now = int(time.time() * 1e9)
        os.utime(os.path.join(os.path.dirname(os.path.abspath(directory)), ".bell"), ns=(now, now))
    except OSError:
        pass  # it is seen at the next regular look


def remove_tree(top):
    if os.path.islink(top):
        os.unlink(top)
    for directory, directories, files in os.walk(top, topdown=False):
        for name in files + directories:
            path = os.path.join(directory, name)
            is_directory = os.path.isdir(path) and not os.path.islink(path)
            os.rmdir(path) if is_directory else os.unlink(path)
    if os.path.isdir(top):
        os.rmdir(top)


def job_variable(name):
    """A variable of the job's own environment; batch systems may leave out the user's own."""
    value = os.environb.get(to_bytes(name))
    if value is None and name in ("HOME", "USER", "LOGNAME"):
        import pwd

        try:
            user = pwd.getpwuid(os.geteuid())
        except KeyError:
            return None
        value = os.fsencode(user.pw_dir if name == "HOME" else user.pw_name)
    return value


def variable_or(name, default):
    value = job_variable(name)
    return default if value is None else value.decode("utf-8", "surrogateescape")


def find_program(word):
    """A program by its path, or by its name on the job's own search path."""
    import shutil

    path = shutil.which(word, path=os.fsdecode(job_variable("PATH") or os.fsencode(os.defpath)))
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "not found on this machine", word)
    return path


def make_node_directories(tops):
    """Directories of this machine that are this job's alone: by the top of each, what lies in it."""
    remove_node_directories(tops)
    for top, names in tops.items():
        remove_abandoned(os.path.dirname(top))
        os.mkdir(top, 0o700)  # Fails where somebody else has it.
        hold(top)
        for name in names:
            path = os.path.join(top, name)
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o1777)


def hold(top):
    """Say that somebody lives in a directory of this machine, as long as this process does."""
    path = os.path.join(top, ".held")
    fd = os.open(path + ".new", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(path + ".new", path)


def remove_abandoned(folder):
    """What jobs of this user have left on this machine that were killed together with those who watch over them."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        top = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            if name.startswith("interlink-") and os.lstat(top).st_uid == os.geteuid():
                fd = os.open(os.path.join(top, ".held"), os.O_RDWR | os.O_NOFOLLOW)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(top)
                finally:
                    os.close(fd)


def remove_node_directories(tops):
    for top in tops:
        try:
            remove_tree(top)
        except OSError as error:
            note("not removed: %s" % explain(error))


def in_thread(name, target, *args):
    thread = threading.Thread(target=target, args=args, name=name, daemon=True)
    thread.start()
    return thread


class Failpoints:
    """Crash points for tests: ``INTERLINK_FAILPOINTS="runner.start.before=kill@2,runner.state.after=delay:0.5"``."""

    def __init__(self, text):
        self._actions = dict(item.strip().partition("=")[::2] for item in text.split(",") if item.strip())
        self._hits = collections.Counter()

    def hit(self, name):
        action, _, nth = self._actions.get(name, "").partition("@")
        self._hits[name] += 1
        if not action or (nth and self._hits[name] != int(nth)):
            return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action.startswith("delay:"):
            time.sleep(float(action[len("delay:") :]))


FAILPOINTS = None


def failpoint(name):
    if FAILPOINTS is not None:
        FAILPOINTS.hit(name)


# Processes


LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option, value):
    LIBC.prctl(option, int(value), 0, 0, 0)


class Children:
    """Starts, collects and at the end kills every process of the job, also those that have lost their parents."""

    def __init__(self):
        self._lock = threading.Lock()
        self._awaited = set()  # pids that a thread waits for; all others are strays
        self._runner_pid = os.getpid()
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def start(self, argv, env, cwd, stdout, stderr):
        """Start a program in a session of its own; the calling thread must live as long as the program."""
        with self._lock:
            popen = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                close_fds=True,
                start_new_session=True,
                preexec_fn=self._die_with_runner,
            )
            self._awaited.add(popen.pid)
        return popen

    def _die_with_runner(self):
        # Runs between fork and exec in a copy of a threaded process: nothing here may take a lock.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._runner_pid:
            os._exit(CANCELLED_EXIT)

    def collected(self, pid):
        with self._lock:
            self._awaited.discard(pid)

    def reap_strays(self):
        """Collect descendants whose parents are gone; never one that a thread waits for."""
        if not self._lock.acquire(False):
            return  # a program is being started: there is another tick
        try:
            self._reap_strays()
        except ChildProcessError:
            pass
        finally:
            self._lock.release()

    def _reap_strays(self):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid in self._awaited:
                return
            os.waitpid(found.si_pid, 0)

    def kill_all(self, within_s=5.0):
        """Kill every descendant, also those that fork while being killed."""
        give_up_at = time.monotonic() + within_s
        while has_children() and time.monotonic() < give_up_at:
            for pid in descendants(self._runner_pid):
                send(os.kill, pid, signal.SIGKILL)
            self.reap_strays()
            time.sleep(0.005)


def send(kill, pid, number):
    """A signal to a process or group that may be gone or not ours any more."""
    try:
        kill(pid, number)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.EPERM):
            raise


def has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def processes():
    """Of every process of this machine: its id, state, parent and group."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    state, parent, group = file.read().rpartition(b")")[2].split()[:3]
            except (OSError, ValueError):
                continue
            yield int(name), state, int(parent), int(group)


def is_group_alive(group):
    return any(its_group == group and state not in (b"Z", b"X") for _, state, _, its_group in processes())


def descendants(pid):
    children = collections.defaultdict(list)
    for child, _, parent, _ in processes():
        children[parent].append(child)
    found = list(children[pid])
    for child in found:
        found.extend(children[child])
    return found


def process_tree(pid):
    """A process and its descendants, by the kernel's own lists: costs nothing on a machine full of other processes.

    Descendants that have lost their parents are not among them.
    """
    found = [pid]
    for process in found:
        try:
            for thread in os.listdir("/proc/%d/task" % process):
                with open("/proc/%d/task/%s/children" % (process, thread)) as file:
                    found.extend(map(int, file.read().split()))
        except OSError:
            continue
    return found


def usage_of(pid):
    """CPU seconds of a process and its descendants, ended children included, and the bytes they have in memory.

    The clock of ended children has coarse ticks: what hardly uses any time is found by the scheduler's own clock.
    """
    ticks = pages = nanoseconds = 0
    for process in process_tree(pid):
        try:
            with open("/proc/%d/stat" % process, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
        pages += int(fields[21])
        nanoseconds += scheduled_ns(process)
    return max(ticks / os.sysconf("SC_CLK_TCK"), nanoseconds / 1e9), pages * os.sysconf("SC_PAGE_SIZE")


def scheduled_ns(process):
    """How long the first thread of a process has run; 0 where the kernel does not say."""
    try:
        with open("/proc/%d/schedstat" % process) as file:
            return int(file.read().split()[0])
    except (OSError, IndexError):
        return 0


def oom_kills():
    """How many processes of our control group the kernel has killed for memory; 0 where it does not say."""
    try:
        with open("/proc/self/cgroup") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return 0
    for number, controllers, path in groups:
        if number == "0":
            count = read_counter("/sys/fs/cgroup%s/memory.events" % path, "oom_kill")
        elif controllers == "memory":
            count = read_counter("/sys/fs/cgroup/memory%s/memory.oom_control" % path, "oom_kill")
        else:
            continue
        if count is not None:
            return count
    return 0


def read_counter(path, key):
    try:
        with open(path) as file:
            return next((int(line.split()[1]) for line in file if line.split()[0] == key), None)
    except OSError:
        return None


# Logs


class LogFile:
    """One run's log; every write reaches the file at once. Rotated by size when asked for."""

    def __init__(self, path, max_bytes, max_files):
        self._path, self._max_bytes, self._max_files = path, max_bytes, max(int(max_files), 1)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._open()

    def _open(self):
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._fd).st_size

    def write(self, data):
        if self._max_bytes and self._size and self._size + len(data) > self._max_bytes:
            self._rotate()
        write_all(self._fd, data)
        self._size += len(data)

    def _rotate(self):
        for number in range(self._max_files - 1, 0, -1):
            older = "%s.%d" % (self._path, number)
            newer = "%s.%d" % (self._path, number - 1) if number > 1 else self._path
            if os.path.exists(newer):
                os.replace(newer, older)
        if self._max_files == 1:
            os.unlink(self._path)
        full = self._fd
        self._open()
        os.close(full)

    def close(self):
        os.close(self._fd)


class CRILines:
    """Turns one stream's bytes into CRI log lines, in order and without loss."""

    def __init__(self, name):
        self._name = name
        self._rest = b""

    def feed(self, data):
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        head = ("%s %s " % (timestamp(9), self._name)).encode()
        records = []
        for line in lines:
            line = self._split(line, head, records)
            records.append(head + b"F " + line)
        self._rest = self._split(self._rest, head, records)
        return b"".join(record + b"\n" for record in records)

    def end(self):
        """The last piece, which had no newline."""
        piece, self._rest = self._rest, b""
        return ("%s %s P " % (timestamp(9), self._name)).encode() + piece + b"\n" if piece else b""

    @staticmethod
    def _split(line, head, records):
        while len(line) > LOG_LINE_BYTES:
            records.append(head + b"P " + line[:LOG_LINE_BYTES])
            line = line[LOG_LINE_BYTES:]
        return line


class NoLog:
    """For what is not kept but for its end."""

    def write(self, data):
        pass

    def close(self):
        pass


class OutputCopier:
    """Copies a program's stdout and stderr into its log until both are closed, or until it is told to give up."""

    def __init__(self, log):
        self.tail = b""
        self.stdout, self.stderr = -1, -1  # what the program writes to
        self._log = log
        self._streams = {}
        self._give_up_at = None
        self.stdout, self.stderr = self._pipe("stdout"), self._pipe("stderr")
        self._thread = in_thread("copy output", self._run)

    def _pipe(self, name):
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._streams[ours] = CRILines(name)
        return theirs

    def close_inputs(self):
        """To be called once the program has its own copies."""
        os.close(self.stdout)
        os.close(self.stderr)

    def finish(self):
        """Wait until all output is in the log: after the program's end this takes DRAIN_S at most."""
        self._give_up_at = time.monotonic() + DRAIN_S
        self._thread.join()

    def _run(self):
        poll = select.poll()
        for fd in self._streams:
            poll.register(fd, select.POLLIN)
        while self._streams and not self._is_late():
            for fd, _ in poll.poll(100 if self._give_up_at else 1000 * TICK_S):
                if not self._copy(fd):
                    poll.unregister(fd)
                    self._end(fd)
        for fd in list(self._streams):
            self._copy_what_is_there(fd)
            self._end(fd)
        self._log.close()

    def _is_late(self):
        return self._give_up_at is not None and time.monotonic() > self._give_up_at

    def _copy(self, fd):
        """Copy what can be read now; False at the end of the stream."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return True
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        self._write(self._streams[fd].feed(data))
        return bool(data)

    def _copy_what_is_there(self, fd):
        # A pipe holds at most 1 MiB by default: what the program wrote before it died is among the first reads.
        for _ in range(2**20 // READ_BYTES):
            if not self._copy(fd):
                return

    def _end(self, fd):
        self._write(self._streams.pop(fd).end())
        os.close(fd)

    def _write(self, records):
        try:
            if records:
                self._log.write(records)
        except OSError as error:  # The program must not stop because its log cannot be kept.
            note("output lost: %s" % explain(error))


# One run of a program


class Payload:
    """One run of a container's program: its signals, its end, its output.

    stops_group: TERM goes to all its processes, and each of them has the grace period, because a shell that runs others
    dies of TERM without telling them.
    """

    def __init__(self, children, popen, copier, stops_group=False):
        self.pid = popen.pid
        self._stops_group = stops_group
        self.started = time.monotonic()
        self.started_at = timestamp()
        self.ended = threading.Event()
        self._children, self._popen, self._copier = children, popen, copier
        self._lock = threading.Lock()
        self._is_stopping = False
        self._oom_kills = oom_kills()

    def wait(self):
        """Wait for the end; afterwards the group is dead and all output is in the log."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        while self._stops_group and self._is_stopping and is_group_alive(self.pid):
            time.sleep(LOCK_LOOK_S)  # until stop() kills it
        with self._lock:
            # As long as the dead program is not collected, its id cannot belong to anybody else.
            send(os.killpg, self.pid, signal.SIGKILL)
            _, status, self.usage = os.wait4(self.pid, 0)
            self._popen.returncode = status
            self.ended.set()
        self._children.collected(self.pid)
        self._copier.finish()
        self.signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self.exit_code = 128 + self.signal_number if self.signal_number else os.WEXITSTATUS(status)

    @property
    def tail(self):
        return self._copier.tail

    def reason(self):
        if self.exit_code == 128 + signal.SIGKILL and not self._is_stopping and oom_kills() > self._oom_kills:
            return "OOMKilled"
        return "Error" if self.exit_code else "Completed"

    def signal(self, number, to_group=False):
        with self._lock:
            if not self.ended.is_set():
                send(os.killpg if to_group else os.kill, self.pid, number)

    def stop(self, grace_s, pre_stop=None):
        """preStop, then TERM to the program, then KILL to its group; returns at its end. Only the first call acts."""
        with self._lock:
            is_first, self._is_stopping = not self._is_stopping, True
        if is_first:
            kill_at = time.monotonic() + grace_s
            if pre_stop and grace_s > 0:
                pre_stop(grace_s)
                kill_at = max(kill_at, time.monotonic() + min(MIN_GRACE_S, grace_s))
            self.signal(signal.SIGTERM, to_group=self._stops_group)
            if not self.ended.wait(max(kill_at - time.monotonic(), 0)):
                self.signal(signal.SIGKILL, to_group=True)
        self.ended.wait()


# Images


class PullFailed(Exception):
    """There is no image; the text is the registry's."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class Images:
    """Images of registries in a folder that jobs share. An image is there as a whole or not at all, and is pulled by
    one job at a time: the others wait for it."""

    def __init__(self, pod):
        self._pod = pod
        self._lock = threading.Lock()  # a file's lock does not hold between threads

    def get(self, pull):
        """The image's path; None if the pod closes meanwhile. Raises PullFailed."""
        try:
            return self._get(pull, self._path(pull))
        except OSError as error:
            raise PullFailed("ErrImagePull", "no place for the image: %s" % explain(error)) from error

    def _path(self, pull):
        folder = to_path(pull["folder"])
        if folder.startswith("~"):
            folder = os.path.join(os.fsdecode(job_variable("HOME") or b"/"), folder[1:].lstrip("/"))
        folder = os.path.join(folder, str(os.geteuid()))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.lstat(folder).st_uid != os.geteuid():
            raise PullFailed("ErrImagePull", "the folder %s of images belongs to somebody else" % folder)
        return os.path.join(folder, pull["key"])

    def _get(self, pull, path):
        if is_fresh(path, pull):
            return path
        if pull["policy"] == "Never":
            raise PullFailed("ErrImageNeverPull", "the image is not in %s, and may not be pulled" % path)
        with self._lock:
            fd = os.open(path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                is_ours = self._await_lock(fd)
                return path if is_ours and (is_fresh(path, pull) or self._pull(pull, path)) else None
            finally:
                os.close(fd)

    def _await_lock(self, fd):
        """False if the pod closes. A file system without locks costs a second pull, not a broken image."""
        while True:
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    return True
            else:
                return True
            if self._pod.closing.wait(LOCK_LOOK_S):
                return False

    def _pull(self, pull, path):
        """True once the image is there; False if the pod closes."""
        remove_half_pulls(path)
        part = "%s.%s-%d.part" % (path, os.uname().nodename, os.getpid())
        try:
            if not self._run(pull, part):
                return False
            os.utime(part)
            os.replace(part, path)
            fsync_directory(os.path.dirname(path))
            return True
        finally:
            remove_half_pulls(path)

    def _run(self, pull, part):
        import tempfile

        argv = [part if word == "{target}" else word for word in pull["argv"]]
        pairs = read_json(self._pod.path(pull["env_file"]))
        with tempfile.TemporaryFile() as output:
            failpoint("runner.pull.before")
            try:
                argv = [to_bytes(word) for word in [find_program(argv[0])] + argv[1:]]
                env = environment(pull.get("passed") or {}, pairs)
                popen = self._pod.children.start(argv, env, "/", output, output)
            except (OSError, subprocess.SubprocessError) as error:
                raise PullFailed("ErrImagePull", "cannot pull: %s" % explain(error)) from error
            failpoint("runner.pull.after")
            is_wanted = self._await_end(popen)
            if is_wanted and popen.returncode:
                raise PullFailed("ErrImagePull", last_words(output) or "the pull ended with %d" % popen.returncode)
        return is_wanted

    def _await_end(self, popen):
        try:
            while popen.poll() is None:
                if self._pod.closing.wait(0.05):
                    return False
            return True
        finally:
            send(os.killpg, popen.pid, signal.SIGKILL)
            popen.wait()
            self._pod.children.collected(popen.pid)


def is_fresh(path, pull):
    """Whether an image is there and not too old for the pod's policy."""
    try:
        age_s = time.time() - os.stat(path).st_mtime
    except FileNotFoundError:
        return False
    return pull["policy"] != "Always" or age_s < pull["max_age_s"]


def remove_half_pulls(path):
    """What killed pulls of this image have left; the caller has its lock."""
    folder, name = os.path.split(path)
    for entry in os.listdir(folder):
        if entry.startswith(name + ".") and ".part" in entry[len(name) :]:
            part = os.path.join(folder, entry)
            remove_path(part)


def remove_path(path):
    with contextlib.suppress(FileNotFoundError):
        remove_tree(path) if os.path.isdir(path) else os.unlink(path)


def last_words(file):
    """The end of what a program printed."""
    file.seek(max(file.seek(0, os.SEEK_END) - MESSAGE_BYTES, 0))
    return in_one_line(file.read().decode("utf-8", "replace"))[-1000:]


def in_one_line(text):
    """What a program printed, without colours, as it can be shown anywhere."""
    import re

    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def environment(passed, pairs):
    """What a program gets: of the job's own variables those that are passed on, under their new names, then its own."""
    found = {to_bytes(name): job_variable(ours) for ours, name in passed.items()}
    found = {name: value for name, value in found.items() if value is not None}
    found.update((to_bytes(name), to_bytes(value)) for name, value in pairs)
    return found


# Actions of hooks and probes


def http_status(action, timeout_s):
    """GET as the kubelet does it: no proxy, no check of the certificate, redirects not followed."""
    import http.client  # Costs more than the rest of the start: only jobs that need it pay.
    import ssl
    from urllib.parse import urlsplit

    url = urlsplit(action["url"])
    if url.scheme == "https":
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=timeout_s, context=context)
    else:
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout_s)
    headers = {"User-Agent": "kube-probe/interlink", "Accept": "*/*", "Connection": "close"}
    headers.update((name, value) for name, value in action.get("headers") or [])
    try:
        connection.request("GET", (url.path or "/") + ("?" + url.query if url.query else ""), headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def try_tcp(action, timeout_s):
    import socket

    socket.create_connection((action["host"], action["port"]), timeout=timeout_s).close()


def target_of_action(action):
    """What a probe asks over the network, to stand before what went wrong."""
    if "http" in action:
        return 'Get "%s": ' % action["http"]["url"]
    return "dial tcp %s:%s: " % (action["tcp"]["host"], action["tcp"]["port"]) if "tcp" in action else ""


class ActionFailed(Exception):
    """A hook or a probe did not succeed; the text says why."""


class Actor:
    """Performs the actions of one container, with that container's environment and directory.

    inside: the words that run a command in the container.
    """

    KINDS = ("exec", "http", "tcp", "sleep")

    def __init__(self, children, inside, env, cwd):
        self._children, self._inside, self._env, self._cwd = children, inside, env, cwd

    def perform(self, action, payload, timeout_s, is_probe):
        """Raises ActionFailed. An action ends with its payload, as it would inside a real container."""
        try:
            if "exec" in action:
                run = self._exec_probe if is_probe else self._exec
                run(action["exec"], payload, timeout_s)
            elif "http" in action:
                status = http_status(action["http"], timeout_s)
                if is_probe and not 200 <= status < 400:
                    raise ActionFailed("HTTP probe failed with statuscode: %d" % status)
            elif "tcp" in action:
                try_tcp(action["tcp"], timeout_s)
            else:
                payload.ended.wait(min(action["sleep"]["seconds"], timeout_s or float("inf")))
        except ActionFailed:
            raise
        except Exception as error:  # http.client, ssl and socket raise many kinds; all mean "no".
            raise ActionFailed(target_of_action(action) + explain(error)) from error

    def _exec(self, argv, payload, timeout_s):
        """A hook may leave programs behind: what they print goes where nobody has to read it."""
        code = self._run(argv, payload, timeout_s, subprocess.DEVNULL, subprocess.DEVNULL)
        if code:
            raise ActionFailed("command exited with code %d" % code)

    def _exec_probe(self, argv, payload, timeout_s):
        """What a command printed is why it failed."""
        copier = OutputCopier(NoLog())
        try:
            code = self._run(argv, payload, timeout_s, copier.stdout, copier.stderr)
        finally:
            copier.close_inputs()
            copier.finish()
        if code:
            raise ActionFailed(copier.tail.decode("utf-8", "replace").strip() or "command exited with code %d" % code)

    def _run(self, argv, payload, timeout_s, stdout, stderr):
        """Run a command in the container; its exit code. Raises ActionFailed when it is not given the time to end."""
        give_up_at = time.monotonic() + timeout_s if timeout_s else float("inf")
        argv = self._inside + [to_bytes(word) for word in argv]
        popen = self._children.start(argv, self._env, self._cwd, stdout, stderr)
        try:
            while popen.poll() is None:
                if payload.ended.wait(0.02):
                    raise ActionFailed("the program ended before the command did")
                if time.monotonic() > give_up_at:
                    raise ActionFailed("command timed out after %s s" % timeout_s)
        finally:
            if popen.poll() is None:
                send(os.killpg, popen.pid, signal.SIGKILL)
                popen.wait()
            self._children.collected(popen.pid)
        return popen.returncode


# Containers


class Container:
    """One container of the pod: supervises its runs and owns its entry in state.json."""

    def __init__(self, pod, spec, is_init):
        self.name = spec.get("name") or "unnamed"
        self.is_init = is_init
        self.is_sidecar = is_init and bool(spec.get("sidecar"))
        self.has_started = threading.Event()
        self._pod, self._spec = pod, spec
        self._lock = threading.Lock()
        self._cwd = to_path(spec.get("cwd"))
        self._message_path = to_path(spec.get("termination_message_path"))
        self._thread = self._payload = self._actor = self._image = None
        self._cpu_seconds = 0.0
        self._failing = {}  # by kind of probe: what it said when it failed, None once it succeeds
        self.status = {
            "name": self.name,
            "image": spec.get("image") or "",
            "imageID": "",
            "restartCount": 0,
            "ready": False,
            "started": False,
            "state": {"waiting": {"reason": "PodInitializing" if pod.has_init else "ContainerCreating"}},
            "lastState": {},
        }

    @property
    def terminated(self):
        return self.status["state"].get("terminated")

    @property
    def exit_code(self):
        """Of the last run; None when it never ran or is running."""
        return self.terminated["exitCode"] if self.terminated else None

    @property
    def never_started(self):
        return "waiting" in self.status["state"] and not self.status["lastState"]

    def set_waiting(self, reason, message=None):
        """Why it does not run; the caller holds the pod's lock and saves."""
        waiting = {"reason": reason, "message": message} if message else {"reason": reason}
        self.status["state"] = {"waiting": waiting}

    def update(self, **changes):
        with self._pod.lock:
            self.status.update(changes)
            self._pod.save()

    # Life

    def begin(self):
        self._thread = in_thread(self.name, self.supervise)

    def join(self, timeout_s=None):
        if self._thread:
            self._thread.join(timeout_s)

    @property
    def is_over(self):
        return self._thread is not None and not self._thread.is_alive()

    def supervise(self):
        """Run the program, again and again if the restart policy says so; returns when it is over for good."""
        try:
            self._supervise()
        except Exception as error:  # The outer edge of a thread: a bug here must not leave the job hanging.
            note("container %s: %s: %s" % (self.name, type(error).__name__, explain(error)))
            self.signal(signal.SIGKILL, to_group=True)
            self._record_failed_start("the runner failed: %s" % explain(error), reason="RunnerError")

    def _supervise(self):
        delay_s = self._pod.backoff_base_s
        while True:
            began = time.monotonic()
            if not self._run_once() or not self._is_to_restart():
                return
            if time.monotonic() - began >= BACKOFF_RESET_S:
                delay_s = self._pod.backoff_base_s
            if not self._back_off(delay_s):
                return
            delay_s = min(2 * delay_s, self._pod.backoff_cap_s)

    def _is_to_restart(self):
        if self._pod.closing.is_set():
            return False
        if self.is_sidecar:
            return True
        policy = self._pod.restart_policy
        if policy == "Always" and not self.is_init:
            return True
        return policy != "Never" and self.exit_code != 0

    def _back_off(self, delay_s):
        """Wait before the next run; False if there is to be none."""
        ended, before = self.status["state"], self.status["lastState"]
        text = "back-off %gs restarting failed container=%s pod=%s" % (delay_s, self.name, self._pod.full_name)
        with self._pod.lock:
            self.set_waiting("CrashLoopBackOff", text)
            self.update(lastState=ended)
        if self._pod.closing.wait(delay_s):
            self.update(state=ended, lastState=before)
            return False
        self.status["restartCount"] += 1
        return True

    def _run_once(self):
        """One run from start to end; False if the pod is closing and nothing was started."""
        try:
            payload = self._start() if self._has_image() else None
        except PullFailed as error:
            self._record_failed_start(str(error), reason=error.reason)
            return True
        except (OSError, ValueError, RuntimeError, subprocess.SubprocessError) as error:
            self._record_failed_start("cannot start: %s" % explain(error))
            return True
        if payload is None:
            return False
        self._attend(payload)
        payload.wait()
        self._record_end(payload)
        return True

    def _has_image(self):
        """Pull what has to be pulled, more than once if need be; False if the pod closes. Raises PullFailed."""
        pull = self._spec.get("pull")
        delay_s = self._pod.backoff_base_s
        for left in reversed(range(PULL_ATTEMPTS)):
            if not pull or self._image:
                return True
            self._wait_as("ContainerCreating", "the image %s is being pulled" % self.status["image"])
            try:
                self._image = self._pod.images.get(pull)
                return self._image is not None
            except PullFailed as error:
                note("container %s: image %s: %s" % (self.name, self.status["image"], error))
                if not left or error.reason != "ErrImagePull":
                    raise
                self._wait_as(error.reason, str(error))
            if self._pod.closing.wait(delay_s):
                return False
            delay_s *= 2

    def _wait_as(self, reason, message):
        with self._pod.lock:
            if not self._pod.closing.is_set():
                self.set_waiting(reason, message)
                self._pod.save()

    def _start(self):
        with self._lock:
            if self._pod.closing.is_set():
                return None
            self._clear_message()
            env = original_environment() if self._spec.get("has_job_environment") else {}
            env.update(environment(self._spec.get("passed") or {}, self._read_env()))
            inside = self._words(self._spec.get("inside") or [])
            self._actor = Actor(self._pod.children, inside, env, self._cwd)
            self._payload = self._launch(self._launcher() + self._words(self._spec["argv"]), env)
            return self._payload

    def _launcher(self):
        """What is put before the command: a program of this machine and its words, where a pair is a variable of the
        job's own and what stands for a missing one."""
        words = self._spec.get("launcher") or []
        words = [word if isinstance(word, str) else variable_or(*word) for word in words]
        return [to_bytes(word) for word in [find_program(words[0])] + words[1:]] if words else []

    def _words(self, words):
        """Command words with what only this machine knows: where the runtime's program and the image are."""
        words, program_at = list(words), self._spec.get("program_at")
        if words and program_at is not None:
            words[program_at] = find_program(words[program_at])
        if words and self._image:
            words[self._spec["image_at"]] = os.fsencode(self._image).decode("utf-8", "surrogateescape")
        return [to_bytes(word) for word in words]

    def _read_env(self):
        path = self._spec.get("env_file")
        return read_json(self._pod.path(path)) if path else []

    def _launch(self, argv, env):
        copier = OutputCopier(self._open_log())
        try:
            failpoint("runner.start.before")
            popen = self._pod.children.start(argv, env, self._cwd, copier.stdout, copier.stderr)
            failpoint("runner.start.after")
        except BaseException:
            copier.close_inputs()
            raise
        copier.close_inputs()
        return Payload(self._pod.children, popen, copier, bool(self._spec.get("stops_group")))

    def _open_log(self):
        path = self._pod.path("logs", self.name, "%d.log" % self.status["restartCount"])
        return LogFile(path, self._pod.log_max_bytes, self._pod.log_max_files)

    # Hooks and probes

    def _attend(self, payload):
        """Say that the program runs; with hooks or probes, let a thread find out whether it is well."""
        probes = [self._spec.get(name + "_probe") for name in ("startup", "readiness", "liveness")]
        is_plain = not any(probes) and not self._spec.get("post_start")
        running = {"running": {"startedAt": payload.started_at}}
        with self._pod.lock:
            self._failing.clear()
            self.status.pop("interlink", None)
            self.update(state=running, started=is_plain, ready=is_plain and (self.is_sidecar or not self.is_init))
        if is_plain:
            self.has_started.set()
        else:
            in_thread("attend " + self.name, self._watch, payload, *probes)

    def _watch(self, payload, startup, readiness, liveness):
        if not self._post_start(payload):
            return
        if startup and not self._probe(payload, "startup", startup, self._judge_startup):
            return
        self._set_health(payload, started=True, ready=not readiness)
        self.has_started.set()
        if liveness:
            in_thread("liveness " + self.name, self._probe, payload, "liveness", liveness, self._judge_liveness)
        if readiness:
            self._probe(payload, "readiness", readiness, self._judge_readiness)

    def _post_start(self, payload):
        hook = self._spec.get("post_start")
        if not hook:
            return True
        try:
            self._actor.perform(hook, payload, None, is_probe=False)
        except ActionFailed as error:
            note("container %s: postStart hook failed: %s; stopping it" % (self.name, error))
            self.stop(self._pod.grace_s, payload)
            return False
        return True

    def _probe(self, payload, kind, probe, judge):
        """Probe while the program lives. judge(payload, ok, probe) hears what reached its threshold, and ends it."""
        thresholds = {True: probe.get("success_threshold") or 1, False: probe.get("failure_threshold") or 3}
        delay_s = max(0, payload.started + (probe.get("initial_delay_s") or 0) - time.monotonic())
        last, times = None, 0
        while not payload.ended.wait(delay_s):
            delay_s = probe.get("period_s") or 10
            failure = self._failure(payload, probe)
            ok = failure is None
            if failure and last is not False and not payload.ended.is_set():
                note("container %s: %s probe failed: %s" % (self.name, kind, failure))
            last, times = ok, times + 1 if ok is last else 1
            if times in (1, thresholds[ok]):
                self._record_probe(payload, kind, failure)
            verdict = judge(payload, ok, probe) if times >= thresholds[ok] else None
            if verdict is not None:
                return verdict
        return False

    def _failure(self, payload, probe):
        try:
            self._actor.perform(probe, payload, probe.get("timeout_s") or 1, is_probe=True)
        except ActionFailed as error:
            return in_one_line(str(error))[:PROBE_CHARACTERS]

    def _record_probe(self, payload, kind, failure):
        """What a failing probe says stands in the status until it succeeds, or the program is started again."""
        with self._pod.lock:
            is_news = self._failing.get(kind) != failure
            if is_news and self._payload is payload and not payload.ended.is_set():
                self._failing[kind] = failure
                failing = {kind: text for kind, text in sorted(self._failing.items()) if text}
                self.update(interlink={"failing": failing})

    def _judge_startup(self, payload, ok, probe):
        return True if ok else self._judge_liveness(payload, ok, probe)

    def _judge_liveness(self, payload, ok, probe):
        if ok:
            return None
        self.stop(probe.get("grace_s") or self._pod.grace_s, payload)
        return False

    def _judge_readiness(self, payload, ok, probe):
        self._set_health(payload, ready=ok)

    def _set_health(self, payload, **changes):
        with self._pod.lock:
            is_news = any(self.status[key] != value for key, value in changes.items())
            if is_news and self._payload is payload:
                self.update(**changes)

    # Ends

    def signal(self, number, to_group=False):
        payload = self._payload
        if payload:
            payload.signal(number, to_group)

    def stop(self, grace_s, payload=None):
        """Stop the given run, or the present one; returns at its end."""
        with self._lock:  # A start in progress is waited for; a later one sees that the pod is closing.
            payload = payload or self._payload
        if payload:
            payload.stop(grace_s, self._pre_stop(payload))

    def _pre_stop(self, payload):
        hook = self._spec.get("pre_stop")

        def perform(timeout_s):
            try:
                self._actor.perform(hook, payload, timeout_s, is_probe=False)
            except ActionFailed as error:
                note("container %s: preStop hook failed: %s" % (self.name, error))

        return perform if hook else None

    def _record_end(self, payload):
        terminated = {"exitCode": payload.exit_code, "reason": payload.reason()}
        if payload.signal_number:
            terminated["signal"] = payload.signal_number
        message = self._read_message() or self._tail_as_message(payload)
        if message:
            terminated["message"] = message
        terminated.update(startedAt=payload.started_at, finishedAt=timestamp())
        self._record_terminated(terminated, usage=self._add_usage(payload.usage))

    def fail(self, message):
        self._record_failed_start(message)

    def _record_failed_start(self, message, reason="StartError"):
        at = timestamp()
        terminated = {"exitCode": START_FAILED, "reason": reason, "message": message, "startedAt": at, "finishedAt": at}
        self._record_terminated(terminated)

    def _record_terminated(self, terminated, **changes):
        is_done = self.is_init and not self.is_sidecar and terminated["exitCode"] == 0
        with self._pod.lock:
            self._payload = None
            self.update(state={"terminated": terminated}, ready=is_done, started=False, **changes)

    def _add_usage(self, usage):
        """CPU time of all runs so far and the highest peak of memory."""
        before = self.status.get("usage") or {"cpu_seconds": 0.0, "peak_memory_bytes": 0}
        return {
            "cpu_seconds": round(before["cpu_seconds"] + usage.ru_utime + usage.ru_stime, 6),
            "peak_memory_bytes": max(before["peak_memory_bytes"], usage.ru_maxrss * 1024),
        }

    def usage(self):
        """What the running program uses, with the CPU time of the runs before; None while none runs."""
        payload = self._payload
        if payload is None or payload.ended.is_set():
            return None
        cpu_seconds, memory_bytes = usage_of(payload.pid)
        before = self.status.get("usage") or {"cpu_seconds": 0.0}
        # A process that leaves the tree takes its time with it; what was counted stays counted.
        self._cpu_seconds = max(self._cpu_seconds, before["cpu_seconds"] + cpu_seconds)
        return {"cpuSeconds": round(self._cpu_seconds, 6), "memoryBytes": memory_bytes}

    def _clear_message(self):
        """The message of an earlier run is not this one's."""
        with contextlib.suppress(OSError):
            os.close(self._open_message(os.O_WRONLY | os.O_TRUNC))

    def _read_message(self):
        try:
            fd = self._open_message(os.O_RDONLY)
        except OSError:
            return ""
        try:
            is_file = stat.S_ISREG(os.fstat(fd).st_mode)
            return os.read(fd, self._pod.message_bytes).decode("utf-8", "replace") if is_file else ""
        finally:
            os.close(fd)

    def _open_message(self, flags):
        # The file is the program's: it may be a link to a secret, or a pipe that nobody writes to.
        return os.open(self._message_path or "", flags | os.O_NOFOLLOW | os.O_NONBLOCK)

    def _tail_as_message(self, payload):
        if self._spec.get("termination_message_policy") != "FallbackToLogsOnError" or payload.exit_code == 0:
            return ""
        return b"".join(payload.tail.splitlines(True)[-TAIL_LINES:]).decode("utf-8", "replace")


# Job scripts


class Shadow(Container):
    """A container that the pod's script runs: all we know of it is in the files that the script writes for it.

    They are `run-<container>.out` and `run-<container>.status`, for an init container `init-<container>.…`.
    """

    def _is_to_restart(self):
        return False

    def _run_once(self):
        with self._lock:
            if self._pod.closing.is_set():
                return False
        started_at, ended_at, output = timestamp(), None, FileCopier(self.file("out"), self._open_log)
        self.update(
            state={"running": {"startedAt": started_at}}, started=True, ready=self.is_sidecar or not self.is_init
        )
        self.has_started.set()
        while not self._is_to_end():
            self._pod.script.join(FOLLOW_S)
            output.copy()
            ended_at = ended_at or (timestamp() if self.code() is not None else None)
        output.finish()
        self._record_terminated(dict(self._end(), startedAt=started_at, finishedAt=ended_at or timestamp()))
        return True

    def usage(self):
        """The script's, where it runs this container alone."""
        is_alone = self._pod.regular == [self] and "running" in self.status["state"]
        return self._pod.script.usage() if is_alone else None

    def file(self, kind):
        return self._pod.path("%s-%s.%s" % ("init" if self.is_init else "run", self.name, kind))

    def code(self):
        """The exit code that the script has written; None as long as there is none."""
        try:
            fd = os.open(self.file("status"), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            text = os.read(fd, 64).decode("ascii", "replace").strip()
        except OSError:
            return None
        finally:
            os.close(fd)
        return int(text) if text in EXIT_CODES else None

    def _is_to_end(self):
        """With its status. The last ones wait for the script: when all containers have ended, a pod is over."""
        if self._pod.script.is_over:
            return True
        if self.is_init:
            return not self.is_sidecar and (self.code() is not None or self._is_past())
        return self.code() is not None and any(container.code() is None for container in self._pod.regular)

    def _is_past(self):
        """Whether this is an init container after which the script has gone on to a later one."""
        later = self._pod.all[self._pod.all.index(self) + 1 :] if self.is_init else []
        return any(os.path.exists(container.file(kind)) for container in later for kind in ("out", "status"))

    def _end(self):
        """What the script has written, else its own end: it ran the container, so what ended it ended the container,
        and a script that ends with 0, or goes on after an init container, says that all went well."""
        code = self.code()
        if code is None and not self._is_past():
            name = os.path.basename(self.file("status"))
            message = "the job script has written no exit code to %s: this is its own end" % name
            return dict({"message": message}, **self._pod.script.terminated)
        return {"exitCode": code or 0, "reason": "Error" if code else "Completed"}


class FileCopier:
    """Copies a file that grows, and may not be there yet, into a log that there is only when the file is."""

    def __init__(self, path, open_log):
        self._path, self._open_log = path, open_log
        self._fd = self._log = None
        self._lines = CRILines("stdout")

    def copy(self):
        """What is there now, not what comes meanwhile: it may come faster than it is copied, and be the log itself."""
        try:
            left = self._left()
            while left > 0:
                data = os.read(self._fd, min(left, READ_BYTES))
                self._log.write(self._lines.feed(data))
                left = left - len(data) if data else 0
        except OSError as error:  # The script must not fail because its containers' logs cannot be kept.
            note("output lost: %s" % explain(error))

    def _left(self):
        if self._fd is None:
            if not os.path.isfile(self._path):
                return 0
            self._log = self._log or self._open_log()
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        return os.fstat(self._fd).st_size - os.lseek(self._fd, 0, os.SEEK_CUR)

    def finish(self):
        self.copy()
        if self._fd is not None:
            with contextlib.suppress(OSError):
                self._log.write(self._lines.end())
            self._log.close()
            os.close(self._fd)


# The pod


class Pod:
    """The job as a whole: order of containers, reasons to stop, and state.json."""

    def __init__(self, directory, spec):
        self.lock = threading.RLock()  # guards every status and the state file
        self.closing = threading.Event()  # no program is started any more
        self.children = Children()
        self.images = Images(self)
        self._directory = directory
        self._read(spec)
        self._began = time.monotonic()
        self._stop_by = None  # the end of the grace period, once something asked us to stop
        self._kill_by = float("inf")
        self._signal = None
        self._done = threading.Event()
        self._is_unsaved = False
        self._usage_at = time.monotonic() + TICK_S
        self._head = {
            "tag": spec.get("tag"),
            "attempt": spec.get("attempt", 0),
            "phase": "running",
            "started_at": timestamp(),
            "finished_at": None,
            "stopped_at": None,
            "reason": None,
            "message": None,
        }
        script = spec.get("script")
        kind = Shadow if script else Container
        self.script = Container(self, script, is_init=False) if script else None
        self.init = [kind(self, item, is_init=True) for item in spec.get("init_containers") or []]
        self.regular = [kind(self, item, is_init=False) for item in spec.get("containers") or []]

    def _read(self, spec):
        containers = (spec.get("init_containers") or []) + (spec.get("containers") or [])
        self.has_init = bool(spec.get("init_containers"))
        self.full_name = "%s_%s(%s)" % tuple(spec.get(key) or "" for key in ("name", "namespace", "pod_uid"))
        self.restart_policy = spec.get("restart_policy") or "Always"
        self.grace_s = number(spec, "grace_s", 30)
        self.deadline_s = spec.get("deadline_s")
        self.backoff_base_s = number(spec, "backoff_base_s", BACKOFF_BASE_S)
        self.backoff_cap_s = number(spec, "backoff_cap_s", BACKOFF_CAP_S)
        self._usage_s = number(spec, "usage_s", USAGE_S)
        self.log_max_bytes = spec.get("log_max_bytes")
        self.log_max_files = spec.get("log_max_files") or 5
        self.message_bytes = min(MESSAGE_BYTES, MESSAGES_BYTES // max(len(containers), 1))
        self._node_directories = spec.get("node_directories") or {}
        programs = [spec["script"]] if spec.get("script") else containers
        self._unsupported = next(filter(None, map(unsupported, programs)), None)
        for text in spec.get("notes") or []:
            note(text)
        for container in containers:
            for text in container.get("notes") or []:
                note("container %s: %s" % (container.get("name"), text))

    def path(self, *parts):
        return os.path.join(self._directory, *parts)

    @property
    def all(self):
        return self.init + self.regular

    @property
    def _programs(self):
        """What there is to signal and to stop."""
        return [self.script] if self.script else self.all

    def save(self):
        """Write state.json; the caller holds the lock. On failure the next tick tries again."""
        state = dict(self._head)
        state["initContainers"] = [container.status for container in self.init]
        state["containers"] = [container.status for container in self.regular]
        text = json.dumps(state, indent=1, ensure_ascii=False) + "\n"
        failpoint("runner.state.before")
        try:
            write_durably(self.path("state.json"), text.encode("utf-8", "replace"))
        except OSError as error:
            note("state not saved: %s" % explain(error))
            self._is_unsaved = True
        else:
            self._is_unsaved = False
            ring(self._directory)
        failpoint("runner.state.after")

    # The main thread: signals, cancellation, deadline

    def run(self, wakeups):
        """Run to the end; returns the exit code."""
        if self._unsupported:
            return self._refuse(self._unsupported)
        if self._cancel_grace_s() is not None:
            self._close("Cancelled", "the job was cancelled before it started")
            return self._finish()
        try:
            make_node_directories(self._node_directories)
        except OSError as error:
            return self._fail("a directory of this machine cannot be made: %s" % explain(error))
        with self.lock:
            self.save()
        in_thread("containers", self._run_containers, wakeups)
        while not self._done.is_set():
            for number in wakeups.wait(self._next_look_s()):
                self._on_signal(number)
            self._look_around()
        return self._finish()

    def _refuse(self, reason):
        with self.lock:
            self._head.update(reason="InvalidSpec", message=reason)
            for container in self.all:
                container.set_waiting("CreateContainerConfigError", reason)
        note(reason)
        self._finish()
        return START_FAILED

    def _fail(self, reason):
        """End before anything has started, with the reason at every container."""
        note(reason)
        for container in self.all:
            container.fail(reason)
        return self._finish()

    def _cancel_grace_s(self):
        """The grace period that JOBDIR/cancelled grants; None if there is no such file."""
        try:
            document = read_json(self.path("cancelled"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return self.grace_s
        return number(document, "grace_s", self.grace_s) if isinstance(document, dict) else self.grace_s

    def _next_look_s(self):
        if self.deadline_s is None or self.closing.is_set():
            return TICK_S
        return min(TICK_S, max(0.0, self._began + self.deadline_s - time.monotonic()))

    def _on_signal(self, number):
        if number in (signal.SIGTERM, signal.SIGINT):
            self._signal = self._signal or number
        elif number in FORWARDED:
            for container in self._programs:
                if not container.is_init:
                    container.signal(number)

    def _look_around(self):
        self.children.reap_strays()
        if self._is_unsaved:
            with self.lock:
                self.save()
        if time.monotonic() >= self._usage_at:
            self._usage_at = time.monotonic() + self._usage_s
            self._note_usage()
        cancel_grace_s = self._cancel_grace_s()
        if self.closing.is_set():
            self._hurry(cancel_grace_s)
        elif cancel_grace_s is not None:
            self._stop("Cancelled", "the job was cancelled", cancel_grace_s)
        elif self._signal:
            self._stop("Terminated", "the runner was asked to stop by signal %d" % self._signal, self.grace_s)
        elif self.deadline_s is not None and time.monotonic() >= self._began + self.deadline_s:
            self._stop("DeadlineExceeded", DEADLINE_MESSAGE, self.grace_s)

    def _note_usage(self):
        """A hint, not a record: replaced as a whole, but not forced to the disk."""
        found = {container.name: container.usage() for container in self.all}
        text = json.dumps({"at": timestamp(), "containers": {name: use for name, use in found.items() if use}})
        path = self.path("usage.json")
        try:
            with open(path + ".tmp", "w") as file:
                file.write(text)
            os.replace(path + ".tmp", path)
        except OSError as error:
            note("usage not noted: %s" % explain(error))

    def _hurry(self, grace_s):
        """While stopping: a cancellation may still shorten the grace period, as a forced deletion does."""
        if grace_s is not None and grace_s < self.grace_s:
            self.grace_s = grace_s
            self._kill_by = time.monotonic() + grace_s
        if time.monotonic() >= self._kill_by:
            for container in self._programs:
                container.signal(signal.SIGKILL, to_group=True)

    def _stop(self, reason, message, grace_s):
        """Stop everything but the sidecars, which are stopped when the rest has ended. The first reason counts."""
        self.grace_s = grace_s
        if self._close(reason, message):
            for container in self._programs:
                if not container.is_sidecar:
                    in_thread("stop " + container.name, container.stop, grace_s)

    def _close(self, reason, message):
        with self.lock:
            if self.closing.is_set():
                return False
            self._head.update(reason=reason, message=message, stopped_at=timestamp())
            self._stop_by = time.monotonic() + self.grace_s
            self.closing.set()
            for container in self.all:
                if container.never_started:
                    container.set_waiting("Cancelled", message)
            self.save()
            return True

    # The thread of the containers

    def _run_containers(self, wakeups):
        try:
            if self.script:
                self._begin_script()
            if self._run_init():
                self._run_regular()
            if self.script:
                self.script.join()
            self._stop_sidecars()
        except Exception as error:  # The outer edge of a thread: the job must end, with the reason on record.
            note("%s: %s" % (type(error).__name__, explain(error)))
            self._close("RunnerError", "the runner failed: %s" % explain(error))
            for container in self._programs:
                container.signal(signal.SIGKILL, to_group=True)
                container.join()
        finally:
            self._done.set()
            wakeups.wake()

    def _begin_script(self):
        """Its containers must not ask for its end before there can be one."""
        self.script.begin()
        while not (self.script.has_started.wait(0.05) or self.script.is_over):
            pass

    def _run_init(self):
        """Init containers in their order; False if the regular ones are not to start."""
        for container in self.init:
            if container.is_sidecar:
                container.begin()
                while not (container.has_started.wait(0.05) or container.is_over or self.closing.is_set()):
                    pass
            else:
                container.supervise()
            has_failed = container.is_over if container.is_sidecar else container.exit_code != 0
            if has_failed or self.closing.is_set():
                return False
        return True

    def _run_regular(self):
        with self.lock:
            for container in self.regular:
                if not self.closing.is_set():
                    container.set_waiting("ContainerCreating")
        for container in self.regular:
            container.begin()
        for container in self.regular:
            container.join()

    def _stop_sidecars(self):
        """In reverse order, within what is left of the grace period."""
        stop_by = self._stop_by or time.monotonic() + self.grace_s
        self.closing.set()
        for container in reversed(self.init):
            if container.is_sidecar:
                container.stop(max(stop_by - time.monotonic(), min(MIN_GRACE_S, self.grace_s)))
                container.join()

    # The end

    def _finish(self):
        self.children.kill_all()
        remove_secrets(self._directory)
        remove_node_directories(self._node_directories)
        with self.lock:
            self._head.update(phase="ended", finished_at=timestamp())
            self._save_at_last()
        return self._exit_code()

    def _save_at_last(self):
        give_up_at = time.monotonic() + FINAL_SAVE_S
        self.save()
        while self._is_unsaved and time.monotonic() < give_up_at:
            time.sleep(TICK_S)
            self.save()

    def _exit_code(self):
        containers = self.all + ([self.script] if self.script else [])
        codes = [container.exit_code for container in containers if not container.is_sidecar]
        highest = max((code for code in codes if code is not None), default=0)
        return highest or (CANCELLED_EXIT if None in codes else 0)


def unsupported(container):
    """Why a container cannot be run here, or None."""
    if not container.get("name") or not container.get("argv"):
        return "spec.json: container %r has no name or no argv" % container.get("name")
    for key in ("startup_probe", "readiness_probe", "liveness_probe", "post_start", "pre_stop"):
        action = container.get(key)
        if action and not any(kind in action for kind in Actor.KINDS):
            kinds = "gRPC is" if "grpc" in action else "its kind of action is"
            return "container %s: %s: %s not supported here; use exec, http or tcp" % (container["name"], key, kinds)
    return None


# The commands


class Wakeups:
    """Wakes the main thread: for a signal (its number) or because there is something to see."""

    def __init__(self):
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def catch_signals(self):
        """From now on signals only wake us. Caught signals, unlike ignored ones, are back at default in a payload."""
        signal.set_wakeup_fd(self._writer)
        ignored = [number for number in range(1, signal.NSIG) if signal.getsignal(number) is signal.SIG_IGN]
        caught = set(ignored) - {signal.SIGPIPE, signal.SIGXFSZ}  # those two subprocess resets itself
        for number in caught.union(HANDLED):
            signal.signal(number, lambda number, frame: None)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def wake(self):
        os.write(self._writer, b"\0")

    def wait(self, timeout_s):
        select.select([self._reader], [], [], timeout_s)
        try:
            return os.read(self._reader, 512)
        except BlockingIOError:
            return b""


def take_lock(path):
    """Own the job directory as long as this process lives; False if another runner does.

    A POSIX record lock: others can ask for its holder without taking it, children do not inherit it, and it works on
    network file systems. It would be lost by opening and closing the file once more.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        note("no file locks on this file system (%s): only the claim protects the job" % explain(error))
    os.ftruncate(fd, 0)
    os.pwrite(fd, str(os.getpid()).encode(), 0)
    return True


def claim(directory, attempt):
    """Make this attempt ours, for ever; False if it was claimed before."""
    failpoint("runner.claim.before")
    try:
        os.mkdir(os.path.join(directory, "claim-%s" % attempt), 0o700)
    except FileExistsError:
        return False
    fsync_directory(directory)
    failpoint("runner.claim.after")
    return True


def run(directory):
    """Run a job in a process of its own, over which this one watches; returns the exit code.

    Two processes, because a killed one cannot clean up: if the inner one is killed, this one kills all that it had
    started; if this one is killed, the inner one stops the job as if it had been asked to.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    guard_pid = os.getpid()
    pid = os.fork()
    if pid:
        return watch_over(pid, directory)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return run_job(directory) if os.getppid() == guard_pid else CANCELLED_EXIT


def watch_over(pid, directory):
    """Pass signals on to the runner, and kill whatever it leaves behind."""
    children = Children()
    for number in HANDLED:
        signal.signal(number, lambda number, frame: send(os.kill, pid, number))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)  # from here on the id may belong to somebody else
    _, status = os.waitpid(pid, 0)
    children.kill_all()
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    clean_up_after_kill(directory)
    return 128 + os.WTERMSIG(status)


def clean_up_after_kill(directory):
    """Remove the secrets and what a killed runner has left on this machine, unless another one lives there."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        spec = read_json(os.path.join(directory, "spec.json"))
        if take_lock(os.path.join(directory, "runner.lock")):
            remove_secrets(directory)
            remove_node_directories(spec.get("node_directories") or {})


def remove_secrets(directory):
    for secret in ("env", os.path.join("volumes", "secret")):
        try:
            remove_tree(os.path.join(directory, secret))
        except OSError as error:
            note("secrets not removed: %s" % explain(error))


def run_job(directory):
    """Run a job if no other runner does or did; returns the exit code."""
    wakeups = Wakeups()
    wakeups.catch_signals()
    threading.stack_size(512 * 1024)
    os.umask(0o022)
    directory = os.path.abspath(directory)
    try:
        spec = read_json(os.path.join(directory, "spec.json"))
        if not take_lock(os.path.join(directory, "runner.lock")) or not claim(directory, spec.get("attempt", 0)):
            note("the job in %s has been launched before: nothing is done" % directory)
            return LAUNCHED_AGAIN
        pod = Pod(directory, spec)
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        note("cannot run the job in %s: %s" % (directory, explain(error)))
        return START_FAILED
    return pod.run(wakeups)


# enter: a process that sees its mounts


Mount = collections.namedtuple("Mount", "source target read_only")


NAMESPACE_HINT = "allow user namespaces on this host or choose a container runtime"


class CannotEnter(Exception):
    """The mounts cannot be had; the text names the path and the next step."""

    @classmethod
    @contextlib.contextmanager
    def unless(cls, aim, hint):
        try:
            yield
        except OSError as error:
            raise cls("cannot %s: %s; %s" % (aim, explain(error), hint)) from error


class Kernel:
    """The system calls that Python lacks. Each raises OSError."""

    def _check(self, result, path=None):
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)

    def unshare(self, flags):
        self._check(LIBC.unshare(ctypes.c_int(flags)))

    def mount(self, source, target, kind, flags):
        source, where, kind = (os.fsencode(item) if item else None for item in (source, target, kind))
        self._check(LIBC.mount(source, where, kind, ctypes.c_ulong(flags), None), target)

    def unmount(self, target):
        self._check(LIBC.umount2(os.fsencode(target), MNT_DETACH), target)

    def pivot_root(self, new, old):
        number = PIVOT_ROOT.get(os.uname().machine)
        if number is None:
            raise OSError(errno.ENOSYS, "pivot_root is unknown on " + os.uname().machine)
        self._check(LIBC.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)), new)


def read_mounts(items, root=None):
    """The mounts with real targets, outer ones before those inside them. root: a directory in which some targets lie."""
    mounts = [Mount(to_path(i["source"]), target_of(i, root), bool(i.get("read_only"))) for i in items]
    for mount in mounts:
        if not os.path.isabs(mount.source) or not os.path.isabs(mount.target):
            raise CannotEnter("mount of %s on %s: both paths must be absolute" % (mount.source, mount.target))
        if not os.path.exists(mount.source):
            raise CannotEnter("mount on %s: its source %s does not exist" % (mount.target, mount.source))
    resolved = [mount._replace(target=os.path.realpath(mount.target)) for mount in mounts]
    if any(mount.target == "/" for mount in resolved):
        raise CannotEnter("cannot mount on /: this needs a container runtime")
    return sorted(resolved, key=lambda mount: mount.target)


def target_of(item, root):
    target = to_path(item["target"])
    return resolve_below(root, target) if root and item.get("is_in_root") else target


def resolve_below(root, path):
    """Where a path of a root directory is, when that is not our root: its links, too, lead nowhere else."""
    parts, found, links = path.split("/"), [], 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            del found[-1:]
        elif part not in ("", "."):
            here = os.path.join(root, *(found + [part]))
            if not os.path.islink(here):
                found.append(part)
                continue
            links += 1
            if links > 40:
                raise CannotEnter("cannot mount on %s: too many links; change the image" % path)
            target = os.readlink(here)
            found = [] if target.startswith("/") else found
            parts = target.split("/") + parts
    return os.path.join(root, *found)


def is_inside(path, directory):
    return path.startswith(directory.rstrip("/") + "/")


def missing_targets(mounts):
    """Targets that the host does not have, without those that lie inside another mount."""
    targets = [mount.target for mount in mounts]
    outermost = [path for path in targets if not any(is_inside(path, other) for other in targets)]
    return [path for path in outermost if not os.path.lexists(path)]


def directories_to_rebuild(missing):
    """The existing directories that must gain a child or hold one that must, from / downwards."""
    found = {"/"}
    for path in missing:
        parent = os.path.dirname(path)
        while parent != "/":
            if os.path.isdir(parent):
                found.add(parent)
            parent = os.path.dirname(parent)
    return sorted(found)


def map_to_itself(number):
    return "%d %d 1" % (number, number)


def own_mount_namespace(kernel):
    uid, gid = os.geteuid(), os.getegid()
    try:
        kernel.unshare(CLONE_NEWNS)
    except PermissionError:
        kernel.unshare(CLONE_NEWUSER | CLONE_NEWNS)
        for name, text in (("setgroups", "deny"), ("uid_map", map_to_itself(uid)), ("gid_map", map_to_itself(gid))):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)
    # Slave, not private: what the host mounts later (automounted homes) still arrives, nothing of ours gets out.
    kernel.mount(None, "/", None, MS_REC | MS_SLAVE)


def build_root(kernel, base, rebuilt):
    """Make / a fresh tmpfs in which the rebuilt directories are new and everything else is the host's."""
    kernel.mount("tmpfs", base, "tmpfs", 0)
    os.mkdir(base + OLD_ROOT, 0o700)
    kernel.pivot_root(base, base + OLD_ROOT)
    os.chdir("/")
    for directory in rebuilt:
        if directory != "/":
            os.mkdir(directory)
        os.chmod(directory, stat.S_IMODE(os.stat(OLD_ROOT + directory).st_mode) | stat.S_IRWXU)
        for entry in os.scandir(OLD_ROOT + directory):
            path = os.path.join(directory, entry.name)
            if path not in rebuilt:
                copy_entry(kernel, entry, path)


def copy_entry(kernel, entry, path):
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), path)
        return
    make_mount_point(path, entry.is_dir(follow_symlinks=False))
    with contextlib.suppress(FileNotFoundError):  # It may have gone away while we looked.
        kernel.mount(entry.path, path, None, MS_BIND | MS_REC)


def make_mount_point(path, is_directory):
    if is_directory:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))


def bind(kernel, mount, fd):
    if not os.path.lexists(mount.target):
        # In the new root, or inside a volume that was mounted before: there it stays, as with any container runtime.
        make_mount_point(mount.target, stat.S_ISDIR(os.fstat(fd).st_mode))
    kernel.mount("/proc/self/fd/%d" % fd, mount.target, None, MS_BIND | MS_REC)
    if mount.read_only:
        flags = os.statvfs(mount.target).f_flag
        # In a user namespace the flags that the host has set may only be kept, not dropped.
        kept = flags & 0xC0F | (MS_RELATIME if flags & 4096 else 0)
        kernel.mount(None, mount.target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def enter_mounts(kernel, mounts, base):
    with CannotEnter.unless("have mounts of our own", NAMESPACE_HINT):
        own_mount_namespace(kernel)
    # Opened before the first mount, because a target may hide a later source.
    sources = [os.open(mount.source, os.O_PATH) for mount in mounts]
    missing = missing_targets(mounts)
    if missing:
        with CannotEnter.unless("build a root directory that has " + missing[0], NAMESPACE_HINT):
            build_root(kernel, base, directories_to_rebuild(missing))
    for mount, fd in zip(mounts, sources):
        with CannotEnter.unless("mount %s on %s" % (mount.source, mount.target), "both must be of one kind"):
            bind(kernel, mount, fd)
        os.close(fd)
    if missing:
        kernel.unmount(OLD_ROOT)
        os.rmdir(OLD_ROOT)


def original_environment():
    """Our environment as it was given: in a C locale Python adds LC_CTYPE to its own copy."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = (item.partition(b"=") for item in file.read().split(b"\0") if item)
            return {name: value for name, _, value in pairs}
    except OSError:
        return dict(os.environb)


def prepare(document, command):
    """Mounts, then the directory that the command starts in."""
    root = command[document["root_word"]] if document.get("root_word") is not None else None
    if root and not os.path.isdir(root):
        raise CannotEnter("%s is no directory; the image must be one here" % root)
    mounts = read_mounts(document.get("mounts") or [], root and os.path.realpath(root))
    cwd = to_path(document.get("cwd")) or os.getcwd()
    if mounts:
        enter_mounts(Kernel(), mounts, (document.get("root_tmp") or "/tmp").rstrip("/"))
    with CannotEnter.unless("start in " + cwd, "create it or change workingDir"):
        os.chdir(cwd)


def enter(path, command):
    """Become the command; returns an exit code only if that is impossible."""
    env = original_environment()
    try:
        prepare(read_json(path), command)
    except CannotEnter as error:
        note(error)
        return 126
    except (OSError, ValueError, KeyError) as error:
        note("cannot read the mounts in %s: %s" % (path, explain(error)))
        return 126
    try:
        os.execvpe(command[0], command, env)
    except OSError as error:
        note("cannot run %s: %s" % (command[0], error.strerror))
        return 127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126


def main(arguments):
    global FAILPOINTS
    if os.environ.get("INTERLINK_FAILPOINTS"):
        FAILPOINTS = Failpoints(os.environ["INTERLINK_FAILPOINTS"])
    if len(arguments) == 2 and arguments[0] == "run":
        return run(arguments[1])
    if len(arguments) >= 4 and arguments[0] == "enter" and arguments[2] == "--":
        return enter(arguments[1], arguments[3:])
    note("usage: runner.py run JOBDIR | runner.py enter MOUNTS.json -- COMMAND...")
    return 2


if __name__ == "__main__":
    # Not sys.exit: a probe that hangs in its thread must not hold up the end.
    os._exit(main(sys.argv[1:]))
