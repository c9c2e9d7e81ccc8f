"""Where a part listens or is called, as configuration files write it."""

import pytest

from interlink.model.errors import ConfigurationError
from interlink.sdk import addresses
from interlink.sdk.addresses import Address


@pytest.mark.parametrize(
    ("url", "port", "expected"),
    [
        ("http://h", 3000, Address("http", "h", 3000)),
        ("http://h", "3000", Address("http", "h", 3000)),
        ("http://h", " 3000 ", Address("http", "h", 3000)),
        ("https://h.example", 443, Address("https", "h.example", 443)),
        ("http://h:3000", "", Address("http", "h", 3000)),
        ("http://h:3000", None, Address("http", "h", 3000)),
        ("http://h:3000", 4000, Address("http", "h", 4000)),
        ("http://h:3000/", None, Address("http", "h", 3000)),
        ("http://127.0.0.1", "0", Address("http", "127.0.0.1", 0)),
        ("http://[::1]:3000", None, Address("http", "::1", 3000)),
        ("http://[::1]", 3000, Address("http", "::1", 3000)),
        ("unix:///run/i.sock", None, Address("unix", socket="/run/i.sock")),
        ("unix:///run/i.sock", 3000, Address("unix", socket="/run/i.sock")),
        ("http://127.0.0.1", 0, Address("http", "127.0.0.1", 0)),
    ],
)
def test_an_address_and_its_port(url: str, port: str | int | None, expected: Address) -> None:
    """The port may stand beside the URL, which wins, or in it; a socket has none."""
    assert addresses.parse(url, port, key="k") == expected


WRONG = [
    ("", 1, "must start with unix://, http:// or https://"),
    ("h", 1, "must start with"),
    ("h:3000", None, "must start with"),
    ("ftp://h", 1, "must start with"),
    ("http://", 1, "must start with"),
    ("http:h", 1, "must start with"),
    ("unix://run/i.sock", None, "absolute path"),
    ("unix://", None, "absolute path"),
    ("http://h", "", "the port ''"),
    ("http://h", None, "the port ''"),
    ("http://h", "x", "the port 'x'"),
    ("http://h", -1, "the port '-1'"),
    ("http://h", 65536, "the port '65536'"),
    ("http://h:x", None, "the port 'x'"),
    ("http://h", "3000 4000", "the port '3000 4000'"),
    ("http://[::1", 1, "http://"),
    ("http://[h]", 1, "http://"),
]


@pytest.mark.parametrize(("url", "port", "text"), WRONG)
def test_a_wrong_address_is_refused_with_its_key(url: str, port: str | int | None, text: str) -> None:
    """The error begins with the key of the file and says what is expected."""
    with pytest.raises(ConfigurationError, match=rf"^file: Key: .*{text}"):
        addresses.parse(url, port, key="file: Key")


@pytest.mark.parametrize(
    "url",
    [
        "http://h:1",
        "https://h.example:443",
        "unix:///run/i.sock",
        "http://[::1]:1",
    ],
)
def test_an_address_is_written_as_it_is_read(url: str) -> None:
    """In logs, errors and calls."""
    assert str(addresses.parse(url, None, key="k")) == url
