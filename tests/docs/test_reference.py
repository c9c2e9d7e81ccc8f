"""The documentation says what the code says."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from interlink.cli.main import main as root_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WRITTEN_PAGES = [page for page in PAGES if page.parent.name != "reference"]

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^(?P<indent> *)```[^\n]*\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_reference_pages_are_what_the_code_says() -> None:
    """A change of a command, key, variable, metric, fail-point or error comes with its page: `make docs`."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs.py", "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_keys_with_a_default_are_not_said_to_be_required() -> None:
    """Also where the default is an empty list or table."""
    rows = (ROOT / "docs/reference/configuration.md").read_text().splitlines()
    required = {row.split(" | ")[0].strip("| `") for row in rows if " | required | " in row}

    assert required == {"NodeTaints[].Key", "Resources.Accelerators[].ResourceType", "GPUs[].Resource"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that is there, and every anchor a heading of it."""
    targets = [match["target"] for match in LINK.finditer(without_code(page.read_text()))]

    assert [target for target in targets if not leads_somewhere(page, target)] == []


def leads_somewhere(page: Path, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return True
    path, _, anchor = target.partition("#")
    file = (page.parent / path) if path else page
    return file.exists() and (not anchor or anchor in anchors(file))


def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+)$", without_code(file.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_code(text: str) -> str:
    return FENCED.sub("", text)


@pytest.mark.parametrize("page", WRITTEN_PAGES, ids=name_of)
def test_quoted_commands_can_be_typed(page: Path) -> None:
    """Every quoted `interlink …` names a command that exists, with options that it has."""
    problems = [f"{line}: {problem}" for line in quoted_commands(page.read_text()) if (problem := mistake(line))]

    assert problems == []


def quoted_commands(text: str) -> Iterator[str]:
    """Lines of code blocks, continued ones joined, and inline code, that run `interlink`."""
    blocks = [match["body"].replace("\\\n", " ") for match in FENCED.finditer(text)]
    lines = [line for block in blocks for line in block.splitlines()] + INLINE.findall(without_code(text))
    for line in lines:
        command = re.sub(r"^\s*(\$ |ExecStart=\S*/(?=interlink ))", "", line).strip()
        if re.match(rf"({ASSIGNMENT.pattern}\S* +)*interlink( |$)", command):
            yield command


def mistake(line: str) -> str:
    """What is wrong with a command line; empty when nothing is."""
    words = shlex.split(line.partition(" #")[0])
    words = words[next(i for i, word in enumerate(words) if not ASSIGNMENT.match(word)) + 1 :]
    command: click.Command = root_command
    context = click.Context(command, info_name="interlink", help_option_names=["-h", "--help"])
    while words and words[0] not in ("…", "...", "&", ">", "|"):
        word = words.pop(0)
        if word.startswith("-"):
            option = next((p for p in command.get_params(context) if word.partition("=")[0] in p.opts), None)
            if option is None:
                return f"`{context.command_path}` has no option {word}"
            if isinstance(option, click.Option) and not option.is_flag and "=" not in word and words:
                words.pop(0)
        elif isinstance(command, click.Group) and word.islower():
            found = command.get_command(context, word)
            if found is None:
                return f"`{context.command_path}` has no command {word}"
            command, context = found, click.Context(found, info_name=word, parent=context)
    return ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("interlink pods list -o json", ""),
        ("A=b interlink pods --owner c/n logs UID main --follow", ""),
        ("interlink pods", ""),
        ("interlink pots list", "`interlink` has no command pots"),
        ("interlink pods list --all", "`interlink pods list` has no option --all"),
    ],
)
def test_a_wrong_command_would_be_found(line: str, problem: str) -> None:
    """The check itself sees wrong commands and wrong options."""
    assert mistake(line) == problem
