"""Kubernetes quantities as exact numbers."""

import re
from decimal import Decimal

from interlink.model.errors import InvalidQuantity

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d{1,2}|[A-Za-z]{0,2})")
_BINARY = {unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {unit: Decimal(1000) ** power for power, unit in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_SMALL = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_UNITS = _BINARY | _DECIMAL | _SMALL


def parse(text: str) -> Decimal:
    """`500m` -> 0.5, `2Gi` -> 2147483648. Raises InvalidQuantity for what is none, and for a negative one."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or (found[2] not in _UNITS and found[2][:1] not in ("e", "E")):
        raise InvalidQuantity(f"{text[:40]!r} is no quantity; write for instance 500m, 2 or 4Gi")
    number, suffix = found.groups()
    value = Decimal(number) * _UNITS[suffix] if suffix in _UNITS else Decimal(number + suffix)
    if value < 0:
        raise InvalidQuantity(f"{text[:40]!r} is negative")
    return value
