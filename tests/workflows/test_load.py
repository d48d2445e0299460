"""Workflows out of TOML: what is shipped, what a user may write, and how a mistake is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goalmode.context.render import package_prompts
from goalmode.domain.workflow import (
    ABORT,
    MAX_INSTRUCTION,
    PURSUE,
    EndTurn,
    Known,
    Movement,
    Workflow,
    faults,
)
from goalmode.errors import BadInput
from goalmode.tools.builtin import builtin_tools
from goalmode.workflows.load import MAX_BYTES, SHIPPED, load_workflow, parse_workflow, shipped

KNOWN = Known([tool.name for tool in builtin_tools()], ["pursue", "verify"])

GOOD = '''\
# A comment with default_next = "nowhere"
start = "draft"

[[movement]]
name = "draft"
instruction = """
Write it.
default_next = "nowhere"
[[movement]]
"""
tools = [
  "read_file",
  "write_file",
]
default_next = "review"

[[movement]]
name = 'review'  # name = "x"
instruction_template = "verify"
default_next = "ASK"
end_turn = "claim"
verifies = true
'''


def test_pursue_is_what_a_goal_does_that_names_no_workflow() -> None:
    """The shipped file and the constant are one."""
    assert shipped("pursue") == PURSUE


def test_polish_goes_round() -> None:
    """create leads to verify, verify and improve to each other; prose is nudged everywhere."""
    polish = shipped("polish")

    assert polish.start == "create"
    assert [(m.name, m.default_next) for m in polish.movements] == [
        ("create", "verify"),
        ("verify", "improve"),
        ("improve", "verify"),
    ]
    assert {m.end_turn for m in polish.movements} == {EndTurn.NUDGE}
    assert [m.name for m in polish.movements if m.verifies] == ["verify"]


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_right(name: str) -> None:
    """No shipped workflow has a mistake, and each has templates in both languages."""
    for lang in ("en", "zh"):
        known = Known(KNOWN.tools, package_prompts().movements(lang))

        assert list(faults(load_workflow(name, known), known)) == []


def test_a_users_file_is_read(tmp_path: Path) -> None:
    """Every field; what is left out has its default; the name is the file's."""
    file = tmp_path / "my flow.toml"
    file.write_text(GOOD)

    made = load_workflow(str(file), KNOWN)

    text = 'Write it.\ndefault_next = "nowhere"\n[[movement]]\n'
    draft = Movement("draft", text, "", ("read_file", "write_file"), "review", EndTurn.NUDGE)
    review = Movement("review", "", "verify", None, "ASK", EndTurn.CLAIM, verifies=True)
    assert made == Workflow("my flow", "draft", (draft, review))


def test_the_readmes_example_is_a_workflow() -> None:
    """Whoever copies it gets two movements."""
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    [example] = [
        text for text in re.findall(r"```toml\n(.*?)```", readme, re.DOTALL) if "[[movement]]" in text
    ]

    assert parse_workflow(example, "w", "README.md", KNOWN).names == ("draft", "review")


def test_what_is_left_out_has_its_default() -> None:
    """The first movement is the start; ABORT, nudge and all tools."""
    made = parse_workflow('[[movement]]\nname = "a"\ninstruction = "x"\n', "w", "w.toml")

    assert made == Workflow("w", "a", (Movement("a", "x", "", None, ABORT, EndTurn.NUDGE),))


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        (
            'start = "draft"',
            'start = "draf"',
            "line 2: start: 'draf' is not valid: a movement's name: draft, review",
        ),
        ('start = "draft"', "start = 3", "line 2: start: '3' is not valid: a movement's name"),
        (
            'start = "draft"',
            'begin = "draft"',
            "line 2: begin: 'draft' is not valid: no key; the keys are start, ",
        ),
        ('name = "draft"', 'name = "Draft"', "line 5: name: 'Draft' is not valid: lower-case letters"),
        ('name = "draft"', "", "line 4: name: '' is not valid: a name; every movement has one"),
        ("name = 'review'", 'name = "draft"', "line 18: name: 'draft' is not valid: a name that no other"),
        (
            '"write_file"',
            '"write_fil"',
            "line 11: tools: 'write_fil' is not valid: names out of: shell, read_file",
        ),
        ('"write_file"', "7", "line 11: tools: '7' is not valid: a list of tools' names"),
        (
            'default_next = "review"',
            'default_next = "revue"',
            "line 15: default_next: 'revue' is not valid: COMPLETE, ABORT, ASK or one of draft, review",
        ),
        ('"ASK"', '"ask"', "line 20: default_next: 'ask' is not valid: COMPLETE, ABORT, ASK or one of"),
        ('"claim"', '"stop"', "line 21: end_turn: 'stop' is not valid: nudge or claim"),
        ("verifies = true", "verifies = 1", "line 22: verifies: '1' is not valid: true or false"),
        ("verifies = true", 'verifies = "yes"', "line 22: verifies: 'yes' is not valid: true or false"),
        ('"claim"', "true", "line 21: end_turn: 'True' is not valid: nudge or claim"),
        (
            'instruction_template = "verify"',
            'instruction_template = "../system"',
            "line 19: instruction_template: '../system' is not valid: the name of a template",
        ),
        (
            'instruction_template = "verify"',
            'instruction_template = "verfy"',
            "line 19: instruction_template: 'verfy' is not valid: one of: pursue, verify",
        ),
        (
            'instruction_template = "verify"',
            'instruction = "   "',
            "line 19: instruction: '   ' is not valid: a text that is not blank, or an instruction_template",
        ),
        (
            'end_turn = "claim"',
            'instruction = "and this"',
            "line 21: instruction: 'and this' is not valid: a text that is not blank, or an instruction_template",
        ),
        (
            'instruction_template = "verify"',
            f'instruction = "{"x" * (MAX_INSTRUCTION + 1)}"',
            "at most 10,000 characters; it has 10,001",
        ),
        ('instruction_template = "verify"', 'instruction = "a\\u0000b"', "valid UTF-8 without NUL"),
        (
            'name = "draft"',
            'name "draft"',
            "valid TOML: Expected '=' after a key in a key/value pair (at line 5",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line_with_its_place(right: str, wrong: str, told: str) -> None:
    """The file, the line, the field, its value and what would be right; nothing in a string or comment misleads."""
    assert right in GOOD

    with pytest.raises(BadInput) as caught:
        parse_workflow(GOOD.replace(right, wrong, 1), "w", "my flow.toml", KNOWN)

    said = str(caught.value)
    assert "my flow.toml" in said
    assert told in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: movement: '0' is not valid: from 1 to 20 tables"),
        ("movement = 3", "line 1: movement: '3' is not valid: tables"),
        ("\nmovement = [1]", "line 2: movement: '1' is not valid: a table"),
        ("#\nmovement = [{name = 'a', instruction = 'x', end_turn = 'no'}]", "line 2: end_turn: 'no'"),
        ("[[movement]]\nname = 'a'\ninstruction = 'x'\n" * 21, "from 1 to 20 tables"),
        ("a = " + "[" * 5_000, "not valid: valid TOML"),
    ],
    ids=["empty", "number", "list", "inline", "too many", "too deep"],
)
def test_other_shapes_are_mistakes_too(text: str, told: str) -> None:
    """Whatever TOML there is, the answer is a workflow or one line."""
    with pytest.raises(BadInput) as caught:
        parse_workflow(text, "w", "w.toml")

    assert told in str(caught.value)


@pytest.mark.parametrize("given", ["polsh", "no/such/file.toml", ".", "a\0b", ""])
def test_what_is_no_workflow_is_told(given: str) -> None:
    """Neither a shipped one nor a file that can be read: both are named."""
    with pytest.raises(BadInput, match=r"^workflow: .*pursue, polish, or a TOML file"):
        load_workflow(given)


def test_only_text_of_a_bounded_size_is_read(tmp_path: Path) -> None:
    """A binary file, or one without end, is refused."""
    binary, large = tmp_path / "b.toml", tmp_path / "l.toml"
    binary.write_bytes(b"\xff\xfe")
    large.write_bytes(b"#" * (MAX_BYTES + 1))

    for file, told in ((binary, "UTF-8"), (large, "at most 500,000 bytes")):
        with pytest.raises(BadInput, match=told):
            load_workflow(str(file))
