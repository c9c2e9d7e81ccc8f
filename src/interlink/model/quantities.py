"""Kubernetes quantities: "500m", "2Gi", "1e3" as exact numbers."""

import math
import re
from fractions import Fraction

from interlink.model.errors import InvalidQuantity

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([a-zA-Z]*|[eE][+-]?\d+)")
_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{suffix + "i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}


def parse(text: str | float) -> Fraction:
    """Raises InvalidQuantity."""
    match = _FORM.fullmatch(str(text).strip())
    if match is None:
        raise InvalidQuantity(f"{text!r} is no quantity, as 500m, 2 or 4Gi are")
    number, suffix = Fraction(match[1]), match[2]
    if suffix in _SUFFIXES:
        return number * _SUFFIXES[suffix]
    if re.fullmatch(r"[eE][+-]?\d{1,3}", suffix):
        return number * Fraction(10) ** int(suffix[1:])
    raise InvalidQuantity(f"{text!r}: {suffix!r} is no unit of a quantity")


def amount(text: str | float) -> Fraction:
    """Of something that one can have. Raises InvalidQuantity also for a negative one."""
    found = parse(text)
    if found < 0:
        raise InvalidQuantity(f"{text!r} is negative")
    return found


def ceiling(text: str | float, *, unit: str | float = 1) -> int:
    """How many whole units it takes to hold the quantity. Raises InvalidQuantity."""
    return math.ceil(parse(text) / parse(unit))
