"""Kubernetes quantities."""

from decimal import Decimal

import pytest

from interlink.model import quantities
from interlink.model.errors import InvalidQuantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("500m", "0.5"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("2Gi", "2147483648"),
        ("1k", "1000"),
        ("3e2", "300"),
        ("1E", "1e18"),
        ("100n", "1e-7"),
    ],
)
def test_quantities(text: str, value: str) -> None:
    """Exact, with decimal and binary units."""
    assert quantities.parse(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "x", "5x", "1,5", "-1", "1 Gi", "0x10", "1e400", "Gi"])
def test_what_is_no_quantity(text: str) -> None:
    """Or a negative one."""
    with pytest.raises(InvalidQuantity):
        quantities.parse(text)
