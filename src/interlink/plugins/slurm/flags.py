"""sbatch options in one form, and what a pod may ask of them; pure.

Each option becomes one word `--name=value` or `--name`, so that no value can be taken for a script and no line for a
directive. Options that would break what we promise, or reach beyond the job, are refused by name.
"""

import re
import shlex
from collections.abc import Iterable, Sequence

import msgspec

from interlink.sdk.errors import Rejected

SHORT = {
    "A": "account",
    "B": "extra-node-info",
    "C": "constraint",
    "D": "chdir",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "I": "immediate",
    "J": "job-name",
    "L": "licenses",
    "M": "clusters",
    "N": "nodes",
    "O": "overcommit",
    "Q": "quiet",
    "S": "core-spec",
    "V": "version",
    "W": "wait",
    "a": "array",
    "b": "begin",
    "c": "cpus-per-task",
    "d": "dependency",
    "e": "error",
    "h": "help",
    "i": "input",
    "k": "no-kill",
    "m": "distribution",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "s": "oversubscribe",
    "t": "time",
    "v": "verbose",
    "w": "nodelist",
    "x": "exclude",
}
_WITHOUT_VALUE = {
    "contiguous", "hold", "ignore-pbs", "no-requeue", "overcommit", "parsable", "quiet", "reboot", "requeue",
    "spread-job", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait", "help",
}  # fmt: skip
_VALUE_ONLY_WITH_EQUALS = {"exclusive", "get-user-env", "immediate", "nice", "no-kill", "oversubscribe", "propagate"}
_OURS = {"job-name", "output", "error", "parsable", "quiet", "verbose", "no-requeue", "open-mode"}
"""Set by us; a pod's own are dropped, as nothing of hers depends on them."""
REFUSED = {
    "array": "a pod is one job",
    "bbf": "it reads a file of the plugin's host",
    "clusters": "the job would be looked for in another cluster",
    "cluster": "the job would be looked for in another cluster",
    "export": "the environment of a container is that of its pod",
    "export-file": "it reads a file of the plugin's host",
    "get-user-env": "the environment of a container is that of its pod",
    "gid": "the group is the site's choice",
    "help": "it submits nothing",
    "ignore-pbs": "it has no meaning here",
    "nodefile": "it reads a file of the plugin's host",
    "requeue": "a pod runs once; let a Job or Deployment repeat it",
    "test-only": "it submits nothing",
    "uid": "the user is the site's choice",
    "usage": "it submits nothing",
    "version": "it submits nothing",
    "wait": "it would hold up the submission",
    "wrap": "what runs is the pod's containers",
}

_TOGETHER = (
    ("mem", "mem-per-cpu", "mem-per-gpu"),
    ("gres", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task"),
)
"""Options that say the same in different ways: the last one said replaces the others."""
_NAME = re.compile(r"[a-z][a-z0-9-]*")


class Option(msgspec.Struct, frozen=True):
    name: str
    value: str | None = None

    def __str__(self) -> str:
        return f"--{self.name}" if self.value is None else f"--{self.name}={self.value}"


def parse(text: str, *, place: str) -> list[Option]:
    """The options in a line as a shell would split it; nothing is expanded. Raises Rejected naming the place."""
    if any(not (character.isprintable() or character == "\t") for character in text.strip()):
        raise Rejected(f"{place}: the flags must be one line without control characters")
    try:
        words = shlex.split(text, posix=True)
    except ValueError as error:
        raise Rejected(f"{place}: the flags cannot be read: {error}") from error
    return from_words(words, place=place)


def from_words(words: Sequence[str], *, place: str) -> list[Option]:
    found: list[Option] = []
    is_open = False  # the last option may still take a word as its value
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found.append(Option(_checked(name, place), value if equals else None))
            is_open = not equals and name not in _WITHOUT_VALUE | _VALUE_ONLY_WITH_EQUALS
        elif word.startswith("-") and len(word) > 1:
            short, value = word[1], word[2:].removeprefix("=")
            if short not in SHORT:
                raise Rejected(f"{place}: unknown option -{short}")
            found.append(Option(SHORT[short], value or None))
            is_open = not value and SHORT[short] not in _WITHOUT_VALUE | _VALUE_ONLY_WITH_EQUALS
        elif is_open:
            found[-1] = Option(found[-1].name, word)
            is_open = False
        else:
            raise Rejected(f"{place}: {word[:60]!r} belongs to no option")
    return found


def _checked(name: str, place: str) -> str:
    if not _NAME.fullmatch(name):
        raise Rejected(f"{place}: {name[:60]!r} is no option of sbatch")
    return name


def permitted(options: Iterable[Option], *, allowed: Sequence[str], denied: Sequence[str], place: str) -> list[Option]:
    """Those that a pod may set; ours are left out. Raises Rejected for one that it may not."""
    found = []
    for option in options:
        # sbatch takes abbreviations: what could be short for a refused option is refused.
        reason = next(
            (why for name, why in REFUSED.items() if name == option.name or _is_short(option.name, name)), None
        )
        if reason is not None:
            raise Rejected(f"{place}: --{option.name} is not allowed: {reason}")
        if option.name in denied or (allowed and option.name not in allowed):
            raise Rejected(f"{place}: this site does not allow --{option.name}")
        if option.name not in _OURS and not any(_is_short(option.name, ours) for ours in _OURS):
            found.append(option)
    return found


_LONG_NAMES = set(SHORT.values()) | _WITHOUT_VALUE | _VALUE_ONLY_WITH_EQUALS | _OURS | {
    "acctg-freq", "batch", "bb", "cluster-constraint", "comment", "container", "cores-per-socket", "cpu-freq",
    "cpus-per-gpu", "deadline", "delay-boot", "exclude", "gpu-bind", "gpu-freq", "gpus-per-node", "gpus-per-socket",
    "gpus-per-task", "gres", "gres-flags", "hint", "mail-type", "mail-user", "mcs-label", "mem", "mem-bind",
    "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "power", "prefer", "priority", "profile", "reservation", "signal", "sockets-per-node",
    "switches", "thread-spec", "threads-per-core", "time-min", "tmp", "tres-per-task", "wait-all-nodes", "wckey",
}  # fmt: skip


def _is_short(name: str, full: str) -> bool:
    return full.startswith(name) and name not in _LONG_NAMES


def merged(*layers: Iterable[Option]) -> list[Option]:
    """Each option once: a later one replaces an earlier one that says the same."""
    found: dict[str, Option] = {}
    for option in (option for layer in layers for option in layer):
        for group in _TOGETHER:
            if option.name in group and _is_of_group(option):
                for name in group:
                    if name in found and _is_of_group(found[name]):
                        del found[name]
        found.pop(option.name, None)
        found[option.name] = option
    return list(found.values())


def _is_of_group(option: Option) -> bool:
    """A --gres that asks for something else than GPUs stands beside --gpus."""
    return option.name != "gres" or "gpu" in (option.value or "")
