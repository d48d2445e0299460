"""What a strict server refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.model.lint import lint

USER = {"role": "user", "content": "Go."}


def call(id: Any = "c1", name: Any = "shell", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: dict[str, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


VIOLATIONS = {
    "no messages": ([], "too short"),
    "no role": ([{"content": "x"}], "'role'"),
    "unanswered call": (
        [USER, assistant(call())],
        "must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: c1",
    ),
    "answer after another role": (
        [USER, assistant(call()), USER, result()],
        "must be followed by tool messages",
    ),
    "one of two answered": ([USER, assistant(call(), call("c2")), result()], "response messages: c2"),
    "orphan": ([USER, result()], "must be a response to a preceeding message with 'tool_calls'"),
    "answered twice": (
        [USER, assistant(call()), result(), result()],
        "Duplicate value for 'tool_call_id' of 'c1', in messages[2] and messages[3]",
    ),
    "id used twice in one turn": (
        [USER, assistant(call(), call()), result(), result()],
        "Duplicate value for 'id' of 'c1'",
    ),
    "id used again later": (
        [USER, assistant(call()), result(), assistant(call()), result()],
        "Duplicate value for 'id' of 'c1'",
    ),
    "husk": ([USER, {"role": "assistant", "content": None}], "content or tool_calls must be set"),
    "empty calls": ([USER, assistant(content="x")], "empty array"),
    "bad name": ([USER, assistant(call(name="a b")), result()], "pattern"),
    "long name": ([USER, assistant(call(name="a" * 65)), result()], "pattern"),
    "empty id": ([USER, assistant(call(id=""))], ".id'"),
    "arguments object": ([USER, assistant(call(arguments={})), result()], "holds a JSON object"),
    "arguments no object": ([USER, assistant(call(arguments="[1]")), result()], "holds a JSON object"),
    "arguments NaN": ([USER, assistant(call(arguments='{"a":NaN}')), result()], "holds a JSON object"),
    "arguments surrogate": ([USER, assistant(call(arguments='{"a":"\\ud83c"}')), result()], "lone surrogate"),
    "NUL": ([{"role": "user", "content": "a\x00b"}], "NUL"),
    "surrogate": ([{"role": "user", "content": "a\ud800"}], "lone surrogate"),
    "assistant first": ([{"role": "assistant", "content": "x"}], "must be from the user"),
    "system alone": ([{"role": "system", "content": "x"}], "must be from the user"),
    "two users": ([USER, USER], "roles must alternate"),
    "null content": ([{"role": "user", "content": None}], "got null"),
    "number as content": ([{"role": "user", "content": 7}], "expected a string or an array"),
}


@pytest.mark.parametrize(("messages", "said"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_is_told_in_the_providers_words(messages: list[Any], said: str) -> None:
    """Each rule of the format is broken once, and named first."""
    assert any(said in violation for violation in lint(messages))


def test_a_whole_conversation_passes() -> None:
    """Parallel calls answered in any order, text beside calls, and several turns are fine."""
    messages = [
        {"role": "system", "content": "S"},
        USER,
        assistant(call(), call("c2", arguments='{"a":"\\ud83c\\udf78 \\\\ud800"}'), content="Both."),
        result("c2"),
        result("c1", ""),
        assistant(call("c3")),
        result("c3"),
        USER,
    ]

    assert lint(messages) == []


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ({"type": "function"}, "function.name"),
        ({"type": "function", "function": {"name": "a.b"}}, "function.name"),
        ({"type": "function", "function": {"name": "a", "parameters": []}}, "JSON Schema"),
    ],
)
def test_a_broken_tool_is_refused(tool: dict[str, Any], said: str) -> None:
    """Tools have valid names and an object as schema."""
    assert said in lint([USER], [tool])[0]


def test_a_tool_offered_twice_is_refused() -> None:
    """Names of tools are unique."""
    tool = {"type": "function", "function": {"name": "a", "parameters": {}}}

    assert "must be unique" in lint([USER], [tool, tool])[0]
