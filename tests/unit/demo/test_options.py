"""What the user can choose, and what is refused."""

import pytest

from tools.demo import options
from tools.demo.options import InvalidOption, Options


def test_without_anything_the_examples_run_as_they_are() -> None:
    assert options.read({"KEEP": "", "DEMO_PODS": ""}) == Options(completions=None, is_kept=False, wants_cluster=True)


def test_everything_can_be_chosen() -> None:
    chosen = options.read({"KEEP": "1", "DEMO_PODS": "200", "DEMO_CLUSTER": "none"})

    assert chosen == Options(completions=200, is_kept=True, wants_cluster=False)


@pytest.mark.parametrize("environ", [{"DEMO_PODS": "many"}, {"DEMO_PODS": "0"}, {"DEMO_CLUSTER": "yes"}])
def test_what_cannot_be_read_is_refused_by_name(environ: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(environ))):
        options.read(environ)
