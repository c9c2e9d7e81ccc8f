"""Reading a configuration file: every mistake is named by its place."""

import msgspec
import pytest

from interlink.model import configuration
from interlink.model.errors import ConfigurationError


class Inner(msgspec.Struct, frozen=True, rename="pascal"):
    port: int = 1
    names: list[str] = []


class Settings(msgspec.Struct, frozen=True, rename="pascal"):
    count: int = 0
    text: str = ""
    inner: Inner = Inner()
    many: list[Inner] = []
    perhaps: list[Inner] | None = None
    maybe: Inner | None = None


def parse(text: str) -> tuple[Settings, list[str]]:
    return configuration.parse(text, Settings, source="file.yaml")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null", "{}"])
def test_an_empty_file_holds_the_defaults(text: str) -> None:
    """Nothing has to be set that has a default."""
    assert parse(text) == (Settings(), [])


def test_values_are_read_by_their_keys() -> None:
    """Keys are written as existing files have them; blocks and lists of blocks nest."""
    found, unknown = parse("Count: 3\nInner: {Port: 9, Names: [a, b]}\nMany:\n  - Port: 7\nMaybe: {Port: 8}")

    assert found == Settings(count=3, inner=Inner(9, ["a", "b"]), many=[Inner(7)], maybe=Inner(8))
    assert unknown == []


@pytest.mark.parametrize(("text", "count"), [("Count: 3", 3), ("Count: '3'", 3), ('Count: "3"', 3)])
def test_a_quoted_number_is_a_number(text: str, count: int) -> None:
    """People quote what needs no quotes."""
    assert parse(text)[0].count == count


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Colour: red", ["Colour"]),
        ("count: 3", ["count"]),
        ("Inner: {Prot: 1}", ["Inner.Prot"]),
        ("Many: [{Port: 1}, {Prot: 1}]", ["Many[1].Prot"]),
        ("Maybe: {Prot: 1}", ["Maybe.Prot"]),
        ("A: 1\nInner: {B: {C: 1}}", ["A", "Inner.B"]),
        ("Perhaps: [{Port: 1}, {Prot: 1}]", ["Perhaps[1].Prot"]),
        ("7: seven", ["7"]),
    ],
)
def test_an_unknown_key_is_reported_with_its_path(text: str, unknown: list[str]) -> None:
    """It is no error, for files of other versions have keys that mean nothing here."""
    assert parse(text)[1] == unknown


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Count: many", "file.yaml: Count: "),
        ("Count: 1.5", "file.yaml: Count: "),
        ("Text: [a]", "file.yaml: Text: "),
        ("Inner: 3", "file.yaml: Inner: "),
        ("Inner: {Port: x}", "file.yaml: Inner.Port: "),
        ("Many: [{Port: 1}, {Port: x}]", "file.yaml: Many[1].Port: "),
        ("Inner: {Names: a}", "file.yaml: Inner.Names: "),
        ("Many: {Port: 1}", "file.yaml: Many: "),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(text: str, place: str) -> None:
    """The error begins with the file and the key, and says what was expected."""
    with pytest.raises(ConfigurationError, match=r"expected|number") as caught:
        parse(text)

    assert str(caught.value).startswith(place)


@pytest.mark.parametrize("text", ["- a\n- b", "just words", "3"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    """The error names the file and says that keys and values are expected."""
    with pytest.raises(ConfigurationError, match=r"^file\.yaml: expected keys and values, found a (list|str|int)$"):
        parse(text)


NOT_YAML = [
    "Count: [1",
    "Count: 1\n Text: 2",
    "a: b: c",
    "\tCount: 1",
    "Count: *nowhere",
    "Count: !!python/object:os.system {}",
    "Text: \x01",
    "Text: 2026-13-45",
    "Text: !!int abc",
]


@pytest.mark.parametrize("text", NOT_YAML)
def test_bad_yaml_is_one_line_with_the_place(text: str) -> None:
    """The error names the file and fits into one line."""
    with pytest.raises(ConfigurationError, match=r"^file\.yaml: ") as caught:
        parse(text)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["Count:", "Text:", "Inner:"])
def test_a_key_without_a_value_is_not_set(text: str) -> None:
    """A block whose lines are all commented out means its defaults, as for the existing programs."""
    assert parse(text) == (Settings(), [])
