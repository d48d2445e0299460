"""Conversations as Anthropic messages: whatever the domain holds, a strict provider accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.text import sendable
from goalmode.model.lint_anthropic import lint
from goalmode.model.wire import anthropic_messages
from goalmode.model.wire.anthropic_blocks import EXTRA, said

PROFILE = ModelProfile("m", "anthropic", "claude-x", "http://127.0.0.1/v1")
TOOL = ToolSpec("shell", "Run.", {"type": "object", "properties": {}})
MARK = {"type": "ephemeral"}

THOUGHT = {"type": "thinking", "thinking": " First,\n this. ", "signature": "EqQBCgIYAhIM=="}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgB=="}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def _request(*messages: Message, **more: Any) -> dict[str, Any]:
    request = Request(messages, more.pop("tools", (TOOL,)), 500, more.pop("schema", None))
    body: dict[str, Any] = json.loads(anthropic_messages.body(request, PROFILE))
    return body


def _sent(*messages: Message) -> list[dict[str, Any]]:
    """The messages without their cache marks."""
    found: list[dict[str, Any]] = json.loads(json.dumps(anthropic_messages.messages(messages)))
    return found


def reply(*blocks: dict[str, Any], calls: tuple[ToolCall, ...] = ()) -> Assistant:
    """A reply whose blocks were kept."""
    return Assistant(said(blocks), calls, {EXTRA: list(blocks)})


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id}


CALL = ToolCall("c1", "shell", '{"command":"make"}')
RAN = ToolResult("c1", "shell", "ok")


def test_a_conversation_is_sent_in_the_formats_own_shape() -> None:
    """System on top, calls as blocks with an object as input, results in a user message."""
    sent = _request(System("S"), User("U"), Assistant("A", (CALL,)), RAN)

    assert sent["system"] == [{**text("S"), "cache_control": MARK}]
    assert sent["tools"] == [{"name": "shell", "description": "Run.", "input_schema": TOOL.parameters}]
    assert (sent["model"], sent["stream"], sent["max_tokens"]) == ("claude-x", True, 500)
    assert sent["messages"] == [
        {"role": "user", "content": [{**text("U"), "cache_control": MARK}]},
        {
            "role": "assistant",
            "content": [
                text("A"),
                {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "make"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok", "cache_control": MARK}],
        },
    ]


def test_all_results_of_a_turn_are_in_one_message_before_the_texts() -> None:
    """Results first, in one user message, the user's words behind them as one text (B101)."""
    calls = (CALL, ToolCall("c2", "shell", "{}"))
    sent = _sent(
        User("U"), Assistant("", calls), RAN, ToolResult("c2", "shell", "two"), User("One."), User("Two.")
    )

    assert [(b["type"], b.get("content") or b.get("text")) for b in sent[2]["content"]] == [
        ("tool_result", "ok"),
        ("tool_result", "two"),
        ("text", "One.\n\nTwo."),
    ]


def test_blank_texts_are_never_sent() -> None:
    """Blank system prompts, users and replies are left out, and what stood around them is joined (B91)."""
    sent = _request(System(" "), User("One."), Assistant(" \n"), User(""), User("Two."))

    assert "system" not in sent
    assert [b["text"] for m in sent["messages"] for b in m["content"]] == ["One.\n\nTwo."]
    assert _sent(User("U"), Assistant(" ", (CALL,)), ToolResult("c1", "shell", " \n"))[1:] == [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "make"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": ""}]},
    ]


@pytest.mark.parametrize(
    "raw",
    ["", '{"a": ', "null", "[1]", '"x"', "7", '{"a": NaN}', '{"a": 1e999}', '{"a":' * 500 + "1" + "}" * 500],
    ids=range(9),
)
def test_arguments_that_no_object_can_hold_are_sent_as_an_empty_one(raw: str) -> None:
    """Broken arguments stay out of later requests; the result says what was wrong with them (B78, B137)."""
    sent = _sent(User("U"), Assistant("", (ToolCall("c1", "shell", raw),)), RAN)

    assert sent[1]["content"][0]["input"] == {}


def test_arguments_are_made_sendable() -> None:
    """Escaped halves of characters and NULs do not reach the provider (B65, B67)."""
    raw = '{"a": "\\ud83c\\udf78", "b": "\\ud83c", "c": "\\u0000"}'
    sent = _sent(User("U"), Assistant("", (ToolCall("c1", "shell", raw),)), RAN)

    assert sent[1]["content"][0]["input"] == {"a": "🍸", "b": "�", "c": "␀"}


def test_ids_and_names_are_made_valid_on_both_sides() -> None:
    """Ids of other servers, and ids used again, are renamed for call and result alike; nothing else moves."""
    first = (ToolCall("a.b:1", "写 file!", "{}"), ToolCall("a_b_1", "shell", "{}"), ToolCall("", "", "{}"))
    again = (ToolCall("a_b_1", "shell", "{}"), ToolCall("a_b_1", "shell", "{}"))
    sent = _sent(
        User("U"),
        Assistant("", first),
        *(ToolResult(c.id, c.name, f"1{n}") for n, c in enumerate(first)),
        Assistant("", again),
        *(ToolResult(c.id, c.name, f"2{n}") for n, c in enumerate(again)),
    )

    uses = [b for m in sent for b in m["content"] if b["type"] == "tool_use"]
    results = [b for m in sent for b in m["content"] if b["type"] == "tool_result"]
    assert [u["id"] for u in uses] == ["a_b_1", "a_b_1_2", "call", "a_b_1_3", "a_b_1_4"]
    assert [u["name"] for u in uses] == ["__file_", "shell", "unnamed", "shell", "shell"]
    assert [(r["tool_use_id"], r["content"]) for r in results] == [
        (u["id"], content) for u, content in zip(uses, ["10", "11", "12", "20", "21"], strict=True)
    ]


def test_thinking_goes_back_as_it_came_in_its_place() -> None:
    """Every byte and the order of the blocks are the provider's own; calls take the arguments of the domain."""
    message = reply(THOUGHT, text("Now."), REDACTED, use("c1"), calls=(CALL,))
    sent = _sent(User("U"), message, RAN)

    assert sent[1]["content"] == [
        THOUGHT,
        text("Now."),
        REDACTED,
        {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "make"}},
    ]


@pytest.mark.parametrize(
    "changed",
    [
        Assistant("Other words.", (CALL,), reply(THOUGHT, text("Now."), use("c1")).extra),
        Assistant("", (CALL,), reply(THOUGHT, text("Now."), use("c1")).extra),
        Assistant("Now.", (), reply(THOUGHT, text("Now."), use("c1")).extra),
        Assistant("Now.", (CALL,), {EXTRA: "x"}),
        Assistant("Now.", (CALL,), {"reasoning_content": "hm"}),
    ],
)
def test_a_changed_turn_loses_its_thinking_altogether(changed: Assistant) -> None:
    """Where text or calls are no longer what they were, the plain turn is sent."""
    results = [ToolResult(c.id, c.name, "ok") for c in changed.calls]
    sent = _request(User("U"), changed, *results, User("x"))

    assert "thinking" not in json.dumps(sent)
    assert lint(sent) == []


def test_a_turn_of_thinking_alone_is_left_out() -> None:
    """No provider takes a message that ends with thinking."""
    assert _sent(User("One."), reply(THOUGHT), User("Two.")) == [
        {"role": "user", "content": [text("One.\n\nTwo.")]}
    ]
    assert _sent(User("U"), reply(text("A"), THOUGHT), User("x"))[1]["content"] == [text("A")]


def test_a_paused_turn_is_sent_back_unchanged() -> None:
    """A request may end with the paused reply, the provider's own calls in it (B94)."""
    paused = reply(THOUGHT, text("I search. "), SEARCH)
    sent = _request(User("U"), paused)

    assert sent["messages"][-1] == {"role": "assistant", "content": [THOUGHT, text("I search. "), SEARCH]}
    assert lint(sent) == []


def test_what_follows_a_paused_turn_is_one_message_with_it() -> None:
    """The reply goes on where it paused: call and result of the provider's tool are in one message."""
    sent = _sent(User("U"), reply(text("I search."), SEARCH), reply(FOUND, text("Found.")), User("x"))

    assert sent[1] == {"role": "assistant", "content": [text("I search."), SEARCH, FOUND, text("Found.")]}


def test_a_pause_that_never_went_on_keeps_its_words_alone() -> None:
    """Where the user spoke in between, the provider's unanswered call is not sent again."""
    sent = _request(User("U"), reply(THOUGHT, text("I search."), SEARCH), User("Stop that."))

    assert sent["messages"][1]["content"] == [text("I search.")]
    assert lint(sent) == []


def test_a_result_of_the_providers_tool_may_come_after_ours() -> None:
    """Beside our calls the provider's own may still be open; its result begins the next reply."""
    first = reply(SEARCH, use("c1"), calls=(CALL,))
    sent = _request(User("U"), first, RAN, reply(FOUND, text("Found.")), User("x"))

    assert sent["messages"][1]["content"][0] == SEARCH
    assert sent["messages"][3]["content"] == [FOUND, text("Found.")]
    assert lint(sent) == []


def test_a_result_without_its_call_is_not_sent() -> None:
    """A provider's result whose call is gone goes too."""
    sent = _sent(User("U"), reply(FOUND, text("Found.")), User("x"))

    assert sent[1]["content"] == [text("Found.")]


def test_the_cache_marks_are_on_the_stable_prefix_and_the_newest_words() -> None:
    """One behind system and tools, two on the last user messages: never more than the provider takes."""
    turns = [m for n in range(9) for m in (Assistant(f"A{n}"), User(f"U{n}"))]
    sent = _request(System("S"), System("T"), User("U"), *turns)
    marked = [n for n, m in enumerate(sent["messages"]) for b in m["content"] if "cache_control" in b]

    assert ["cache_control" in b for b in sent["system"]] == [False, True]
    assert "cache_control" not in sent["tools"][-1]
    assert marked == [16, 18]


def test_without_a_system_prompt_the_tools_carry_the_mark() -> None:
    """The stable prefix has its mark whatever it consists of; without any there is none."""
    assert _request(User("U"))["tools"][-1]["cache_control"] == MARK
    assert "tools" not in _request(User("U"), tools=())


def test_marks_do_not_touch_what_is_shared() -> None:
    """The same conversation can be sent again and again: marks are put on copies."""
    conversation = (User("U"), reply(THOUGHT, use("c1"), calls=(CALL,)), RAN)

    assert _request(*conversation) == _request(*conversation)
    assert "cache_control" not in json.dumps(anthropic_messages.messages(conversation))
    assert "cache_control" not in json.dumps(TOOL.parameters)


def test_a_schema_becomes_an_output_format() -> None:
    """A request's schema asks the provider to hold the reply to it."""
    sent = _request(User("U"), schema={"type": "object"})

    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert lint(sent) == []


def test_the_temperature_is_the_users_or_none() -> None:
    """Some models refuse the field: it is sent only if it was asked for."""
    warm = ModelProfile("m", "anthropic", "m", "http://127.0.0.1/v1", temperature=0.5)
    request = Request((User("U"),), (), 9)

    assert json.loads(anthropic_messages.body(request, warm))["temperature"] == 0.5
    assert "temperature" not in _request(User("U"))


def test_a_growing_conversation_is_sent_the_same_way() -> None:
    """Each request begins with the bytes of the one before it, but for the marks at its end (prefix caches)."""
    conversation: list[Message] = [User("U")]
    before: list[dict[str, Any]] = []
    for n in range(12):
        call = ToolCall(f"a.{n % 2}", "shell", '{"n": 1}')
        conversation += [reply(THOUGHT, text(f"A{n}"), use(call.id), calls=(call,))]
        conversation += [ToolResult(call.id, "shell", str(n)), User("Next.")]
        now = _sent(*conversation)
        assert now[: len(before)] == before
        before = now


anything = st.text(st.characters())
argument_text = st.one_of(
    anything,
    st.dictionaries(anything, st.one_of(anything, st.integers(), st.floats(), st.none())).map(json.dumps),
    st.sampled_from(["", "null", "[]", '{"a":NaN}', '{"a":1e999}', '{"a":"\\ud800"}']),
)
ids = st.one_of(st.sampled_from(["a", "a.b", "a_b", "toolu_1", "call"]), anything)
calls = st.builds(ToolCall, ids, anything, argument_text)


@st.composite
def replies(draw: st.DrawFn, number: int) -> Assistant:
    """Any reply, plain or with its blocks kept, in any order."""
    asked = draw(st.lists(calls, max_size=3))
    if draw(st.booleans()):
        return Assistant(draw(anything), tuple(asked))
    search = {**SEARCH, "id": f"srvtoolu_{number}"}
    others = [
        {**THOUGHT, "thinking": f"thought {number}"},
        {**REDACTED, "data": f"data {number}"},
        search,
        {**FOUND, "tool_use_id": search["id"]},
        text(draw(anything)),
    ]
    kinds = draw(st.lists(st.sampled_from(others), max_size=4))
    blocks = draw(st.permutations([*kinds, *(use(call.id) for call in asked)]))
    named = [b["id"] for b in blocks if b["type"] == "tool_use"]
    ordered = [asked.pop(next(k for k, c in enumerate(asked) if c.id == id_)) for id_ in named]
    return reply(*blocks, calls=tuple(ordered))


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any conversation in which every call has its result and the user has the last word, or the reply is paused."""
    messages: list[Message] = [System(draw(anything)), User("Go. " + draw(anything))]
    for number in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            messages.append(User(draw(anything)))
        else:
            said_ = draw(replies(number))
            messages += [said_, *(ToolResult(c.id, c.name, draw(anything)) for c in said_.calls)]
    if draw(st.booleans()):
        return [*messages, User("Go on.")]
    return [*messages, User("Go on."), reply(text("I search."), {**SEARCH, "id": "srvtoolu_paused"})]


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(conversations())
def test_every_conversation_is_sent_wire_valid(messages: list[Message]) -> None:
    """Whatever texts, names, ids, arguments and blocks hold, a strict provider finds nothing to refuse (I4-I9, I18)."""
    sent = _request(*messages)

    assert lint(sent) == []
    blocks = [(m["role"], b) for m in sent["messages"] for b in m["content"]]
    users = [sendable(m.text) for m in messages if isinstance(m, User) and m.text.strip()]
    assert "\n\n".join(
        b["text"] for role, b in blocks if (role, b["type"]) == ("user", "text")
    ) == "\n\n".join(users)
    results = [sendable(m.text) if m.text.strip() else "" for m in messages if isinstance(m, ToolResult)]
    assert [b["content"] for _, b in blocks if b["type"] == "tool_result"] == results


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(conversations())
def test_thinking_is_byte_identical_or_wholly_absent(messages: list[Message]) -> None:
    """No turn loses a part of its thinking, and none of it changes (I14)."""
    sent = [
        json.dumps(block)
        for m in _sent(*messages)
        for block in m["content"]
        if block["type"] in ("thinking", "redacted_thinking")
    ]
    for message in messages:
        blocks: Any = message.extra.get(EXTRA, []) if isinstance(message, Assistant) else []
        thoughts = [json.dumps(b) for b in blocks if b["type"] in ("thinking", "redacted_thinking")]
        assert sum(t in thoughts for t in sent) in (0, len(thoughts))
    assert all('"signature": "EqQBCgIYAhIM=="' in t or "data" in t for t in sent)


@settings(max_examples=100, deadline=None)
@given(conversations())
def test_translating_changes_nothing_and_repeats(messages: list[Message]) -> None:
    """The conversation is left as it was, and gives the same bytes every time (I1, I2)."""
    before = repr(messages)

    assert _request(*messages) == _request(*messages)
    assert repr(messages) == before
