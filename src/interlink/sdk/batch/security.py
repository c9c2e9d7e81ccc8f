"""What the security contexts of a pod ask for that its job does not have; pure.

The programs of a job run as one user of the site, with that user's rights. What a context asks for beyond that is
named and not refused, for charts ask for much that no program of theirs needs.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from interlink.model.pods import Container, Pod
from interlink.sdk.errors import Rejected

_ROOT = 0
_SO_ANYWAY: Mapping[str, tuple[object, ...]] = {
    "allowPrivilegeEscalation": (True,),
    "appArmorProfile": ({"type": "Unconfined"},),
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "privileged": (False,),
    "procMount": ("Default",),
    "readOnlyRootFilesystem": (False,),
    "runAsNonRoot": (True, False),
    "seccompProfile": ({"type": "Unconfined"},),
    "supplementalGroupsPolicy": ("Merge",),
}
"""Values that ask for nothing; `check_user` sees to runAsNonRoot."""


def notes(context: Mapping[str, Any] | None, *, user: int, enforced: Collection[str] = ()) -> list[str]:
    """One line that names the settings of a pod's or a container's context that do not hold, if there are any."""
    names = unenforced(context, user=user, enforced=enforced)
    return [f"securityContext not enforced: {', '.join(names)}"] if names else []


def unenforced(context: Mapping[str, Any] | None, *, user: int, enforced: Collection[str] = ()) -> list[str]:
    """The settings, by name, that do not hold. user: the job's. enforced: what the container's runtime sees to."""
    asked = _settings(context or {})
    return sorted(name for name, value in asked if name not in enforced and not _is_so_anyway(name, value, user))


def _settings(context: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in context.items():
        if name == "capabilities" and isinstance(value, dict):
            yield from ((f"{name}.{part}", names) for part, names in value.items())
        else:
            yield name, value


def _is_so_anyway(name: str, value: object, user: int) -> bool:
    if value in (None, [], {}, ""):
        return True
    if name == "runAsUser":
        return value == user
    if name == "capabilities.drop":
        return user != _ROOT  # an ordinary user has none
    return value in _SO_ANYWAY.get(name, ())


def check_user(pod: Pod, container: Container, *, user: int) -> None:
    """Raises Rejected for a container that must not run as root and would, as a kubelet does not start it either."""
    contexts = (container.security_context or {}, pod.spec.security_context or {})
    wish = next((wish for context in contexts if (wish := context.get("runAsNonRoot")) is not None), False)
    if wish is True and user == _ROOT:
        raise Rejected(
            f"container {container.name!r} has runAsNonRoot and will run as root, who is the user of this site's jobs;"
            " change the site's user or the pod"
        )
