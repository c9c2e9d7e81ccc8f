"""From a pod and the site's policy to what sbatch is given: options, user, script; pure.

Later layers replace earlier ones: what the pod's resources ask for, its namespace, its flavor, its own flags, the
site's fixed options. What makes a job ours comes last and cannot be replaced.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from interlink.model.ids import Tag
from interlink.model.pods import Pod
from interlink.plugins.slurm import flags, resources
from interlink.plugins.slurm.flags import Option
from interlink.plugins.slurm.resources import Wanted
from interlink.plugins.slurm.settings import Flavor, GPUKeys, NamespaceKeys, Policy, Script
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import mpi

FLAGS = "slurm-job.vk.io/flags"
OLD_FLAGS = "slurm-job.knoc.io/flags"
FLAVOR = "slurm-job.vk.io/flavor"
PRE_EXEC = "slurm-job.vk.io/pre-exec"
POD_IP = "interlink.eu/pod-ip"
WSTUNNEL = "interlink.eu/wstunnel-client-commands"
RUNTIME_OPTIONS = tuple(
    f"slurm-job.vk.io/{name}"
    for name in ("singularity-mounts", "singularity-options", "enroot-mounts", "enroot-options", "image-root")
)
_DANGEROUS = (PRE_EXEC, WSTUNNEL, *RUNTIME_OPTIONS, mpi.FLAGS)
_HIGHEST_UID = 2**31 - 1
"""As Kubernetes has it."""


class Submission(msgspec.Struct, frozen=True):
    """`submission.json`: what sbatch is called with, kept for the case that Slurm forgets the job."""

    options: list[str]
    uid: int | None = None


def submission(
    pod: Pod,
    tag: Tag,
    directory: JobDirectory,
    policy: Policy,
    *,
    node: str,
    time_limits: Mapping[str, int] = MappingProxyType({}),
) -> Submission:
    """time_limits: of partitions, as by `parsing.time_limits`.

    Raises Rejected, naming the annotation or the resource, for what this site does not do.
    """
    annotations = pod.metadata.annotations or {}
    check_trust(annotations, policy)
    needed = _needed(pod, policy)
    flavor = _flavor(annotations, needed, policy)
    space = _namespace(pod.metadata.namespace, policy)
    layers = [
        _generated(pod, needed, flavor, policy),
        _of_namespace(space),
        flavor.options if flavor else [],
        _own(annotations, policy),
    ]
    kept = [option for option in flags.merged(*layers) if option.name not in policy.dropped]
    merged = flags.merged([Option("comment", _comment(pod, node))], kept, policy.fixed, _ours(tag, directory))
    merged = [_within(option, pod, _time_limit(merged, time_limits)) for option in merged]
    uid = _uid(pod, space, flavor, policy)
    owner = [Option("uid", str(uid))] if uid is not None else []
    return Submission(options=[str(option) for option in (*merged, *owner)], uid=uid)


def user(pod: Pod, policy: Policy) -> int | None:
    """Who the job's user is to be; None where that is the plugin's own. Raises Rejected as `submission` does."""
    flavor = _flavor(pod.metadata.annotations or {}, _needed(pod, policy), policy)
    return _uid(pod, _namespace(pod.metadata.namespace, policy), flavor, policy)


def _needed(pod: Pod, policy: Policy) -> Wanted:
    return resources.wanted(pod, [gpu.resource for gpu in policy.gpus])


def check_trust(annotations: Mapping[str, str], policy: Policy) -> None:
    used = [name for name in _DANGEROUS if annotations.get(name) or (name == mpi.FLAGS and name in annotations)]
    if used and not policy.trusts_pods:
        raise Rejected(f"annotation {used[0]}: this site does not let pods run commands outside their containers")


def _generated(pod: Pod, needed: Wanted, flavor: Flavor | None, policy: Policy) -> list[Option]:
    cpus = needed.cpus or (flavor.cpus if flavor else None) or policy.cpus
    memory = needed.memory_bytes or (flavor.memory_bytes if flavor else None) or policy.memory_bytes
    found = [Option("cpus-per-task", str(cpus))]
    if memory:
        found.append(Option("mem", f"{resources.megabytes(memory)}M"))
    found += [option for gpu in policy.gpus if (count := needed.gpus.get(gpu.resource)) for option in _gpu(gpu, count)]
    if pod.spec.active_deadline_seconds:
        found.append(_time_of(pod, pod.spec.active_deadline_seconds))
    return found


def _gpu(gpu: GPUKeys, count: int) -> list[Option]:
    return flags.parse(gpu.option.format(gres=gpu.gres, count=count), place="GPUs: Option")


def _time_of(pod: Pod, deadline_s: int) -> Option:
    """The runner ends the pod at its deadline; Slurm's limit is only to come after that."""
    return Option("time", str(-(-(deadline_s + pod.grace_s + 60) // 60)))


def _time_limit(options: Sequence[Option], time_limits: Mapping[str, int]) -> int | None:
    """The longest that the job's partitions allow, in minutes; None where one of them has no limit that is known."""
    names = next((option.value or "" for option in options if option.name == "partition"), "").split(",")
    limits = [time_limits.get(name) for name in names]
    return max(limit for limit in limits if limit is not None) if None not in limits else None


def _within(option: Option, pod: Pod, most: int | None) -> Option:
    """A deadline beyond what the partition allows is no reason to wait for ever, as Slurm would: the job gets all that
    there is. What was asked for as a time limit stays as it is."""
    deadline_s = pod.spec.active_deadline_seconds
    if most is None or not deadline_s or option != _time_of(pod, deadline_s):
        return option
    return Option("time", str(min(most, int(option.value or 0))))


def _flavor(annotations: Mapping[str, str], needed: Wanted, policy: Policy) -> Flavor | None:
    """The one that is named, else one that has as many GPUs as the pod wants, else one with GPUs, else the default."""
    name = annotations.get(FLAVOR)
    if name:
        if name not in policy.flavors:
            known = ", ".join(policy.flavors) or "none"
            raise Rejected(f"annotation {FLAVOR}: there is no flavor {name[:60]!r}; known: {known}")
        return policy.flavors[name]
    count = sum(needed.gpus.values())
    if count:
        fitting = [flavor for flavor in policy.flavors.values() if _gpus_of(flavor) == count]
        with_gpus = [flavor for flavor in policy.flavors.values() if _gpus_of(flavor)]
        if fitting or with_gpus:
            return (fitting or with_gpus)[0]
    return policy.flavors.get(policy.default_flavor)


def _gpus_of(flavor: Flavor) -> int:
    for option in flavor.options:
        if option.name == "gres" and (found := re.search(r"gpu(?::[^:,]+)?:(\d+)", option.value or "")):
            return int(found[1])
        if option.name == "gpus" and (found := re.search(r"(\d+)$", option.value or "")):
            return int(found[1])
    return 0


def _namespace(name: str, policy: Policy) -> NamespaceKeys:
    found = [space for space in policy.namespaces if space.name == name]
    others = [space for space in policy.namespaces if space.name == "*"]
    return next(iter(found + others), NamespaceKeys())


def _of_namespace(space: NamespaceKeys) -> list[Option]:
    pairs = (("account", space.account), ("partition", space.partition), ("qos", space.qos))
    return [Option(name, value) for name, value in pairs if value]


def _own(annotations: Mapping[str, str], policy: Policy) -> list[Option]:
    """The pod's flags; the key of the README of the existing plugin is understood too."""
    key = FLAGS if FLAGS in annotations else OLD_FLAGS
    options = flags.parse(annotations.get(key, ""), place=f"annotation {key}")
    return flags.permitted(options, allowed=policy.allowed_flags, denied=policy.denied_flags, place=f"annotation {key}")


def _comment(pod: Pod, node: str) -> str:
    """For people who look at the queue, and for a plugin that has lost its directories: the node is in it."""
    return f"interlink node={node} pod={pod.full_name}"


def node_of(comment: str) -> str:
    found = re.match(r"interlink node=(\S*)", comment)
    return found[1] if found else ""


def _ours(tag: Tag, directory: JobDirectory) -> list[Option]:
    output = str(directory.path / "job.out").replace("%", "%%")
    return [
        Option("job-name", str(tag)),
        Option("output", output),
        Option("open-mode", "append"),
        Option("no-requeue"),
        Option("export", "NIL"),
        Option("chdir", "/"),
    ]


def _uid(pod: Pod, space: NamespaceKeys, flavor: Flavor | None, policy: Policy) -> int | None:
    """The pod's own wish counts first, as in the existing plugin, where pods are trusted; root is never a wish."""
    if not policy.may_change_user:
        return None
    wish = pod.spec.run_as_user
    site = next(
        (uid for uid in (space.uid, flavor.uid if flavor else None, policy.default_uid) if uid is not None), None
    )
    if site is None or not policy.trusts_pods or not wish:
        return site
    if not 0 < wish <= _HIGHEST_UID:
        raise Rejected(f"securityContext: runAsUser {str(wish)[:40]} is no user")
    return wish


# --- the script ------------------------------------------------------------------------------------------------------

_MESH = re.compile(r"^cat\s*<<-?\s*'?EOFMESH'?\s*>\s*(\S+)[^\n]*\n(.*?)^EOFMESH[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_TSOCKS = """\
for port in $(seq 10000 65000); do
  if ! (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; then break; fi
done
ssh -4 -N -D "$port" {login} &
printf 'local = 10.0.0.0/255.0.0.0\\nserver = 127.0.0.1\\nserver_port = %s\\n' "$port" > {file}
export TSOCKS_CONF_FILE={file}"""


class Scripts(msgspec.Struct, frozen=True):
    job: str
    mesh: str | None = None


def scripts(pod: Pod, directory: JobDirectory, settings: Script) -> Scripts:
    """The job's script, and the mesh script that a pod's pre-exec brings along."""
    annotations = pod.metadata.annotations or {}
    pre_exec = annotations.get(PRE_EXEC, "")
    mesh = _MESH.search(pre_exec)
    if mesh is not None:
        pre_exec = _without_mesh(pre_exec, mesh)
    runner = [settings.python, "-I", "-S", str(directory.runner), "run", str(directory.path)]
    start = shlex.join(runner)
    if mesh is not None:
        start = shlex.join([settings.bash, str(directory.path / "mesh.sh"), str(directory.path / "run.sh")])
    parts = [
        f"#!{settings.bash}",
        'export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}"',
        *_tsocks(settings, directory),
        *_pod_ip(annotations),
        settings.prefix,
        annotations.get(WSTUNNEL, ""),
        pre_exec,
        f"exec {start}",
    ]
    job = "\n".join(part.rstrip("\n") for part in parts if part.strip()) + "\n"
    return Scripts(job=job, mesh=mesh[2] if mesh else None)


def run_script(directory: JobDirectory, settings: Script) -> str:
    """What a mesh script is given to run."""
    runner = shlex.join([settings.python, "-I", "-S", str(directory.runner), "run", str(directory.path)])
    return f"#!{settings.bash}\nexec {runner}\n"


def _without_mesh(pre_exec: str, mesh: "re.Match[str]") -> str:
    """The heredoc, and the lines that only make its file executable or run it."""
    rest = pre_exec[: mesh.start()] + pre_exec[mesh.end() :]
    file = mesh[1].strip("\"'")
    return "\n".join(line for line in rest.split("\n") if file not in line)


def _tsocks(settings: Script, directory: JobDirectory) -> Sequence[str]:
    if not settings.tsocks_library:
        return []
    file = shlex.quote(str(directory.path / "tsocks.conf"))
    return [_TSOCKS.format(login=shlex.quote(settings.tsocks_login_node), file=file)]


def _pod_ip(annotations: Mapping[str, str]) -> Sequence[str]:
    value = annotations.get(POD_IP)
    return [f"export POD_IP={shlex.quote(value)}"] if value else []
