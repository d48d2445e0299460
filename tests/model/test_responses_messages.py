"""Conversations as input items: whatever the domain holds, a strict Responses server accepts."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.model.lint_responses import lint
from goalmode.model.wire import responses_messages
from goalmode.model.wire.responses_messages import EXTRA

from .test_messages import anything, argument_text, conversations

PROFILE = ModelProfile("m", "openai-responses", "some-model", "http://127.0.0.1/v1", temperature=0.2)
TOOL = ToolSpec("shell", "Run.", {"type": "object", "properties": {}})
CALL = ToolCall("c1", "shell", '{"command":"make"}')
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"}


def _sent(*messages: Message, **more: Any) -> dict[str, Any]:
    request = Request(messages, more.pop("tools", (TOOL,)), 500, more.pop("schema", None))
    body: dict[str, Any] = json.loads(responses_messages.body(request, PROFILE, **more))
    return body


def _items(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _sent(*messages)["input"]
    return found


def _kept(*places: dict[str, Any], model: str = "some-model") -> dict[str, object]:
    return {EXTRA: {"model": model, "items": list(places)}}


def test_a_conversation_is_sent_in_the_formats_own_shape() -> None:
    """System, user, text, call and result become items, the result directly after the call and under its id."""
    sent = _items(System("S"), User("U"), Assistant("Looking.", (CALL,)), ToolResult("c1", "shell", "ok"))

    assert sent == [
        {"type": "message", "role": "system", "content": "S"},
        {"type": "message", "role": "user", "content": "U"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Looking."}],
        },
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command":"make"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]


def test_the_request_is_not_stored_and_asks_for_reasoning() -> None:
    """Every request is streamed, stored nowhere, asks for encrypted reasoning, and carries its allowance."""
    sent = _sent(User("U"))

    assert (sent["stream"], sent["store"], sent["include"]) == (True, False, ["reasoning.encrypted_content"])
    assert (sent["model"], sent["temperature"], sent["max_output_tokens"]) == ("some-model", 0.2, 500)
    assert sent["tools"] == [
        {
            "type": "function",
            "name": "shell",
            "description": "Run.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]
    assert {"text", "messages", "max_tokens", "stream_options"}.isdisjoint(sent)
    assert "include" not in _sent(User("U"), encrypted=False)
    assert "tools" not in _sent(User("U"), tools=())


def test_a_schema_becomes_a_text_format() -> None:
    """A request's schema asks the server to hold the reply to it."""
    assert _sent(User("U"), schema={"type": "object"})["text"] == {
        "format": {"type": "json_schema", "name": "reply", "schema": {"type": "object"}, "strict": False}
    }


def test_what_varies_comes_after_the_conversation() -> None:
    """The bytes of a request begin with the bytes of the one before it, so that prefix caches hold."""
    first = responses_messages.body(Request((System("S"), User("U")), (TOOL,), 500), PROFILE)
    more = (System("S"), User("U"), Assistant("", (CALL,)), ToolResult("c1", "shell", "ok"))
    second = responses_messages.body(Request(more, (TOOL,), 200), PROFILE)

    assert second.startswith(first[: first.index(b"]", first.index(b'"input"'))])


def test_reasoning_goes_back_before_the_call_it_led_to() -> None:
    """Items are replayed in their order with their ids and phases; arguments are the conversation's."""
    extra = _kept(
        THOUGHT,
        {"type": "message", "text": "Looking.", "phase": "commentary"},
        {"type": "function_call", "id": "fc_1"},
    )
    said = Assistant("Looking.", (CALL,), extra)
    before = copy.deepcopy(extra)

    sent = _items(User("U"), said, ToolResult("c1", "shell", "ok"))

    assert sent[1] == THOUGHT
    assert (sent[2]["phase"], sent[2]["content"][0]["text"]) == ("commentary", "Looking.")
    assert (sent[3]["id"], sent[3]["call_id"], sent[3]["arguments"]) == ("fc_1", "c1", CALL.arguments)
    assert sent[4]["type"] == "function_call_output"
    assert extra == before


CHANGED = {
    "another model": Assistant(
        "", (CALL,), _kept(THOUGHT, {"type": "function_call", "id": "fc_1"}, model="another")
    ),
    "its text was taken away": Assistant(
        "",
        (CALL,),
        _kept(THOUGHT, {"type": "message", "text": "Hi."}, {"type": "function_call", "id": "fc_1"}),
    ),
    "a call was taken away": Assistant(
        "", (CALL,), _kept(THOUGHT, *({"type": "function_call", "id": f"fc_{n}"} for n in range(2)))
    ),
    "a call that was not the last": Assistant(
        "Hi.",
        (CALL,),
        _kept(THOUGHT, {"type": "function_call", "id": "fc_1"}, {"type": "message", "text": "Hi."}),
    ),
    "the same reasoning twice": Assistant("", (CALL,), _kept(THOUGHT, THOUGHT, {"type": "function_call"})),
    "another wire format's": Assistant("", (CALL,), {"reasoning_content": "hm", "anthropic": []}),
    "nonsense": Assistant("", (CALL,), {EXTRA: [1]}),
    "more nonsense": Assistant("", (CALL,), {EXTRA: {"model": "some-model", "items": [{}, 7]}}),
}


@pytest.mark.parametrize("said", CHANGED.values(), ids=CHANGED)
def test_foreign_or_changed_reasoning_is_left_out_with_all_ids(said: Assistant) -> None:
    """What another model gave, or what no longer fits what was said, goes back as text and calls alone."""
    sent = _items(User("U"), said, ToolResult("c1", "shell", "ok"))

    assert [item["type"] for item in sent if item.get("role") != "assistant"] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    assert all("id" not in item for item in sent)


def test_an_item_is_given_back_once() -> None:
    """A reply whose items were sent before goes back as text and calls: no id occurs twice."""
    extra = _kept(THOUGHT, {"type": "function_call", "id": "fc_1"})
    again = replace(CALL, id="c2")
    sent = _items(
        User("U"),
        Assistant("", (CALL,), extra),
        ToolResult("c1", "shell", "ok"),
        Assistant("", (again,), extra),
        ToolResult("c2", "shell", "ok"),
    )

    assert [item["id"] for item in sent if "id" in item] == ["rs_1", "fc_1"]
    assert lint(sent) == []


def test_a_long_id_is_shortened_on_both_sides() -> None:
    """An id that the format cannot carry is replaced by one that follows from it, the same for call and result."""
    long = "x" * 200
    sent = _items(User("U"), Assistant("", (ToolCall(long, "shell", "{}"),)), ToolResult(long, "shell", "ok"))

    assert sent[1]["call_id"] == sent[2]["call_id"] != long
    assert lint(sent) == []


def test_empty_and_repeated_messages_are_mended() -> None:
    """Husks are dropped, and user texts that then meet become one."""
    sent = _items(User("One."), Assistant(" "), User(""), User("Two."))

    assert sent == [{"type": "message", "role": "user", "content": "One.\n\nTwo."}]


places = st.one_of(
    st.builds(
        lambda n: {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "gA"},
        st.integers(0, 9),
    ),
    st.builds(lambda text: {"type": "message", "text": text}, st.sampled_from(["Hi.", "No."])),
    st.builds(lambda n: {"type": "function_call", "id": f"fc_{n}"}, st.integers(0, 9)),
)


@st.composite
def thoughtful(draw: st.DrawFn) -> list[Message]:
    """Conversations as `conversations` makes them, with what a server gave beside some of the replies.

    As the assembly makes it: reasoning is followed by what it led to, and fits the reply, or the reply has changed.
    """
    messages = []
    for message in draw(conversations()):
        if isinstance(message, Assistant) and draw(st.booleans()):
            made = draw(st.lists(places, max_size=4))
            while made and made[-1]["type"] == "reasoning":
                made.pop()
            texts = [p["text"] for p in made if p["type"] == "message"]
            text = "\n\n".join(texts) if draw(st.booleans()) else message.text
            message = replace(
                message, text=text, extra=_kept(*made, model=draw(st.sampled_from(["some-model", "x"])))
            )
        messages.append(message)
    return messages


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(thoughtful())
def test_every_conversation_is_sent_wire_valid(messages: list[Message]) -> None:
    """Whatever texts, names, arguments and reasoning hold, a strict server finds nothing to refuse."""
    sent = _sent(*messages)

    assert lint(sent["input"], sent["tools"]) == []
    outputs = [item["output"] for item in sent["input"] if item["type"] == "function_call_output"]
    assert len(outputs) == sum(isinstance(m, ToolResult) for m in messages)
    told = "".join(i["content"] for i in sent["input"] if i.get("role") == "user")
    assert len(told) >= len("".join(m.text for m in messages if isinstance(m, User) and m.text.strip()))


@settings(max_examples=100, deadline=None)
@given(anything, argument_text)
def test_any_name_and_arguments_can_be_sent(name: str, arguments: str) -> None:
    """A call goes back under a name and with arguments that the server takes, whatever the model wrote."""
    sent = _items(User("U"), Assistant("", (ToolCall("c", name, arguments),)), ToolResult("c", name, ""))

    assert lint(sent) == []


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None)
@given(thoughtful())
def test_very_many_conversations_are_sent_wire_valid(messages: list[Message]) -> None:
    """The same for twenty thousand conversations."""
    sent = _sent(*messages)

    assert lint(sent["input"], sent["tools"]) == []
