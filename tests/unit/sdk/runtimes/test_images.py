"""From the image of a container to what is run (T25)."""

import pytest

from interlink.sdk.errors import Rejected
from interlink.sdk.runtimes import images
from interlink.sdk.runtimes.images import IMAGE_ROOT, Image, ImageSettings
from tests.unit.builders import Document

TABLE = {
    "exact:1": "/images/exact",
    "ghcr.io/*": "/cvmfs/ghcr/*.sif",
    "exact*": "docker://mirror.example/*",
    "*/last:2": "oras://reg/*",
}
UNPACKED = "/cvmfs/unpacked/registry.hub.docker.com/"

LOCATIONS = [
    # name, prefix, annotation, location
    ("busybox", "", "", "docker://busybox"),
    ("busybox", "docker://", "", "docker://busybox"),
    ("docker://busybox:1.36", "docker://", "", "docker://busybox:1.36"),
    ("docker://busybox:1.36", "", "", "docker://busybox:1.36"),
    ("ghcr.io/a/b@sha256:0123", "docker://", "", "docker://ghcr.io/a/b@sha256:0123"),
    ("reg:5000/x", "", "", "docker://reg:5000/x"),
    ("reg:5000/x", "docker://", "", "docker://reg:5000/x"),
    ("oras://reg/x:1", "docker://", "", "oras://reg/x:1"),
    ("library://a/b", "docker://", "", "library://a/b"),
    ("docker-archive:/i/x.tar", "docker://", "", "docker-archive:/i/x.tar"),
    ("/cvmfs/x.sif", "docker://", "", "/cvmfs/x.sif"),
    ("file:///cvmfs/x.sif", "docker://", "", "/cvmfs/x.sif"),
    ("library/busybox:1", UNPACKED, "", UNPACKED + "library/busybox:1"),
    (UNPACKED + "library/busybox:1", UNPACKED, "", UNPACKED + "library/busybox:1"),
    ("mirror/x", "mirror/", "", "docker://mirror/x"),
    ("x", "mirror/", "", "docker://mirror/x"),
    ("x:1", "docker://", "/my/images/", "/my/images/x:1"),
    ("docker://x:1", "", "/my/images/", "docker://x:1"),
]


@pytest.mark.parametrize(("name", "prefix", "root", "location"), LOCATIONS)
def test_where_an_image_is(name: str, prefix: str, root: str, location: str) -> None:
    """What says a scheme or a path is itself; the prefix comes once, the annotation in its place."""
    assert images.resolve(name, ImageSettings(prefix=prefix), {IMAGE_ROOT: root}).location == location


MAPPED = [
    ("exact:1", "/images/exact"),
    ("exact:2", "docker://mirror.example/:2"),
    ("ghcr.io/a/b:3", "/cvmfs/ghcr/a/b:3.sif"),
    ("x/last:2", "oras://reg/x"),
    ("other", "docker://other"),
]


@pytest.mark.parametrize(("name", "location"), MAPPED)
def test_the_sites_table(name: str, location: str) -> None:
    """An exact name first, then patterns in their order; what fits none goes the usual way."""
    assert images.resolve(name, ImageSettings(table=TABLE), {}).location == location


@pytest.mark.parametrize("name", ["", "-x", "--nv", "a b", "a\nb", "a\x00b", "x\u2028y"])
def test_what_is_no_name_of_an_image(name: str) -> None:
    """It is refused before it can be taken for an option or a second word."""
    with pytest.raises(Rejected, match="InvalidImageName"):
        images.resolve(name, ImageSettings(), {})


def test_a_root_is_checked_like_a_name() -> None:
    """The annotation becomes part of a word too."""
    with pytest.raises(Rejected, match=r"image-root: .* is no name"):
        images.resolve("x", ImageSettings(), {IMAGE_ROOT: "--nv "})


WRONG = [
    ({"a*b*": "/x"}, "may hold one * only"),
    ({"a": "busybox"}, "neither an absolute path nor an address"),
    ({"a/*": "/images/../*"}, "may not hold both"),
]


@pytest.mark.parametrize(("table", "text"), WRONG)
def test_a_table_that_cannot_be(table: Document, text: str) -> None:
    """Found when the configuration is read."""
    assert text in (images.wrong_row(table) or "")
    assert images.wrong_row(TABLE) is None


def test_keys_tell_images_apart() -> None:
    """By the address and by the login; the first part is for people."""
    keys = {
        Image("x", location).key(".sif", secret)
        for location in ("docker://a/b:1", "docker://a_b:1", "oras://a/b:1")
        for secret in ("", "me")
    }

    assert len(keys) == 6
    assert Image("x", "docker://a/b:1").key(".sif").startswith("a_b_1-")
    assert all("/" not in key for key in keys)
    assert len(Image("x", "docker://" + "a" * 300).key(".sif")) < 120
