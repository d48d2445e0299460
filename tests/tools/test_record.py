"""What is kept and shown of a call."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from goalmode.domain.calls import CacheUse, CallOutcome, Effect, arguments_digest
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import ToolCall
from goalmode.domain.redact import Redactor
from goalmode.domain.work import StatePatch
from goalmode.tools.builtin import builtin_tools
from goalmode.tools.execute import Executed
from goalmode.tools.plan import Planned, plan
from goalmode.tools.record import SHOWN, STORED, record
from goalmode.tools.registry import ToolContext, ToolOutput


def planned(name: str = "shell", arguments: str = '{"command": "pytest -q"}') -> Planned:
    return plan([ToolCall("c", name, arguments)], builtin_tools(), frozenset(Effect))[0]


def done(output: ToolOutput) -> Executed:
    return Executed(CallOutcome.SUCCESS if output.ok else CallOutcome.FAILED, output, 7)


def test_a_record_tells_what_became_of_a_call(context: ToolContext) -> None:
    """Tool, effect, outcome, exit code, duration and subject are kept."""
    made = record(planned(), done(ToolOutput("exit code: 1", exit_code=1)), context)

    assert (made.tool, made.effect, made.outcome, made.exit_code) == (
        "shell",
        Effect.WRITE,
        CallOutcome.SUCCESS,
        1,
    )
    assert (made.shown, made.body, made.size, made.milliseconds) == ("exit code: 1", "exit code: 1", 12, 7)
    assert (made.brief, made.substantive) == ("pytest -q", True)


def test_a_huge_result_is_cut_for_the_model_and_bounded_for_the_store(context: ToolContext) -> None:
    """The model sees head, tail and size, the store gets head and tail of a megabyte (B59)."""
    made = record(planned(), done(ToolOutput("<" + "é" * 3_000_000 + ">")), context)

    assert made.size == 6_000_002
    assert len(made.shown) < SHOWN + 100
    assert made.shown[0] + made.shown[-1] == "<>"
    assert "the whole result is 6000002 bytes" in made.shown
    assert len(made.body.encode()) < STORED + 100
    assert made.body[0] + made.body[-1] == "<>"


@pytest.mark.parametrize("where", ["", "start", "middle", "end"])
def test_dirty_text_is_sendable_and_whole(where: str, context: ToolContext) -> None:
    """NUL stays visible wherever it stands, halves of characters are replaced, whole ones joined (B65, B70)."""
    text = {"start": "\x00abc", "middle": "a\x00bc", "end": "abc\x00"}.get(where, "\ud83c\udf78 \udcff")
    made = record(planned(), done(ToolOutput(text)), context)

    assert json.loads(json.dumps(made.shown).encode()) == made.body
    assert made.body == (text.replace("\x00", "␀") if where else "\U0001f378 \ufffd")


def test_equal_dirty_results_are_recorded_equally(context: ToolContext) -> None:
    """What compares results later sees the same text for the same bytes (B70)."""
    output = ToolOutput(b"\xff\xe9\x00".decode("latin-1") + "\udcaa")

    assert record(planned(), done(output), context) == record(planned(), done(output), context)


def test_equal_calls_and_equal_results_are_known_by_their_hashes(context: ToolContext) -> None:
    """Arguments as values, whatever their keys' order; results without a duration and without the cache's mark."""
    first = planned(arguments='{"command": "make", "timeout_seconds": 9}')
    again = planned(arguments='{"timeout_seconds":9, "command":"make"}')
    other = planned(arguments='{"command": "make", "timeout_seconds": 8}')
    fast = done(ToolOutput("exit code: 0\nduration: 0.1 s", varies="duration: 0.1 s"))
    slow = done(ToolOutput("exit code: 0\nduration: 0.2 s", varies="duration: 0.2 s"))
    served = replace(fast, cache=CacheUse(turn=3))

    one, two, three = (record(*pair, context) for pair in ((first, fast), (again, slow), (other, served)))

    assert one.arguments_sha == two.arguments_sha != three.arguments_sha
    assert one.result_sha == two.result_sha == three.result_sha
    assert one.result_sha != record(first, done(ToolOutput("exit code: 1")), context).result_sha


@pytest.mark.parametrize("raw", ["", "{", "[1", '{"a": "\ud83c"}', "1" * 5_000, "[" * 100_000], ids=range(6))
def test_arguments_that_are_none_are_known_as_they_are_written(raw: str) -> None:
    """Nothing that a model writes can break the comparison."""
    assert arguments_digest(raw) == arguments_digest(raw) != arguments_digest(raw + "x")


def test_secrets_are_struck_out_before_any_cut(context: ToolContext) -> None:
    """Neither shown, stored nor subject holds a secret, not even half of one at a cut, and they are counted."""
    secret = "s3cret-s3cret-s3cret"
    context = replace(context, redact=Redactor([secret]))
    call = planned(arguments=json.dumps({"command": f"curl {secret}"}))
    for before in range(SHOWN * 2 // 3 - 30, SHOWN * 2 // 3 + 5):
        text = "." * before + secret + "." * SHOWN
        made = record(call, done(ToolOutput(text, redactions=1)), context)

        assert made.redactions == 2
        assert "s3cret" not in made.shown + made.body + made.brief


def test_the_subject_is_one_line_of_200_characters(context: ToolContext) -> None:
    """A subject neither fills the context nor moves a cursor."""
    call = planned(arguments=json.dumps({"command": "echo\n\x1b[31m" + "x" * 500}))
    made = record(call, done(ToolOutput("")), context)

    assert made.brief.startswith("echo\\n\\x1b[31mxxx")
    assert len(made.brief) == 200


def test_a_failed_call_changes_nothing(context: ToolContext) -> None:
    """Only a call that succeeded may change the work state or ask for an ending."""
    output = ToolOutput("", patch=StatePatch(done=("x",)), exit=Exit(ExitReason.YIELDED))

    assert record(planned(), done(output), context).patch == StatePatch(done=("x",))
    failed = record(planned(), done(replace(output, ok=False)), context)
    assert (failed.patch, failed.exit) == (None, None)


def test_an_unknown_name_is_recorded_in_bounds(context: ToolContext) -> None:
    """A name that is no tool is kept as it was, readable and short."""
    made = record(planned("x\x00" + "y" * 5_000), done(ToolOutput("no", ok=False)), context)

    assert (made.effect, made.brief, len(made.tool)) == (None, "", 80)
    assert made.tool.startswith("x\\x00yyy")
