"""Container states and what follows from them: has the job ended, the pod's phase, its conditions.

The rules are those of a kubelet; they are pure functions so that they can be read as tables.
"""

from collections.abc import Sequence

import msgspec


class _Slim(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    pass


class Waiting(_Slim, frozen=True):
    reason: str | None = None
    message: str | None = None


class Running(_Slim, frozen=True):
    started_at: str | None = None


class Terminated(_Slim, frozen=True, omit_defaults=False):
    """An end that comes without an exit code is no success: a job that an administrator removed has none."""

    exit_code: int = 137
    signal: int | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str | msgspec.UnsetType = msgspec.field(name="containerID", default=msgspec.UNSET)


class ContainerState(_Slim, frozen=True):
    """At most one is set; none set proves nothing."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class Ours(_Slim, frozen=True):
    """What our own plugins say of a container beyond a Kubernetes status; it never reaches Kubernetes.

    failing: by kind of probe, what it said when it failed last; a kind that succeeds is left out.
    """

    failing: dict[str, str] = {}


class Remark(_Slim, frozen=True):
    """What the batch system says of a job that runs and makes no progress, as one that is suspended; a word, and a
    sentence."""

    reason: str = ""
    message: str = ""


class ContainerStatus(_Slim, frozen=True, omit_defaults=False):
    name: str = ""
    image: str | None = ""
    image_id: str | None = msgspec.field(name="imageID", default="")
    container_id: str | None = msgspec.field(name="containerID", default=None)
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: bool = False
    started: bool | None = None
    restart_count: int | None = 0
    interlink: Ours | msgspec.UnsetType = msgspec.UNSET

    @property
    def failing(self) -> dict[str, str]:
        return self.interlink.failing if self.interlink else {}

    @property
    def terminated(self) -> Terminated | None:
        return self.state.terminated if self.state else None

    @property
    def running(self) -> Running | None:
        return self.state.running if self.state else None

    @property
    def waiting(self) -> Waiting | None:
        return self.state.waiting if self.state else None

    @property
    def says_something(self) -> bool:
        return self.state is not None and self.state != ContainerState()


class Condition(_Slim, frozen=True, omit_defaults=False):
    type: str
    status: str = "Unknown"
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int | None = None


class PodStatus(_Slim, frozen=True):
    """`status` of a pod, as far as a kubelet writes it."""

    phase: str = ""
    reason: str | None = None
    message: str | None = None
    observed_generation: int | None = None
    start_time: str | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    host_ips: list[dict[str, str]] | None = msgspec.field(name="hostIPs", default=None)
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    pod_ips: list[dict[str, str]] | None = msgspec.field(name="podIPs", default=None)
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None


def read(raw: bytes | msgspec.Raw) -> ContainerStatus:
    """One container status of a plugin. Raises msgspec.MsgspecError for what is none."""
    return msgspec.json.decode(raw, type=ContainerStatus)


def have_ended(
    containers: Sequence[ContainerStatus],
    init_containers: Sequence[ContainerStatus],
    *,
    expected: int,
    restart_policy: str,
) -> bool:
    """Whether these states prove that a job is over: every expected container terminated, or an init container
    failed for good and nothing can run any more. An empty or short list proves nothing.
    """
    ended = [status for status in containers if status.terminated]
    if expected and len(ended) >= expected and len(ended) == len(containers):
        return True
    has_failed_init = any(status.terminated and status.terminated.exit_code != 0 for status in init_containers)
    is_anything_alive = any(status.running for status in (*containers, *init_containers))
    has_started = any(status.running or status.terminated for status in containers)
    return restart_policy == "Never" and has_failed_init and not is_anything_alive and not has_started


def exit_codes(containers: Sequence[ContainerStatus]) -> list[int]:
    return [status.terminated.exit_code for status in containers if status.terminated]


def is_success(containers: Sequence[ContainerStatus]) -> bool:
    """Whether an ended job succeeded: every container terminated with 0, and there is at least one."""
    return bool(containers) and all(status.terminated and status.terminated.exit_code == 0 for status in containers)
