"""What the documents say is what the program does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from goalmode.cli.main import PLACES, cli
from goalmode.domain.exits import EXIT_FACTS
from goalmode.testing import Stub, steps

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
GUIDES = ("docs/genericagent.md", "docs/genericagent.zh.md")

BUILT = {"__pycache__", "build", "dist"}
MACHINE_PATH = re.compile(r"/(?:work|farm|root|tmp|home|Users)/[A-Za-z]")


def _rows(heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without code marks; its head and rule left out."""
    section = README.split(f"\n{heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_of_exit_reasons_is_the_facts_table() -> None:
    """The README's table has the facts of every reason, in the same order."""
    facts = [
        [str(known.exit_code), reason.value, known.sentence, known.status.value, known.next_wakeup.value]
        for reason, known in EXIT_FACTS.items()
    ]

    assert _rows("## How a wakeup ends") == facts


def test_every_command_is_in_the_readme() -> None:
    """The README's table of commands has every command, and none that does not exist."""
    named = [row[0] for row in _rows("## Use")]

    assert sorted(named) == sorted(f"goalmode {name}" for name in PLACES)


def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever copies the example for embedding gets a goal that runs to its checked end."""
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    script = [
        steps.tool("stock", {"part": "wheel"}),
        steps.tool("write_file", {"path": "stock.txt", "content": "4\n"}),
        steps.tool("complete", {"status": "success", "summary": "Written.", "evidence": ["stock.txt"]}),
    ]
    with Stub(script) as stub:
        exec(example.replace("http://127.0.0.1:8080/v1", stub.base_url), {"__name__": "example"})

    assert capsys.readouterr().out.startswith("CURRENT_TASK_DONE ")
    assert (tmp_path / "stock.txt").read_text() == "4\n"


def test_make_targets_of_the_readme_exist() -> None:
    """Whoever types a `make` line of a document gets what it promises."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        name
        for file in ("README.md", "CONTRIBUTING.md", *GUIDES)
        for name in re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    }

    assert {"demo", "test"} <= named
    assert named - targets == set()


def test_the_changelog_has_room_for_what_comes() -> None:
    """Changes are written down under Unreleased until there is a release."""
    assert re.search(r"^## \[Unreleased\]$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *GUIDES])
def test_links_of_documents_lead_somewhere(name: str) -> None:
    """A relative link names a file of the project."""
    file = ROOT / name
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", file.read_text("utf-8"))

    assert [link for link in links if not (file.parent / link).exists()] == []


def _blocks(name: str) -> list[str]:
    """What a guide gives to be typed: its blocks of code, without the indentation of lists."""
    found = re.findall(r"^ *```\n(.*?)^ *```$", (ROOT / name).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return ["\n".join(line.strip() for line in block.splitlines()) for block in found]


def _commands(name: str) -> Iterator[str]:
    """The command lines of goalmode that a guide names, in blocks and in sentences."""
    for line in "\n".join(_blocks(name)).splitlines():
        yield from re.findall(r"^goalmode .+|(?<=\$\()goalmode [^)]+", line)
    yield from re.findall(r"`(goalmode [a-z][^`]*)`", (ROOT / name).read_text("utf-8"))


def _is_known(line: str) -> bool:
    """Whether the command exists, with each option that the line gives."""
    words = shlex.split(line)[1:]
    command: click.Command | None = cli
    while words and isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    if command is None or isinstance(command, click.Group):
        return False
    options = {option for parameter in command.params for option in parameter.opts}
    return all(word in options for word in words if word.startswith("-"))


@pytest.mark.parametrize("name", GUIDES)
def test_the_commands_of_a_guide_exist(name: str) -> None:
    """Whoever types a line of a guide finds the command and its options."""
    lines = list(_commands(name))

    assert len(lines) > 15
    assert [line for line in lines if not _is_known(line)] == []


def test_a_guide_says_the_same_in_both_languages() -> None:
    """The same things to type, the same reasons, in the same order."""
    english, chinese = ((ROOT / name).read_text("utf-8") for name in GUIDES)
    reasons, headings = r"\| (`[A-Z_]+`) \|$", r"^#+ "

    assert _blocks(GUIDES[0]) == _blocks(GUIDES[1])
    for pattern in (reasons, headings):
        assert re.findall(pattern, english, re.MULTILINE) == re.findall(pattern, chinese, re.MULTILINE)


def _texts(root: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(root.iterdir()):
        if path.name in BUILT or path.name.endswith(".egg-info"):
            continue
        if path.is_dir() and (not path.name.startswith(".") or path.name == ".ci"):
            yield from _texts(path)
        elif path.is_file() and path.suffix != ".gz":
            yield path, path.read_text("utf-8", errors="replace")


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    """The project does not know where it was written."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path, text in _texts(ROOT)
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]

    assert found == []
