"""From a pod to what sbatch is given: resources (T20), flavors, namespaces, annotations, scripts."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlink.model.errors import ConfigurationError
from interlink.model.ids import PodUID, Tag
from interlink.plugins.slurm import directives, settings
from interlink.plugins.slurm.settings import Script, SlurmSettings
from interlink.sdk.batch import runners
from interlink.sdk.batch.jobdir import JobDirectory
from interlink.sdk.batch.rotation import LogLimits
from interlink.sdk.errors import Rejected
from tests.unit.builders import Document, pod

TAG = Tag("c", PodUID("uid-1"), 0)
DIRECTORY = JobDirectory(Path("/jobs/uid-1"))
OURS = {"job-name", "output", "open-mode", "no-requeue", "export", "chdir", "comment"}


def load(*, is_root: bool = False, environment: dict[str, str] | None = None, **keys: Any) -> SlurmSettings:
    base = {"SidecarPort": 4000, "DataRootFolder": "/jobs", "ContainerRuntime": "none"}
    return settings.load(json.dumps(base | keys), environment or {}, source="file", is_root=is_root)


def options(
    *containers: Document,
    keys: Document | None = None,
    annotations: Document | None = None,
    is_root: bool = False,
    time_limits: dict[str, int] | None = None,
    **spec: Any,
) -> dict[str, str]:
    """Every option by name, but those that each job has."""
    metadata: Document = {"annotations": annotations or {}}
    if "namespace" in spec:
        metadata["namespace"] = spec.pop("namespace")
    policy = load(is_root=is_root, **(keys or {})).policy
    found = directives.submission(
        pod(containers=[{"name": f"c{i}"} | c for i, c in enumerate(containers or ({},))], metadata=metadata, **spec),
        TAG,
        DIRECTORY,
        policy,
        node="vk",
        time_limits=time_limits or {},
    )
    pairs = (option.removeprefix("--").partition("=") for option in found.options)
    return {name: value for name, _, value in pairs if name not in OURS}


def limits(**amounts: str) -> Document:
    return {"resources": {"limits": {name.replace("_", "/").replace("/com", ".com"): a for name, a in amounts.items()}}}


# --- resources -------------------------------------------------------------------------------------------------------


def test_fractions_are_rounded_up_t20a() -> None:
    """Half a CPU is one, memory is never less than asked."""
    assert options(limits(cpu="500m", memory="100Mi")) == {"cpus-per-task": "1", "mem": "100M"}


def test_a_pod_without_resources_gets_the_sites_defaults_t20b() -> None:
    """And no zero."""
    assert options() == {"cpus-per-task": "1"}
    assert options(keys={"DefaultCPUs": 2, "DefaultMemory": "2Gi"}) == {"cpus-per-task": "2", "mem": "2048M"}


def test_containers_are_added_t20c() -> None:
    """The larger of the largest init container and the sum of the others."""
    init = [{"name": "i"} | limits(cpu="4", memory="512Mi")]
    found = options(limits(cpu="1500m", memory="1Gi"), limits(cpu="1", memory="2Gi"), initContainers=init)

    assert found == {"cpus-per-task": "4", "mem": "3072M"}


def test_sidecars_count_with_the_others() -> None:
    """They run as long."""
    init = [{"name": "i", "restartPolicy": "Always"} | limits(cpu="2")]

    assert options(limits(cpu="1"), initContainers=init)["cpus-per-task"] == "3"


def test_requests_count_where_there_is_no_limit() -> None:
    """A limit wins."""
    assert options({"resources": {"requests": {"cpu": "3"}}})["cpus-per-task"] == "3"
    assert options({"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": 5}}})["cpus-per-task"] == "5"


def test_gpus_t20d() -> None:
    """As the site asks for them."""
    wish = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    keys = {"GPUs": [{"Resource": "nvidia.com/gpu", "Option": "--gpus={count} --constraint=a100"}]}

    assert options(wish)["gres"] == "gpu:2"
    assert options(wish, keys=keys) == {"cpus-per-task": "1", "gpus": "2", "constraint": "a100"}


def test_a_site_may_drop_and_replace_options_t20e() -> None:
    """Whoever asks for them."""
    keys = {"DropOptions": ["mem"], "SetOptions": ["--qos=pods", "--time=60"]}
    found = options(limits(memory="1Gi"), keys=keys, annotations={directives.FLAGS: "--mem=5G -t 5"})

    assert found == {"cpus-per-task": "1", "qos": "pods", "time": "60"}


def test_a_quantity_that_is_none_is_refused() -> None:
    """With its place."""
    with pytest.raises(Rejected, match=r"container 'c0': resources: cpu: '5x': 'x' is no unit"):
        options(limits(cpu="5x"))


def test_a_deadline_becomes_a_time_limit_that_comes_later() -> None:
    """The runner ends the pod, and has its grace period."""
    assert options(activeDeadlineSeconds=600, terminationGracePeriodSeconds=30)["time"] == "12"


@pytest.mark.parametrize(
    ("partition", "minutes"), [("", "60"), ("short", "10"), ("short,main", "60"), ("short,long", "103"), ("new", "103")]
)
def test_a_deadline_beyond_the_partitions_limit_gets_what_there_is(partition: str, minutes: str) -> None:
    """Slurm would let the job wait for ever."""
    asked = {directives.FLAGS: f"--partition={partition}"} if partition else {}
    found = options(annotations=asked, activeDeadlineSeconds=6060, time_limits={"": 60, "main": 60, "short": 10})

    assert found["time"] == minutes


def test_a_time_limit_that_was_asked_for_stays() -> None:
    """Slurm says what is wrong with it."""
    asked = {directives.FLAGS: "--time=500"}

    assert options(annotations=asked, activeDeadlineSeconds=6000, time_limits={"": 60})["time"] == "500"


# --- flavors, namespaces, users --------------------------------------------------------------------------------------

FLAVORS = {
    "Flavors": {
        "cpu": {"CPUDefault": 4, "MemoryDefault": "16G", "SlurmFlags": ["--partition=cpu"]},
        "one": {"Name": "gpu-1", "SlurmFlags": ["--partition=gpu", "--gres=gpu:1"]},
        "two": {"Name": "gpu-2", "SlurmFlags": ["--gres=gpu:a100:2"]},
    },
    "DefaultFlavor": "cpu",
}


def test_the_default_flavor() -> None:
    """Its defaults are used where the pod is silent."""
    assert options(keys=FLAVORS) == {"cpus-per-task": "4", "mem": "16384M", "partition": "cpu"}
    assert options(limits(cpu="1"), keys=FLAVORS)["cpus-per-task"] == "1"


def test_a_flavor_by_annotation() -> None:
    """By the name that it has."""
    assert options(keys=FLAVORS, annotations={directives.FLAVOR: "gpu-1"})["partition"] == "gpu"
    with pytest.raises(Rejected, match="there is no flavor 'x'; known: cpu, gpu-1, gpu-2"):
        options(keys=FLAVORS, annotations={directives.FLAVOR: "x"})


@pytest.mark.parametrize(("count", "gres"), [("1", "gpu:1"), ("2", "gpu:a100:2")])
def test_a_flavor_by_gpus(count: str, gres: str) -> None:
    """The one that has as many."""
    assert options({"resources": {"limits": {"nvidia.com/gpu": count}}}, keys=FLAVORS)["gres"] == gres


def test_a_list_of_flavors_is_understood_too() -> None:
    """With names of their own."""
    keys = {"Flavors": [{"Name": "a", "SlurmFlags": ["-q x"]}], "DefaultFlavor": "a"}

    assert options(keys=keys)["qos"] == "x"


def test_a_namespace_has_its_account() -> None:
    """Others have what * says; the pod's flags come later."""
    keys = {
        "Namespaces": [{"Name": "*", "Account": "all"}, {"Name": "phys", "Account": "p", "Partition": "x", "QOS": "q"}]
    }

    assert options(keys=keys, namespace="chem")["account"] == "all"
    assert options(keys=keys, namespace="phys") == {
        "cpus-per-task": "1",
        "account": "p",
        "partition": "x",
        "qos": "q",
    }
    assert options(keys=keys, namespace="phys", annotations={directives.FLAGS: "-p y"})["partition"] == "y"


@pytest.mark.parametrize(
    ("wish", "trusts", "uid"), [(None, True, "500"), (1000, True, "1000"), (1000, False, "500"), (0, True, "500")]
)
def test_the_user_of_a_job(wish: int | None, trusts: bool, uid: str) -> None:
    """The site's, or the pod's own where pods are trusted; never root."""
    context: Document = {"securityContext": {"runAsUser": wish}} if wish is not None else {}
    keys: Document = {"DefaultUID": 500, "TrustPods": trusts}

    assert options(keys=keys, is_root=True, **context)["uid"] == uid
    assert directives.user(pod(**context), load(is_root=True, **keys).policy) == int(uid)


def test_without_root_there_is_no_other_user() -> None:
    """A pod's runAsUser does not keep it from running, a site's UID is a mistake."""
    assert "uid" not in options(securityContext={"runAsUser": 1000})
    assert directives.user(pod(securityContext={"runAsUser": 1000}), load().policy) is None


@pytest.mark.parametrize("wish", [-1, 2**31, 2**64, 10**60])
def test_a_wish_that_is_no_user_is_refused(wish: int) -> None:
    """To chown, -1 means nobody; larger ones ended the request with an error of ours."""
    with pytest.raises(Rejected, match="is no user"):
        options(keys={"DefaultUID": 1000}, is_root=True, securityContext={"runAsUser": wish})
    with pytest.raises(ConfigurationError, match="a UID needs the plugin to run as root"):
        load(DefaultUID=500)


# --- flags -----------------------------------------------------------------------------------------------------------


def test_the_pods_memory_option_replaces_the_generated_one_t19() -> None:
    """Each option reaches sbatch once."""
    text = "-p gpu --gres=gpu:1 --comment='a b' -t 00:10:00 --mem-per-cpu=4G"
    found = options(limits(cpu="2", memory="1Gi"), annotations={directives.FLAGS: text})

    assert found == {
        "cpus-per-task": "2",
        "partition": "gpu",
        "gres": "gpu:1",
        "time": "00:10:00",
        "mem-per-cpu": "4G",
    }


@pytest.mark.parametrize("key", [directives.FLAGS, directives.OLD_FLAGS])
def test_both_keys_of_the_flags(key: str) -> None:
    """Also that of the existing plugin's README."""
    assert options(annotations={key: "--nice=5"})["nice"] == "5"


def test_what_makes_a_job_ours_cannot_be_replaced() -> None:
    """Neither by the pod nor by the site."""
    policy = load(SetOptions=["--job-name=x", "--export=ALL"]).policy
    found = directives.submission(
        pod(metadata={"annotations": {directives.FLAGS: "-J y"}}), TAG, DIRECTORY, policy, node="vk"
    )

    assert [o for o in found.options if o.startswith(("--job-name", "--export"))] == [
        "--job-name=il-c-uid-1-a0",
        "--export=NIL",
    ]


def test_the_comment_tells_the_node() -> None:
    """For people, and for a plugin that has lost its directories."""
    found = directives.submission(pod(), TAG, DIRECTORY, load().policy, node="vk-1")
    comment = next(o for o in found.options if o.startswith("--comment="))

    assert directives.node_of(comment.removeprefix("--comment=")) == "vk-1"
    assert directives.node_of("something else") == ""


@pytest.mark.parametrize("key", directives._DANGEROUS)
def test_a_site_may_distrust_pods(key: str) -> None:
    """One key switches off what runs outside containers."""
    with pytest.raises(Rejected, match=f"annotation {key}"):
        options(annotations={key: "x"}, keys={"TrustPods": False})
    assert options(annotations={key: "x"})


def test_mpi_without_flags_is_distrusted_as_well() -> None:
    """An empty annotation also puts `mpiexec` outside the container."""
    with pytest.raises(Rejected, match=r"annotation slurm-job\.vk\.io/mpi-flags"):
        options(annotations={"slurm-job.vk.io/mpi-flags": ""}, keys={"TrustPods": False})


# --- scripts ---------------------------------------------------------------------------------------------------------

RUNNER = runners.place(Path("/jobs"))
RUN = f"exec /usr/bin/python3 -I -S {RUNNER} run /jobs/uid-1\n"


def script(annotations: Document | None = None, **fields: str) -> directives.Scripts:
    return directives.scripts(pod(metadata={"annotations": annotations or {}}), DIRECTORY, Script(**fields))


def test_a_job_script() -> None:
    """The shell, a search path, the runner."""
    assert script().job == f'#!/bin/bash\nexport PATH="${{PATH:-/usr/local/bin:/usr/bin:/bin}}"\n{RUN}'


def test_prefix_and_pre_exec_come_before_the_runner_in_this_order() -> None:
    """As in the existing plugin: POD_IP, the site's prefix, wstunnel, the pod's pre-exec."""
    annotations = {
        directives.POD_IP: "10.0.0.1",
        directives.WSTUNNEL: "wstunnel &",
        directives.PRE_EXEC: "module load x",
    }
    text = script(annotations, prefix="module purge", bash="/usr/bin/bash", python="/opt/python").job

    assert text.splitlines()[0] == "#!/usr/bin/bash"
    assert text.splitlines()[2:] == [
        "export POD_IP=10.0.0.1",
        "module purge",
        "wstunnel &",
        "module load x",
        f"exec /opt/python -I -S {RUNNER} run /jobs/uid-1",
    ]


@pytest.mark.parametrize("value", ["10.0.0.1; touch /tmp/x", "$(id)", "`id`", "it's", "a\nid", "'; id; '"])
def test_the_address_that_a_pod_wishes_is_only_text(value: str) -> None:
    """It goes into the job's script also where pods may not run commands outside their containers."""
    text = script({directives.POD_IP: value}).job
    before, after = text.split("export POD_IP=")[0], text.split("\nexec ")[0].split("export POD_IP=")[1]

    shell = ["/bin/sh", "-c", f'{before}export POD_IP={after}\nprintf %s "$POD_IP"']
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == value


@pytest.mark.parametrize(
    ("keys", "flag", "is_refused"),
    [
        ({"AllowedFlags": ["time"]}, "--time=5", False),
        ({"AllowedFlags": ["time"]}, "-p gpu", True),
        ({"DeniedFlags": ["partition"]}, "-p gpu", True),
        ({"DeniedFlags": ["partition"]}, "--time=5", False),
        ({"AllowedFlags": ["time", "partition"], "DeniedFlags": ["partition"]}, "-p gpu", True),
    ],
)
def test_a_site_says_which_options_a_pod_may_set(keys: Document, flag: str, *, is_refused: bool) -> None:
    """By their long names, whichever name the pod uses."""
    if is_refused:
        with pytest.raises(Rejected, match="partition"):
            options(keys=keys, annotations={directives.FLAGS: flag})
    else:
        assert options(keys=keys, annotations={directives.FLAGS: flag})["time"] == "5"


def test_a_mesh_script_is_cut_out_and_runs_the_job() -> None:
    """As in the existing plugin."""
    heredoc = "cat <<'EOFMESH' > $TMPDIR/mesh.sh\nset -e\n\"$@\"\nEOFMESH\n"
    text = f"echo before\n{heredoc}chmod +x $TMPDIR/mesh.sh\n$TMPDIR/mesh.sh\n"
    found = script({directives.PRE_EXEC: text})

    assert found.mesh == 'set -e\n"$@"\n'
    assert found.job.splitlines()[2:] == ["echo before", "exec /bin/bash /jobs/uid-1/mesh.sh /jobs/uid-1/run.sh"]


def test_tsocks() -> None:
    """A proxy through the login node, told to the programs by a file."""
    text = script(tsocks_library="/lib/tsocks.so", tsocks_login_node="login").job

    assert 'ssh -4 -N -D "$port" login &' in text
    assert "> /jobs/uid-1/tsocks.conf" in text


# --- settings --------------------------------------------------------------------------------------------------------


def test_every_key_of_the_existing_plugin_is_known() -> None:
    """And those that it never used do no harm."""
    found = load(
        Socket="unix:///run/x.sock", SbatchPath="/usr/bin/sbatch", ScancelPath="/usr/bin/scancel", SqueuePath="/q",
        SinfoPath="/usr/bin/sinfo", CommandPrefix="", ImagePrefix="docker://", SingularityPath="apptainer",
        SingularityDefaultOptions=["--nv"], SingularityPrefix="", EnrootPath="enroot", EnrootDefaultOptions="--rw --x",
        EnrootPrefix="", ExportPodData=True, BashPath="/bin/bash", EnableProbes=True, Tsocks=False, TsocksPath="",
        TsocksLoginNode="", Flavors={}, DefaultFlavor="", Taints=[{"Key": "a", "Value": "b", "Effect": "NoSchedule"}],
        ContainerRuntime="singularity",
        ResourceScriptPath="", VKConfigPath="", Namespace="", VerboseLogging=True, ErrorsOnlyLogging=False,
    )  # fmt: skip

    assert found.unknown_keys == []
    assert found.programs.squeue == "/q"
    assert (found.runtime.program, found.runtime.options) == ("apptainer", ["--nv"])
    assert found.taints is not None
    assert (found.taints[0].key, found.taints[0].effect) == ("a", "NoSchedule")


EFFECTS: list[tuple[dict[str, Any], Callable[[SlurmSettings], object], object]] = [
    ({"ImagePrefix": "docker://"}, lambda s: s.runtime.images.prefix, "docker://"),
    ({"PassEnvironment": ["A", "B"]}, lambda s: s.runtime.passed, ["A", "B"]),
    ({"ImageFolder": "~/i"}, lambda s: s.runtime.images.folder, "~/i"),
    ({"ImageMaxAge": 7}, lambda s: s.runtime.images.max_age_s, 7),
    ({"EnableProbes": False}, lambda s: s.runs_probes, False),
    ({}, lambda s: s.runs_probes, True),
    ({"ExportPodData": False}, lambda s: s.exports_volumes, False),
    ({"KeepDeletedJobs": 7}, lambda s: s.keep_deleted_jobs_s, 7),
    ({"SettleTime": 7}, lambda s: s.settle_s, 7),
    ({"LostJobGrace": 7}, lambda s: s.lost_after_s, 7),
    ({"CapacityInterval": 7}, lambda s: s.capacity_interval_s, 7),
    ({"ContainerLogMaxSize": "2Ki", "ContainerLogMaxFiles": 3}, lambda s: s.log_limits, LogLimits(2048, 3)),
    ({"VerboseLogging": True}, lambda s: s.log_level, "debug"),
    ({"ErrorsOnlyLogging": True}, lambda s: s.log_level, "error"),
    ({"VerboseLogging": True, "ErrorsOnlyLogging": True}, lambda s: s.log_level, "debug"),
    ({}, lambda s: s.log_level, "info"),
    ({"SacctPath": "/a"}, lambda s: s.programs.sacct, "/a"),
    ({"ScontrolPath": "/c"}, lambda s: s.programs.scontrol, "/c"),
    ({"SinfoPath": "/i"}, lambda s: s.programs.sinfo, "/i"),
    ({"ScancelPath": "/x"}, lambda s: s.programs.scancel, "/x"),
    ({"SbatchPath": "/b"}, lambda s: s.programs.sbatch, "/b"),
    ({"BashPath": "/sh"}, lambda s: s.script.bash, "/sh"),
    ({"PythonPath": "/py"}, lambda s: s.script.python, "/py"),
    ({"CommandPrefix": "module purge"}, lambda s: s.script.prefix, "module purge"),
    ({"IgnoreOutOfMemory": True}, lambda s: s.memory_is_fatal, False),
    ({"TrustPods": False}, lambda s: s.policy.trusts_pods, False),
    ({"UseAccounting": False}, lambda s: s.uses_accounting, False),
    ({"Partitions": ["p"]}, lambda s: s.partitions, ["p"]),
    ({"MaxPods": 7}, lambda s: s.max_pods, 7),
    ({"ResourceScriptPath": "/r"}, lambda s: s.resource_script, "/r"),
]


@pytest.mark.parametrize(("keys", "seen", "expected"), EFFECTS)
def test_a_key_has_its_effect(keys: dict[str, Any], seen: Callable[[SlurmSettings], object], expected: object) -> None:
    """Being known is not enough."""
    assert seen(load(**keys)) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, False), ({"SHARED_FS": "true"}, False), ({"SHARED_FS": "false"}, True), ({"SHARED_FS": ""}, True)],
)
def test_the_folder_is_shared_whatever_the_environment_says(environment: dict[str, str], expected: bool) -> None:
    """The variable of the existing plugin is taken, and named where it says otherwise."""
    assert load(environment=environment).expects_no_sharing is expected


RUNTIMES: list[tuple[dict[str, Any], tuple[str, list[str]]]] = [
    ({"ContainerRuntime": "singularity"}, ("singularity", [])),
    ({"ContainerRuntime": "apptainer"}, ("apptainer", [])),
    ({"ContainerRuntime": "apptainer", "SingularityPath": "/s", "RuntimePath": "/r"}, ("/s", [])),
    ({"ContainerRuntime": "enroot", "EnrootDefaultOptions": "--rw --x"}, ("enroot", ["--rw", "--x"])),
    ({"ContainerRuntime": "charliecloud", "RuntimeOptions": "-v"}, ("ch-run", ["-v"])),
    ({"ContainerRuntime": "podman", "RuntimePath": "/p", "SingularityPath": "/s"}, ("/p", [])),
]


@pytest.mark.parametrize(("keys", "expected"), RUNTIMES)
def test_the_runtimes_program_and_options(keys: dict[str, Any], expected: tuple[str, list[str]]) -> None:
    """By the keys of the existing plugin for its two runtimes, by ours for all."""
    found = load(**keys).runtime

    assert (found.program_name, found.options) == expected


WRONG_RUNTIMES = [
    ({"ContainerRuntime": "docker"}, "ContainerRuntime: 'docker' is unknown"),
    ({"Images": {"a": "b"}}, "Images: a: 'b' is neither an absolute path nor an address"),
    ({"ImageFolder": "images"}, "ImageFolder: 'images' must be an absolute path"),
    ({"ImageMaxAge": -1}, "ImageMaxAge: must not be negative"),
]


@pytest.mark.parametrize(("keys", "text"), WRONG_RUNTIMES)
def test_runtimes_that_cannot_be(keys: dict[str, Any], text: str) -> None:
    """The key is named."""
    with pytest.raises(ConfigurationError, match=text):
        load(**keys)


def test_the_environment_wins() -> None:
    """Under the existing names."""
    environment = {
        "SIDECARPORT": "5",
        "SBATCHPATH": "/b",
        "SCANCELPATH": "/c",
        "SINFOPATH": "/i",
        "SINGULARITYPATH": "/s",
    }
    found = load(
        environment=environment | {"TSOCKS": "true", "TSOCKSPATH": "/t"},
        TsocksLoginNode="l",
        SbatchPath="/x",
        ContainerRuntime="singularity",
    )

    assert (found.programs.sbatch, found.programs.scancel, found.programs.sinfo) == ("/b", "/c", "/i")
    assert (found.runtime.program, found.script.tsocks_library, str(found.listening.address)) == (
        "/s",
        "/t",
        "http://127.0.0.1:5",
    )


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"DataRootFolder": ""}, "DataRootFolder: missing"),
        ({"ContainerRuntime": "docker"}, "ContainerRuntime: 'docker' is unknown; use one of"),
        ({"DefaultFlavor": "x"}, "DefaultFlavor: there is no flavor 'x'"),
        ({"SetOptions": ["--x y z"]}, "SetOptions: 'z' belongs to no option"),
        ({"Flavors": {"a": {"MemoryDefault": "5x"}}}, r"Flavors.a.MemoryDefault: '5x': 'x' is no unit"),
        ({"GPUs": [{"Resource": "x", "Option": "{no}"}]}, r"GPUs: Option: .* may hold only \{gres\} and"),
        ({"Tsocks": True}, "Tsocks: needs TsocksPath and TsocksLoginNode"),
        ({"Taints": [{"value": "x"}]}, "Taints: each needs key and effect"),
        ({"SettleTime": -1}, "SettleTime: must not be negative"),
        ({"ContainerLogMaxSize": "much"}, "ContainerLogMaxSize: 'much' is no quantity"),
        ({"ContainerLogMaxFiles": 0}, "ContainerLogMaxFiles: must be between 1 and 1000"),
        ({"MaxPods": 0}, "MaxPods: must be at least 1"),
        ({"SidecarPort": ""}, "SidecarPort: missing"),
    ],
)
def test_a_mistake_is_told_with_its_key(keys: Document, message: str) -> None:
    """In one line, with the file."""
    with pytest.raises(ConfigurationError, match=f"^file: {message}"):
        load(**keys)
