"""A directory whose content somebody else may change: links and pipes laid as traps lead nowhere."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interlink.aio.beneath import Beneath

Act = Callable[[Beneath, Path], object]

ACTS: dict[str, Act] = {
    "open": lambda place, path: place.open(path),
    "write": lambda place, path: place.write(path, b"news", mode=0o600),
    "make a directory": lambda place, path: place.make_directory(path),
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "file").write_text("secret")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_no_link_on_the_way_is_followed(root: Path, elsewhere: Path, act: Act) -> None:
    """Whatever is to be done there."""
    (root / "link").symlink_to(elsewhere)

    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        act(Beneath(root), root / "link" / "file")

    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"file": "secret"}


def test_a_link_in_the_place_of_a_file_is_not_read(root: Path, elsewhere: Path) -> None:
    """As a job could do with its own log."""
    (root / "file").symlink_to(elsewhere / "file")

    with pytest.raises(OSError, match="symbolic links"):
        Beneath(root).open(root / "file")


def test_a_link_in_the_place_of_a_file_is_replaced(root: Path, elsewhere: Path) -> None:
    """And what it pointed to stays as it was."""
    (root / "file").symlink_to(elsewhere / "file")
    Beneath(root).write(root / "file", b"news", mode=0o640)

    assert ((root / "file").read_text(), (elsewhere / "file").read_text()) == ("news", "secret")
    assert (root / "file").lstat().st_mode & 0o777 == 0o640


@pytest.mark.timeout(10)
def test_a_pipe_is_waited_for_by_nobody(root: Path) -> None:
    """Neither to read nor to write."""
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        Beneath(root).open(root / "pipe")
    Beneath(root).write(root / "pipe", b"news", mode=0o600)

    assert (root / "pipe").read_bytes() == b"news"


def test_what_a_crash_left_is_no_obstacle(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one takes it away."""
    place = Beneath(root)

    def fails(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fails)
        with pytest.raises(KeyboardInterrupt):
            place.write(root / "file", b"1", mode=0o600)
    place.write(root / "file", b"2", mode=0o600)

    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"file": b"2"}


def test_a_name_may_be_as_long_as_the_file_system_takes(root: Path) -> None:
    """A key of a ConfigMap has up to 253 characters."""
    Beneath(root).write(root / "a" / ("k" * 255), b"x", mode=0o600)

    assert (root / "a" / ("k" * 255)).read_bytes() == b"x"


@pytest.mark.parametrize("path", ["../elsewhere/file", "a/../../elsewhere/file"])
def test_what_is_not_below_is_refused(root: Path, elsewhere: Path, path: str) -> None:
    """A mistake of ours, not of the other one."""
    with pytest.raises(ValueError, match="not"):
        Beneath(root).write(root / path, b"x", mode=0o600)

    assert (elsewhere / "file").read_text() == "secret"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_is_given_away_are_links_not_what_they_point_to(root: Path, elsewhere: Path) -> None:
    """Directories and files in it, and the root."""
    (root / "a").mkdir()
    (root / "a" / "file").write_text("x")
    (root / "a" / "link").symlink_to(elsewhere / "file")
    (root / "folder").symlink_to(elsewhere)
    Beneath(root).give(12345)

    given = [root, root / "a", root / "a" / "file", root / "a" / "link", root / "folder"]
    assert [path.lstat().st_uid for path in (*given, elsewhere, elsewhere / "file")] == [12345] * 5 + [0, 0]
