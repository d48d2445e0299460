"""Conversations as wire messages: whatever the domain holds, a strict server accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.model.lint import lint
from goalmode.model.wire import openai_messages

PROFILE = ModelProfile("m", "openai", "some-model", "http://127.0.0.1/v1", temperature=0.2)
TOOL = ToolSpec("shell", "Run.", {"type": "object", "properties": {}})


def _sent(*messages: Message, **more: Any) -> dict[str, Any]:
    request = Request(messages, more.pop("tools", (TOOL,)), 500, **more)
    body: dict[str, Any] = json.loads(openai_messages.body(request, PROFILE))
    return body


def _messages(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _sent(*messages)["messages"]
    return found


def _arguments(raw: str) -> str:
    call = Assistant("", (ToolCall("c1", "shell", raw),))
    sent = _messages(User("Go."), call, ToolResult("c1", "shell", "ok"))
    found: str = sent[1]["tool_calls"][0]["function"]["arguments"]
    return found


def test_a_conversation_is_sent_in_the_formats_own_shape() -> None:
    """System, user, call and result become the four roles of the format."""
    call = ToolCall("c1", "shell", '{"command":"make"}')

    sent = _messages(System("S"), User("U"), Assistant("", (call,)), ToolResult("c1", "shell", "ok"))

    assert sent == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "shell", "arguments": '{"command":"make"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]


def test_what_varies_comes_after_the_conversation() -> None:
    """The bytes of a request begin with the bytes of the one before it, so that prefix caches hold."""
    first = openai_messages.body(Request((System("S"), User("U")), (TOOL,), 500), PROFILE)
    second = openai_messages.body(Request((System("S"), User("U"), Assistant("A")), (TOOL,), 200), PROFILE)

    shared = first[: first.index(b"]", first.index(b'"messages"'))]

    assert second.startswith(shared)


def test_the_request_streams_and_asks_for_usage() -> None:
    """Every request is streamed with its usage, and carries model, temperature and allowance."""
    sent = _sent(User("U"))

    assert (
        sent["stream"],
        sent["stream_options"],
        sent["model"],
        sent["temperature"],
        sent["max_tokens"],
    ) == (True, {"include_usage": True}, "some-model", 0.2, 500)
    assert "response_format" not in sent


def test_no_empty_tools_are_sent() -> None:
    """A request without tools has no `tools` field at all."""
    assert "tools" not in _sent(User("U"), tools=())


def test_openai_itself_gets_its_newer_allowance_field() -> None:
    """OpenAI's own servers refuse `max_tokens` for newer models."""
    profile = ModelProfile("m", "openai", "m", "https://api.openai.com/v1")

    sent = json.loads(openai_messages.body(Request((User("U"),), (), 7), profile))

    assert sent["max_completion_tokens"] == 7
    assert "max_tokens" not in sent


def test_a_schema_becomes_a_response_format() -> None:
    """A request's schema asks the server to hold the reply to it."""
    sent = _sent(User("U"), schema={"type": "object"})

    assert sent["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": {"type": "object"}},
    }


def test_two_user_messages_become_one() -> None:
    """Adjacent user texts are merged with a blank line, in order (B101)."""
    assert _messages(User("One."), User("Two.")) == [{"role": "user", "content": "One.\n\nTwo."}]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_assistant_message_is_never_sent(text: str) -> None:
    """A husk is dropped, and the user messages around it are merged (B91)."""
    assert _messages(User("One."), Assistant(text), User("Two.")) == [
        {"role": "user", "content": "One.\n\nTwo."}
    ]


@pytest.mark.parametrize(
    "raw",
    ["", '{"a": ', "null", "[1]", '"x"', "7", '{"a": NaN}', "[" * 100_000, '{"path":"C:\\Users\\d.txt"}'],
)
def test_arguments_that_are_no_object_are_sent_as_an_empty_one(raw: str) -> None:
    """Broken arguments stay out of later requests: servers parse them again (B78, B137)."""
    assert _arguments(raw) == "{}"


def test_good_arguments_are_sent_as_they_were_written() -> None:
    """Spacing and key order are the model's own."""
    assert _arguments('{ "b":1, "a" : "é" }') == '{ "b":1, "a" : "é" }'


def test_escaped_halves_of_characters_are_made_whole_or_visible() -> None:
    """A pair of escapes is one character, a lone half a replacement, a NUL visible (B67, B65)."""
    assert json.loads(_arguments('{"a": "\\ud83c\\udf78", "b": "\\ud83c", "c": "\\u0000"}')) == {
        "a": "🍸",
        "b": "�",
        "c": "␀",
    }


def test_nul_and_surrogates_in_texts_are_made_visible() -> None:
    """Every text that is sent is strict UTF-8 without NUL (B65, B70)."""
    sent = _messages(User("a\x00b\ud800c\ud83c\udf78"))

    assert sent == [{"role": "user", "content": "a␀b�c🍸"}]


def test_a_name_no_server_takes_is_made_valid() -> None:
    """A call to a tool that never was goes back under a name the server accepts (B12)."""
    sent = _messages(
        User("U"), Assistant("", (ToolCall("c", "写 file!" + "x" * 90, "{}"),)), ToolResult("c", "", "")
    )

    assert sent[1]["tool_calls"][0]["function"]["name"] == ("__file_" + "x" * 90)[:64]


def test_reasoning_is_not_sent_back() -> None:
    """What a server added beyond the format stays here."""
    sent = _messages(User("U"), Assistant("A", extra={"reasoning_content": "hm"}))

    assert "reasoning_content" not in sent[1]


anything = st.text(st.characters())
argument_text = st.one_of(
    anything,
    st.dictionaries(anything, st.one_of(anything, st.integers(), st.none())).map(json.dumps),
    st.sampled_from(["", "null", "[]", '{"a":NaN}', '{"a":"\\ud800"}']),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any conversation that begins with the user and in which every call has its result."""
    messages: list[Message] = [System(draw(anything)), User("Go. " + draw(anything))]
    number = 0
    for _ in range(draw(st.integers(0, 6))):
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            calls.append(ToolCall(f"call_{number}", draw(anything), draw(argument_text)))
        messages.append(
            draw(st.one_of(st.builds(User, anything), st.just(Assistant(draw(anything), tuple(calls)))))
        )
        if isinstance(messages[-1], Assistant):
            messages += [ToolResult(call.id, call.name, draw(anything)) for call in calls]
    return messages


@settings(max_examples=200, deadline=None)
@given(conversations())
def test_every_conversation_is_sent_wire_valid(messages: list[Message]) -> None:
    """Whatever texts, names and arguments hold, a strict server finds nothing to refuse."""
    sent = _sent(*messages)

    assert lint(sent["messages"], sent["tools"]) == []
    assert [m.call_id for m in messages if isinstance(m, ToolResult)] == list(_ids(sent["messages"]))


def _ids(messages: list[dict[str, Any]]) -> Iterator[str]:
    return (m["tool_call_id"] for m in messages if m["role"] == "tool")
