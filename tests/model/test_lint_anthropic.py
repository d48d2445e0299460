"""What a strict Anthropic server refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.model.lint_anthropic import lint

TOOL = {"name": "shell", "description": "Run.", "input_schema": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "Go."}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


def text(said: str = "A", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(id: Any = "c1", name: Any = "shell", input: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {} if input is None else input}


def result(id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def model(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages), "tools": [TOOL], **more}


VIOLATIONS = {
    "no max_tokens": ({"model": "m", "messages": [USER]}, "max_tokens: Field required"),
    "no model": ({"max_tokens": 9, "messages": [USER]}, "model: Field required"),
    "no messages": ({"model": "m", "max_tokens": 9}, "messages: Field required"),
    "empty messages": (request(), "at least one message is required"),
    "a field of another format": (request(USER, stream_options={}), "stream_options: Extra inputs"),
    "too warm": (request(USER, temperature=1.5), "temperature: range: 0..1"),
    "tools no list": (request(USER, tools={}), "tools: Input should be a valid array"),
    "a role of another format": (
        request({"role": "tool", "content": "x"}),
        "messages.0.role: Input should be",
    ),
    "no content": (request({"role": "user", "content": None}), "messages.0.content: Input should be"),
    "an unknown block": (request(user({"type": "reasoning"})), "messages.0.content.0: Input tag 'reasoning'"),
    "a call of the user": (request(user(use())), "Input tag 'tool_use'"),
    "a result of the model": (request(USER, model(result()), USER), "Input tag 'tool_result'"),
    "blank system": (request(USER, system="  "), "system: text content blocks must contain non-whitespace"),
    "empty system": (request(USER, system=[text("")]), "system: text content blocks must be non-empty"),
    "system no text": (request(USER, system=[{"type": "image"}]), "system: Input should be"),
    "empty user": (request(user()), "messages.0: user messages must have non-empty content"),
    "empty user text": (
        request({"role": "user", "content": ""}),
        "user messages must have non-empty content",
    ),
    "empty text": (request(USER, model(text("")), USER), "text content blocks must be non-empty"),
    "blank text": (request(USER, model(text(" ")), USER), "must contain non-whitespace text"),
    "no text": (request(user({"type": "text"})), "text.text: Field required"),
    "the model first": (request(model(text()), USER), 'first message must use the "user" role'),
    "two users": (request(USER, USER), 'found multiple "user" roles in a row'),
    "two replies": (request(USER, model(text()), model(text()), USER), 'found multiple "assistant" roles'),
    "prefill": (request(USER, model(text())), "does not support assistant message prefill"),
    "unanswered call": (
        request(USER, model(use()), USER),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: c1. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message.",
    ),
    "call at the end": (request(USER, model(use())), "were found without `tool_result` blocks"),
    "one of two answered": (request(USER, model(use(), use("c2")), user(result())), "after: c2."),
    "text before the result": (
        request(USER, model(use()), user(text(), result())),
        "were found without `tool_result` blocks immediately after: c1",
    ),
    "orphan": (
        request(user(result())),
        "messages.0: unexpected `tool_use_id` found in `tool_result` blocks: c1",
    ),
    "a late answer": (
        request(USER, model(use()), user(result()), model(text()), user(result())),
        "messages.4: unexpected `tool_use_id`",
    ),
    "answered twice": (request(USER, model(use()), user(result(), result())), "must have a single result"),
    "id twice in a turn": (request(USER, model(use(), use()), user(result())), "ids must be unique"),
    "id used again": (
        request(USER, model(use()), user(result()), model(use()), user(result())),
        "messages.3: `tool_use` ids must be unique",
    ),
    "bad id": (request(USER, model(use("a.b")), user(result("a.b"))), "String should match pattern"),
    "bad name": (request(USER, model(use(name="a b")), user(result())), "tool_use.name: String should match"),
    "arguments as text": (
        request(USER, model(use(input="{}")), user(result())),
        "should be a valid dictionary",
    ),
    "result of a number": (request(USER, model(use()), user(result(content=7))), "tool_result.content"),
    "no signature": (
        request(USER, model({"type": "thinking", "thinking": "hm"}, text()), USER),
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "thinking at the end": (
        request(USER, model(text(), THOUGHT), USER),
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "a mark on thinking": (
        request(USER, model({**THOUGHT, "cache_control": {}}, text()), USER),
        "thinking.cache_control: Extra inputs are not permitted",
    ),
    "server call without result": (
        request(USER, model(SEARCH, text()), USER),
        "`web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block",
    ),
    "server result without call": (
        request(USER, model(FOUND, text()), USER),
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks: s1",
    ),
    "no tools": (
        request(USER, model(use()), user(result()), tools=[]),
        "Requests which include `tool_use` or `tool_result` blocks must define tools",
    ),
    "five marks": (
        request(user(*(text(cache_control={}) for _ in range(5)))),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "NUL": (request({"role": "user", "content": "a\x00"}), "NUL"),
    "surrogate": (request(USER, system="a\ud800"), "lone surrogate"),
    "tool without name": (request(USER, tools=[{}]), "tools.0.custom.name: Field required"),
    "tool with a bad name": (request(USER, tools=[{**TOOL, "name": "a.b"}]), "tools.0.custom.name: String"),
    "tool without schema": (
        request(USER, tools=[{"name": "a"}]),
        "input_schema.type: Input should be 'object'",
    ),
    "tool twice": (request(USER, tools=[TOOL, TOOL]), "Tool names must be unique"),
}


@pytest.mark.parametrize(("broken", "said"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_is_told_in_the_providers_words(broken: dict[str, Any], said: str) -> None:
    """Each rule of the format is broken once, and named."""
    assert any(said in violation for violation in lint(broken)), lint(broken)


def test_a_whole_conversation_passes() -> None:
    """Parallel calls, thinking, the provider's own tools, texts behind results and a paused end are fine."""
    whole = request(
        USER,
        model(THOUGHT, text("Both."), use(), use("c2", input={"a": "\\ud800"})),
        user(result("c2"), result("c1", ""), text("Also this.", cache_control={"type": "ephemeral"})),
        model(SEARCH, FOUND, text("Found."), {**SEARCH, "id": "s2"}, use("c3")),
        user(result("c3", [text()])),
        model({**FOUND, "tool_use_id": "s2"}, text("More.")),
        USER,
        model(text("I search."), {**SEARCH, "id": "s3"}),
        system=[text("S", cache_control={"type": "ephemeral"})],
        temperature=0.2,
        stream=True,
    )

    assert lint(whole) == []
    assert lint(request(USER, model({"type": "compaction", "content": "x"}), tools=[])) == []
