"""What runtimes share: a container's environment, its GPUs, and options that a pod adds; pure."""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from interlink.model.pods import Container, Pod
from interlink.sdk.batch.runtime import Mount
from interlink.sdk.errors import Rejected

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""They say which GPUs of the machine are the job's: its containers need to know."""
OF_THE_MACHINE = (
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
)  # fmt: skip
"""What a runtime itself needs to know of the machine and its user."""


def variables(container: Container, pod: Pod) -> dict[str, str]:
    """The container's own, and the name of its pod."""
    own = {variable.name: variable.value or "" for variable in container.env or []}
    return {"HOSTNAME": pod.metadata.name, **own}


def split(found: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that a shell can have, and a note about the others."""
    fit = {name: value for name, value in found.items() if _IDENTIFIER.fullmatch(name)}
    others = [name for name in found if name not in fit]
    note = f"environment variables left out: {', '.join(others)}: this runtime takes letters, digits and _ only"
    return fit, [note] if others else []


def wants(container: Container, resource: str) -> bool:
    amounts = {**(container.resources.requests or {}), **(container.resources.limits or {})}
    return str(amounts.get(resource, "0")) not in ("0", "")


def has_any(options: Iterable[str], names: Collection[str]) -> bool:
    """Whether one of these options is among the words, with a value behind `=` or without."""
    return any(word.partition("=")[0] in names for word in options)


def paths(mounts: Iterable[Mount], *, forbidden: str) -> list[Mount]:
    """The mounts, if the runtime's command line can name them. Raises Rejected."""
    found = list(mounts)
    for mount in found:
        text = f"{mount.source}{mount.target}"
        if any(character in text for character in forbidden) or not text.isprintable():
            raise Rejected(f"the mount path {mount.target[:80]!r} holds a character that this runtime cannot take")
    return found


def mounts_at(mounts: Iterable[Mount], target: str) -> bool:
    return any(PurePosixPath(mount.target) == PurePosixPath(target) for mount in mounts)


def annotated(annotations: Mapping[str, str], names: Iterable[str], *, with_value: Collection[str]) -> list[str]:
    """The options that a pod's annotations of these names add, in order. Raises Rejected naming the annotation."""
    return [
        word
        for name in names
        for word in words(annotations.get(name, ""), place=f"annotation {name}", with_value=with_value)
    ]


def shell_words(text: str, *, place: str) -> list[str]:
    """Words as a shell would split them; nothing is expanded. Raises Rejected naming the place."""
    if any(not (character.isprintable() or character in "\t\n") for character in text):
        raise Rejected(f"{place}: control characters are not allowed")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Rejected(f"{place}: cannot be read: {error}") from error


def words(text: str, *, place: str, with_value: Collection[str]) -> list[str]:
    """Options, as `shell_words` finds them.

    with_value: the options that take the next word; any other word that is no option would be taken for the image or
    the command, and is refused. Raises Rejected naming the place.
    """
    found = shell_words(text, place=place)
    takes_word = False
    for word in found:
        if takes_word:
            takes_word = False
        elif not word.startswith("-") or word in ("-", "--"):
            raise Rejected(f"{place}: {word[:60]!r} belongs to no option")
        else:
            takes_word = word in with_value
    if takes_word:
        raise Rejected(f"{place}: {found[-1]} needs a value")
    return found
