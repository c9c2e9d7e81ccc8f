"""What the site says of itself in answer to a ping, taken with care: what makes no sense changes nothing (pure)."""

from typing import Any

import msgspec

from interlink.model import names, quantities
from interlink.model.errors import InvalidQuantity
from interlink.wire import codec
from interlink.wire.messages import Taint

_COUNTED = ("cpu", "memory", "pods")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Site(msgspec.Struct, frozen=True):
    """`trouble`: why it does not answer, else empty. `resources`, `taints`: what it last offered and asked for;
    `has_spoken`: it has answered at least once. `nonsense`: what of its last answer was ignored, and why."""

    trouble: str = ""
    resources: dict[str, str] = {}
    taints: list[Taint] = []
    has_spoken: bool = False
    nonsense: list[str] = []


class _Answer(msgspec.Struct, frozen=True):
    """Loose on purpose: one bad value must not hide the others."""

    resources: Any = None
    taints: Any = msgspec.UNSET


def silent(before: Site, trouble: str) -> Site:
    """The site does not answer: what is known stays."""
    return msgspec.structs.replace(before, trouble=trouble)


def heard(before: Site, body: bytes) -> Site:
    """After an answer. Zero, negative and unreadable amounts, and answers that say nothing, leave what was known.

    An accelerator may be at zero, and one that is no longer listed is.
    """
    try:
        answer = codec.decode(body, _Answer)
    except codec.InvalidMessage:
        nonsense = ["the answer is no JSON object"]
        return msgspec.structs.replace(before, trouble="", has_spoken=True, nonsense=nonsense)
    nonsense = []
    resources = {**before.resources, **_resources(answer.resources, before, nonsense)}
    taints = before.taints if answer.taints is msgspec.UNSET else _taints(answer.taints, nonsense)
    return Site(resources=resources, taints=taints, has_spoken=True, nonsense=nonsense)


def _resources(offered: Any, before: Site, nonsense: list[str]) -> dict[str, str]:
    if offered is None:
        return {}
    if not isinstance(offered, dict):
        nonsense.append("resources is no object")
        return {}
    found = {name: offered[name] for name in _COUNTED if offered.get(name) not in (None, "")}
    sane = {name: str(amount).strip() for name, amount in found.items() if _is_amount(name, amount, nonsense)}
    listed = offered.get("accelerators")
    if not isinstance(listed, list):
        return sane
    gone = {name: "0" for name in before.resources if name not in _COUNTED}
    return sane | gone | _accelerators(listed, before, nonsense)


def _accelerators(listed: list[Any], before: Site, nonsense: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in listed:
        name = item.get("resourceType") if isinstance(item, dict) else None
        if not isinstance(name, str) or not name:
            nonsense.append("an accelerator without resourceType")
        elif "/" not in name or not names.is_qualified(name):
            nonsense.append(f"accelerator {name[:80]!r}: no name of a resource, as nvidia.com/gpu is")
        elif _is_amount(name, item.get("available"), nonsense, may_be_zero=True):
            found[name] = str(item["available"]).strip()
        elif name in before.resources:
            found[name] = before.resources[name]
    return found


def _is_amount(name: str, amount: Any, nonsense: list[str], *, may_be_zero: bool = False) -> bool:
    try:
        if isinstance(amount, str | int) and not isinstance(amount, bool):
            number = quantities.parse(amount)
            is_whole = number.denominator == 1 or name in ("cpu", "memory")
            if is_whole and (number > 0 or (number == 0 and may_be_zero)):
                return True
    except InvalidQuantity:
        pass
    nonsense.append(f"{name}: {amount!r}")
    return False


def _taints(listed: Any, nonsense: list[str]) -> list[Taint]:
    """Null clears them like an empty list. NoExecute is weakened: a site must not have pods evicted."""
    found = []
    for item in listed or []:
        try:
            taint = msgspec.convert(item, Taint)
        except msgspec.ValidationError as error:
            nonsense.append(f"a taint: {error}")
            continue
        if taint.effect not in _EFFECTS or not (names.is_qualified(taint.key) and names.is_label_value(taint.value)):
            nonsense.append(f"taint {taint.key[:80]!r}={taint.value[:80]!r}:{taint.effect[:80]!r}")
            continue
        effect = "NoSchedule" if taint.effect == "NoExecute" else taint.effect
        found.append(msgspec.structs.replace(taint, effect=effect))
    return found
