"""Kubernetes quantities."""

from fractions import Fraction

import pytest

from interlink.model import quantities
from interlink.model.errors import InvalidQuantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Fraction(0)),
        (4, Fraction(4)),
        ("500m", Fraction(1, 2)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("1.", Fraction(1)),
        ("2Ki", Fraction(2048)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1k", Fraction(1000)),
        ("3M", Fraction(3 * 10**6)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("1e3", Fraction(1000)),
        ("1E-2", Fraction(1, 100)),
        ("100n", Fraction(1, 10**7)),
        ("-4", Fraction(-4)),
        (" 8 ", Fraction(8)),
    ],
)
def test_a_quantity_is_exact(text: str | int, expected: Fraction) -> None:
    assert quantities.parse(text) == expected


@pytest.mark.parametrize("text", ["", "m", "1x", "1 Gi", "1KI", "--1", "1e", "1e9999", "0x10", "NaN", "1_000", "1,5"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuantity):
        quantities.parse(text)


def test_an_amount_is_not_negative() -> None:
    assert quantities.amount("500m") == Fraction(1, 2)
    with pytest.raises(InvalidQuantity, match="negative"):
        quantities.amount("-1")


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [("500m", 1, 1), ("1500m", 1, 2), ("2", 1, 2), ("100Mi", "1Mi", 100), ("100M", "1Mi", 96), ("0", 1, 0)],
)
def test_whole_units_are_rounded_up(text: str, unit: str | int, expected: int) -> None:
    assert quantities.ceiling(text, unit=unit) == expected
