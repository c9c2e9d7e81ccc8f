"""The flags that a pod may set (T19)."""

import pytest

from interlink.plugins.slurm import flags
from interlink.plugins.slurm.flags import Option
from interlink.sdk.errors import Rejected


def parsed(text: str) -> list[str]:
    return [str(option) for option in flags.parse(text, place="flags")]


def permitted(text: str, **rules: list[str]) -> list[str]:
    rules = {"allowed": [], "denied": []} | rules
    found = flags.permitted(flags.parse(text, place="flags"), place="flags", **rules)
    return [str(option) for option in found]


def test_flags_are_split_as_a_shell_would() -> None:
    """Each becomes one word."""
    assert parsed("-p gpu --gres=gpu:1 --comment='a b' -t 00:10:00 --mem-per-cpu=4G -N2 --exclusive --mem 5G") == [
        "--partition=gpu",
        "--gres=gpu:1",
        "--comment=a b",
        "--time=00:10:00",
        "--mem-per-cpu=4G",
        "--nodes=2",
        "--exclusive",
        "--mem=5G",
    ]


@pytest.mark.parametrize("text", ["$(id)", "`id`", "a;b", "$HOME", "#x"])
def test_nothing_is_evaluated(text: str) -> None:
    """A value is a value."""
    assert parsed(f"--comment={text!r}") == [f"--comment={text}"]


@pytest.mark.parametrize(
    "text",
    [
        "--comment=x\n#SBATCH --uid=0",
        "--comment='x\n#SBATCH --uid=0'",
        "--comment='x",
        "/tmp/evil.sh",
        "--exclusive /tmp/evil.sh",
        "-p gpu /tmp/evil.sh",
        "--hold evil.sh",
        "--requeue x",
        "-y",
        "-",
        "--",
        "--a$b=1",
        "--comment=\x1b[0m",
    ],
)
def test_what_cannot_be_an_option_is_refused(text: str) -> None:
    """A word of its own would be taken for the script, a line for a directive."""
    with pytest.raises(Rejected, match=r"^flags: "):
        parsed(text)


@pytest.mark.parametrize(
    "text",
    [
        "--wrap=id", "--wrap id", "--wra=x", "--uid=0", "--array=1-9", "-a 1-9", "--export=ALL", "--requeue",
        "-M other", "-W", "-h", "--bbf=/etc/shadow", "--cluster=x",
    ],
)  # fmt: skip
def test_what_breaks_a_promise_is_refused(text: str) -> None:
    """Also abbreviated, as sbatch would take it."""
    with pytest.raises(Rejected, match="is not allowed"):
        permitted(text)


def test_what_is_ours_is_dropped() -> None:
    """A name and places for output are set by us."""
    assert permitted("-J x -o /tmp/x --error=y --job-name=z --parsable -p gpu") == ["--partition=gpu"]


def test_a_site_may_allow_and_deny() -> None:
    """By name."""
    with pytest.raises(Rejected, match="does not allow --nice"):
        permitted("--nice=5", denied=["nice"])
    with pytest.raises(Rejected, match="does not allow --nice"):
        permitted("--nice=5", allowed=["time"])
    assert permitted("-t 5", allowed=["time"]) == ["--time=5"]


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("--mem=1M", "--mem-per-cpu=4G", ["--mem-per-cpu=4G"]),
        ("--gres=gpu:1", "--gpus=2", ["--gpus=2"]),
        ("--gres=shard:1", "--gpus=2", ["--gres=shard:1", "--gpus=2"]),
        ("-t 5", "--time=6", ["--time=6"]),
        ("-t 5", "-p a", ["--time=5", "--partition=a"]),
    ],
)
def test_a_later_option_replaces_an_earlier_one(earlier: str, later: str, expected: list[str]) -> None:
    """Also one that says the same in another way."""
    layers = [flags.parse(text, place="flags") for text in (earlier, later)]

    assert [str(option) for option in flags.merged(*layers)] == expected


def test_an_option_in_words() -> None:
    """With and without a value; an empty value stays."""
    assert [str(Option("a")), str(Option("a", "")), str(Option("a", "b"))] == ["--a", "--a=", "--a=b"]
