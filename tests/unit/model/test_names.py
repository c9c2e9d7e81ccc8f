"""Names as Kubernetes takes them."""

import pytest

from interlink.model import names


@pytest.mark.parametrize("text", ["a", "A-b_c.9", "nvidia.com/gpu", "x.y-z/Name", "a" * 63])
def test_a_qualified_name(text: str) -> None:
    assert names.is_qualified(text)


@pytest.mark.parametrize("text", ["", "a b", "-a", "a-", "/a", "a/", "A.b/c", "a..b/c", "a/b/c", "a" * 64, "ä", "a\n"])
def test_no_qualified_name(text: str) -> None:
    assert not names.is_qualified(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("", True), ("a.b", True), ("a b", False), ("a/b", False), ("-", False)]
)
def test_a_label_value(text: str, expected: bool) -> None:
    assert names.is_label_value(text) is expected
