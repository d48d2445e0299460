"""What a strict Responses server refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.domain.signals import ErrorKind
from goalmode.model.lint_responses import lint

from .test_classify import error, kind

USER = {"type": "message", "role": "user", "content": "Go."}


def call(call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": "{}", **more}


def result(call_id: Any = "c1", output: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def said(text: str = "Hi.", kind: str = "output_text", **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": kind, "text": text}], **more}


def thought(**more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA", **more}


VIOLATIONS: dict[str, tuple[list[Any], str]] = {
    "no items": ([], "empty array"),
    "no object": ([7], "expected an object"),
    "unanswered call": ([USER, call()], "No tool output found for function call c1."),
    "one of two answered": (
        [USER, call(), call("c2"), result()],
        "No tool output found for function call c2.",
    ),
    "something between": ([USER, call(), said(), result()], "No tool output found for function call c1."),
    "reasoning between": (
        [USER, call(), thought(), said(), result()],
        "No tool output found for function call",
    ),
    "a call before the answers are complete": (
        [USER, call(), call("c2"), result(), call("c3"), result("c2"), result("c3")],
        "No tool output found for function call c2.",
    ),
    "orphan": ([USER, result()], "No tool call found for function call output with call_id c1."),
    "answered twice": ([USER, call(), result(), result()], "No tool call found for function call output"),
    "call id used twice": (
        [USER, call(), result(), call(), result()],
        "Duplicate value for 'call_id' of 'c1'",
    ),
    "item id used twice": (
        [USER, call(id="fc_1"), result(), call("c2", id="fc_1"), result("c2")],
        "Duplicate item found with id fc_1.",
    ),
    "no call id": ([USER, call(None)], "Missing required parameter: 'input[1].call_id'."),
    "long call id": ([USER, call("x" * 65), result("x" * 65)], "maximum length 64"),
    "foreign item id": ([USER, call(id="msg_1"), result()], "Expected an ID that begins with 'fc'."),
    "long item id": ([USER, call(id="fc_" + "x" * 64), result()], "maximum length 64"),
    "bad name": ([USER, call(name="a b"), result()], "pattern"),
    "arguments object": ([USER, call(arguments={}), result()], "holds a JSON object"),
    "arguments NaN": ([USER, call(arguments='{"a":NaN}'), result()], "holds a JSON object"),
    "arguments surrogate": ([USER, call(arguments='{"a":"\\ud83c"}'), result()], "holds a JSON object"),
    "incomplete call": ([USER, call(status="incomplete"), result()], "never completed"),
    "no output": ([USER, call(), result(output=None)], "Missing required parameter: 'input[2].output'."),
    "reasoning last": (
        [USER, thought()],
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "reasoning before the user": ([USER, thought(), USER], "without its required following item."),
    "reasoning before an output": (
        [USER, call(), thought(), result()],
        "without its required following item.",
    ),
    "reasoning that was not stored": (
        [USER, thought(encrypted_content=None), said()],
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    ),
    "reasoning without id": ([USER, thought(id=None), said()], "'input[1].id'"),
    "reasoning without summary": ([USER, thought(summary=None), said()], "'input[1].summary'"),
    "assistant first": ([said()], "must be a message from the user"),
    "call first": ([call(), result()], "must be a message from the user"),
    "system alone": ([{"role": "system", "content": "x"}], "must be a message from the user"),
    "unknown role": ([USER, {"role": "tool", "content": "x"}], "Invalid value: 'tool'"),
    "unknown type": ([USER, {"type": "banana"}], "Invalid value: 'banana'"),
    "input text of an assistant": (
        [USER, said(kind="input_text")],
        "Supported values are: 'output_text' and",
    ),
    "output text of a user": (
        [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}],
        "Supported values are: 'input_text'",
    ),
    "empty content": ([{"role": "user", "content": ""}], "empty"),
    "no content": ([{"role": "user"}], "expected a string or an array"),
    "NUL": ([{"role": "user", "content": "a\x00b"}], "NUL"),
    "surrogate": ([USER, call(), result(output="\ud800")], "lone surrogate"),
}


@pytest.mark.parametrize(("items", "words"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_is_told_in_openais_words(items: list[Any], words: str) -> None:
    """Each rule of the format is broken once, and named."""
    assert any(words in violation for violation in lint(items))


def test_an_item_needs_the_reasoning_it_was_made_after() -> None:
    """What the server made after reasoning is not taken back without it, and is with it."""
    made = {"fc_1": "rs_1"}
    items = [USER, call(id="fc_1"), result()]

    [words] = lint(items, thought=made)

    assert words == (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."
    )
    assert lint([USER, thought(), *items[1:]], thought=made) == []
    assert lint([USER, call(), result()], thought=made) == []


def test_a_whole_conversation_passes() -> None:
    """Parallel calls answered in any order, reasoning before text and calls, and several turns are fine."""
    items = [
        {"role": "developer", "content": "S"},
        {"role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        thought(),
        said("Both.", phase="commentary"),
        call(id="fc_1"),
        call("c2", arguments='{"a":"\\\\ud800"}'),
        result("c2"),
        result(),
        thought(id="rs_2"),
        call("c3"),
        result("c3", ""),
        USER,
    ]

    assert lint(items) == []


TOOL = {"type": "function", "name": "a", "parameters": {"type": "object"}, "strict": False}


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([{"type": "function", "function": {"name": "a"}}], "Missing required parameter: 'tools[0].name'."),
        ([{**TOOL, "name": "a.b"}], "'tools[0].name'"),
        ([{**TOOL, "parameters": []}], "JSON Schema"),
        ([{**TOOL, "type": "custom"}], "Invalid value: 'custom'"),
        ([TOOL, TOOL], "must be unique"),
    ],
)
def test_a_broken_tool_is_refused(tools: list[Any], words: str) -> None:
    """Tools stand in this format's shape, with names of their own and an object as schema."""
    assert words in lint([USER], tools)[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unanswered call", ErrorKind.PROTOCOL),
        ("orphan", ErrorKind.PROTOCOL),
        ("item id used twice", ErrorKind.PROTOCOL),
        ("reasoning last", ErrorKind.SIGNATURE),
        ("reasoning that was not stored", ErrorKind.SIGNATURE),
    ],
)
def test_refusals_of_a_conversation_are_told_from_bad_requests(name: str, expected: ErrorKind) -> None:
    """What mending the conversation cures is PROTOCOL, what dropping reasoning cures is SIGNATURE."""
    items, words = VIOLATIONS[name]
    [said] = [violation for violation in lint(items) if words in violation][:1]

    assert expected is kind(404 if "not found" in said else 400, error(said))
    assert ErrorKind.SIGNATURE is kind(400, error("The encrypted content gAAA… could not be verified."))
