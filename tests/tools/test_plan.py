"""Which calls can run, and what the model is told of those that cannot."""

from __future__ import annotations

import json

import pytest

from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.messages import ToolCall
from goalmode.tools.builtin import builtin_tools
from goalmode.tools.plan import MAX_CALLS, Planned, plan

ALL = frozenset(Effect)
SAVING = frozenset({Effect.STATE, Effect.CONTROL})


def one(name: str, arguments: str, allowed: frozenset[Effect] = ALL) -> Planned:
    return plan([ToolCall("c", name, arguments)], builtin_tools(), allowed)[0]


def test_a_good_call_gets_its_arguments_exactly() -> None:
    """Arguments reach the tool as written, escaped characters outside the BMP too (B67)."""
    planned = one("write_file", '{"path": "a b.md", "content": "\\ud83c\\udf78 \\\\d+"}')

    assert (planned.outcome, planned.problem) == (None, "")
    assert planned.arguments == {"path": "a b.md", "content": "\U0001f378 \\d+"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"path": "a', "not valid JSON"),
        ("null", "must be a JSON object"),
        ("[1]", "must be a JSON object"),
        ('"x"', "must be a JSON object"),
        ("7", "must be a JSON object"),
        ("", "not valid JSON"),
        ('{"path": 7}', "path: 7 is not valid, must be a string"),
        ('{"path": "a", "offset": NaN}', "NaN is not a JSON number"),
        ('{"path": "a", "offset": -Infinity}', "-Infinity is not a JSON number"),
        ('{"path": "a", "offset": 1e999}', "too large"),
        ('{"path": "a", "offset": ' + "9" * 5000 + "}", "not valid JSON"),
        ('{"path": "a", "path": "b"}', "'path' is given twice"),
        ('{"path": ' + "[" * 64 + "]" * 64 + "}", "nested deeper than 64"),
        ('{"path": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested deeper than 64"),
        ("g" * 2_000_000, "not valid JSON"),
        ('{"path": "' + "ä" * 1_000_001 + '"}', "at most 2000000 are taken"),
        ('{"path": "' + "x" * 1_900_000 + '", "offset": "1"}', "must be an integer"),
    ],
    ids=lambda value: value[:20],
)
def test_bad_arguments_are_one_short_error_that_names_tool_and_problem(arguments: str, problem: str) -> None:
    """Malformed arguments are answered within 2000 characters and never run (B12, B78)."""
    planned = one("read_file", arguments)

    assert (planned.outcome, planned.arguments) == (CallOutcome.FAILED, None)
    assert planned.problem.startswith("read_file: ")
    assert problem in planned.problem
    assert len(planned.problem) < 2000


def test_nesting_up_to_the_bound_is_taken() -> None:
    """64 levels are as deep as arguments may be; the problem is then only the type."""
    planned = one("read_file", '{"path": ' + "[" * 63 + "1" + "]" * 63 + "}")

    assert "path: [[" in planned.problem


def test_invalid_escapes_are_an_error_never_an_altered_object() -> None:
    """A Windows path with single backslashes is refused, not mended or emptied (B137)."""
    planned = one("write_file", '{"path":"C:\\Users\\d.txt","content":"\\d+"}')

    assert (planned.outcome, planned.arguments) == (CallOutcome.FAILED, None)
    assert "Invalid \\escape" in planned.problem


def test_an_unknown_name_lists_the_valid_ones() -> None:
    """A call to a tool that is not there names those that are, and only those on offer (B82)."""
    name = "finish\x1b[31m" + "x" * 5000

    assert "the valid names are: shell, read_file" in one("finish", "{}").problem
    saving = "update_working_checkpoint, verify, complete, wait, remember, recall, start_long_term_update"
    assert one(name, "{}", SAVING).problem.endswith(f"valid names are: {saving}")
    assert len(one(name, "{}").problem) < 500
    assert "\x1b" not in one(name, "{}").problem


def test_an_effect_that_is_not_on_offer_is_denied_with_the_reason() -> None:
    """In the wrap-up only state and control tools run, whatever their arguments look like."""
    planned = one("shell", "{", SAVING)

    assert planned.outcome is CallOutcome.DENIED
    assert planned.problem == "shell: denied: only state and control tools are offered now"


def test_calls_beyond_the_bound_are_skipped() -> None:
    """Of 5,000 calls in one reply 64 are planned, each of the others has its result."""
    calls = [ToolCall(f"c{n}", "list_files", json.dumps({"depth": 1})) for n in range(5_000)]

    planned = plan(calls, builtin_tools(), ALL)

    assert [p.position for p in planned] == list(range(5_000))
    assert sum(p.outcome is None for p in planned) == MAX_CALLS
    assert {p.outcome for p in planned[MAX_CALLS:]} == {CallOutcome.SKIPPED}
    assert "at most 64 calls" in planned[64].problem
