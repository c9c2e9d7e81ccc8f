"""Which image a container runs: from its name, the site's table and prefix to a path or an address; pure."""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from interlink.sdk.errors import Rejected

IMAGE_ROOT = "slurm-job.vk.io/image-root"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/")
_REGISTRY = "docker://"
_UNFIT = re.compile(r"[^a-zA-Z0-9._-]+")


class ImageSettings(msgspec.Struct, frozen=True):
    """table: from an image's name, or from a pattern with one `*`, to what it is here; in that a `*` stands for what
    the pattern's `*` stood for. prefix: of names that say neither a scheme nor a path. folder: of pulled images.
    max_age_s: after which an image is pulled again where the pod's policy is Always."""

    prefix: str = ""
    table: Mapping[str, str] = {}
    folder: str = "~/.interlink/images"
    max_age_s: float = 3600.0


class Image(msgspec.Struct, frozen=True):
    """location: an absolute path of the job's machine, or an address with its scheme."""

    name: str
    location: str

    @property
    def is_local(self) -> bool:
        return self.location.startswith("/")

    def key(self, suffix: str, secret: str = "") -> str:
        """A file name that nothing else has: people can read its first part. Who pulls with a login has a file of that
        login, so that a pod without it does not come by the image."""
        digest = hashlib.sha256(f"{self.location}\0{secret}".encode()).hexdigest()[:16]
        readable = _UNFIT.sub("_", self.location.split("://", 1)[-1])[-80:].lstrip(".-_")
        return f"{readable}-{digest}{suffix}"


def resolve(name: str, settings: ImageSettings, annotations: Mapping[str, str]) -> Image:
    """A name that neither the site nor the pod says more of is one of a registry. Raises Rejected for what is none."""
    _check(name, "image")
    mapped = _mapped(name, settings.table)
    if mapped is not None:
        return Image(name=name, location=_location(mapped))
    root = annotations.get(IMAGE_ROOT) or settings.prefix
    if _SCHEME.match(name) or name.startswith("/"):
        return Image(name=name, location=_location(name))
    if root and not name.startswith(root):
        name_here = root + name
        _check(name_here, f"annotation {IMAGE_ROOT}")
    else:
        name_here = name
    is_complete = _SCHEME.match(name_here) or name_here.startswith("/")
    return Image(name=name, location=_location(name_here if is_complete else _REGISTRY + name_here))


def _check(name: str, place: str) -> None:
    if not name or name.startswith("-") or not name.isprintable() or any(c.isspace() for c in name):
        raise Rejected(f"{place}: {name[:80]!r} is no name of an image (InvalidImageName)")


def _location(text: str) -> str:
    return text.removeprefix("file://") if text.startswith("file:///") else text


def _mapped(name: str, table: Mapping[str, str]) -> str | None:
    """An exact name counts before any pattern, patterns in their order."""
    if name in table:
        return table[name]
    for pattern, target in table.items():
        start, star, end = pattern.partition("*")
        fits = star and len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)
        if fits:
            return target.replace("*", name[len(start) : len(name) - len(end)])
    return None


def wrong_row(table: Mapping[str, str]) -> str | None:
    """What is wrong with a table, or None."""
    for pattern, target in table.items():
        if pattern.count("*") > 1:
            return f"{pattern}: may hold one * only"
        if not (_SCHEME.match(target) or target.startswith("/")):
            return f"{pattern}: {target!r} is neither an absolute path nor an address with its scheme (docker://…)"
        if "*" in target and ".." in target:
            return f"{pattern}: {target!r} may not hold both * and .."
    return None
