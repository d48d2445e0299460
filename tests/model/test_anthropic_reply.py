"""The events of an Anthropic message put together to a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goalmode.domain.messages import Reply, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.model.wire.anthropic_reply import MAX_BLOCKS, MessageAssembly
from goalmode.model.wire.assembly import MAX_CALLS, MAX_CHARACTERS, ErrorInside, TooLarge

Event = dict[str, Any]


def block(index: int, began: Event, *deltas: Event) -> list[Event]:
    """One block's events."""
    return [
        {"type": "content_block_start", "index": index, "content_block": began},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *parts: str) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in parts))


def call(index: int, *parts: str, id: str = "toolu_1", name: str = "shell") -> list[Event]:
    began = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return block(index, began, *({"type": "input_json_delta", "partial_json": p} for p in parts))


def thinking(index: int, *parts: str, signature: str | None = "sig==") -> list[Event]:
    deltas: list[Event] = [{"type": "thinking_delta", "thinking": part} for part in parts]
    if signature is not None:
        deltas.append({"type": "signature_delta", "signature": signature})
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def end(word: str | None, **delta: Any) -> list[Event]:
    return [{"type": "message_delta", "delta": {"stop_reason": word, **delta}}, {"type": "message_stop"}]


def assembly(*events: list[Event]) -> MessageAssembly:
    made = MessageAssembly()
    made.absorb(
        {"type": "message_start", "message": {"model": "claude-x", "content": [], "stop_reason": None}}
    )
    for event in (e for part in events for e in part):
        made.absorb(event)
    return made


def assembled(*events: list[Event], used: tuple[str, ...] = ()) -> Reply:
    return assembly(*events).reply(used_ids=used, usage=Usage(1, 0, 0, 1), max_output=1000)


def kept(reply: Reply) -> Any:
    return reply.extra.get("anthropic")


def test_text_and_calls_come_together() -> None:
    """Pieces of text and of JSON are joined in order; nothing needs to be kept beside them."""
    reply = assembled(
        text(0, "Let me ", "look."),
        call(1, '{"command":', ' "ls"}'),
        call(2, id="toolu_2"),
        end("tool_use"),
    )

    assert (reply.text, reply.stop, reply.stop_raw) == ("Let me look.", StopReason.TOOL_USE, "tool_use")
    assert reply.calls == (
        ToolCall("toolu_1", "shell", '{"command": "ls"}'),
        ToolCall("toolu_2", "shell", "{}"),
    )
    assert (reply.model, reply.extra) == ("claude-x", {})


def test_thinking_is_kept_as_it_came_in_its_place() -> None:
    """Thinking, its signature and redacted thinking are no text, and stay between the blocks where they were."""
    redacted = {"type": "redacted_thinking", "data": "EmwKAhgB=="}
    reply = assembled(
        thinking(0, "First ", "this.\n", signature="c2ln=="),
        text(1, "Now."),
        block(2, redacted),
        call(3, "{}"),
        end("tool_use"),
    )

    assert (reply.text, len(reply.calls)) == ("Now.", 1)
    assert kept(reply) == [
        {"type": "thinking", "thinking": "First this.\n", "signature": "c2ln=="},
        {"type": "text", "text": "Now."},
        redacted,
        {"type": "tool_use", "id": "toolu_1"},
    ]


def test_thinking_without_a_signature_is_not_kept() -> None:
    """A thought that the limit cut off has no signature: no provider takes it back."""
    reply = assembled(thinking(0, "Half a tho", signature=None), text(1, "x"), end("max_tokens"))

    assert (reply.stop, reply.extra) == (StopReason.MAX_TOKENS, {})


def test_the_providers_own_tools_are_kept_with_their_results() -> None:
    """Server tool calls are not ours to run; they go back with the paused turn (B94)."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]}
    reply = assembled(
        text(0, "I search."),
        block(1, search, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}),
        block(2, found),
        text(3, "Found."),
        end("pause_turn"),
    )

    assert (reply.stop, reply.calls, reply.text) == (StopReason.PAUSE, (), "I search.\n\nFound.")
    assert kept(reply)[1:3] == [{**search, "input": {"query": "x"}}, found]


def test_a_text_in_several_blocks_is_one_text() -> None:
    """Citations cut a text into blocks; they are kept where other blocks are."""
    cited = block(1, {"type": "text", "text": "is "}, {"type": "citations_delta", "citation": {"url": "u"}})
    reply = assembled(
        text(0, "It "), cited, text(2, "so."), thinking(3, "hm"), text(4, "Yes."), end("end_turn")
    )

    assert reply.text == "It is so.\n\nYes."
    assert kept(reply)[1] == {"type": "text", "text": "is ", "citations": [{"url": "u"}]}


def test_a_compaction_is_kept() -> None:
    """A compacted turn goes back with its summary (PAUSE)."""
    delta = {"type": "compaction_delta", "content": "In short.", "encrypted_content": "e"}
    reply = assembled(block(0, {"type": "compaction", "content": None}, delta), end("compaction"))

    assert reply.stop is StopReason.PAUSE
    assert kept(reply) == [{"type": "compaction", "content": "In short.", "encrypted_content": "e"}]


def test_a_whole_message_is_read_the_same_way() -> None:
    """A server that does not stream sends the same blocks in one body."""
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t1", "name": "shell", "input": {"a": "é"}},
    ]
    made = MessageAssembly()
    made.absorb({"type": "message", "model": "m", "content": content, "stop_reason": "tool_use"})
    reply = made.reply(used_ids=(), usage=Usage(1), max_output=9)

    assert made.ended
    assert (reply.text, reply.calls) == ("Hi", (ToolCall("t1", "shell", '{"a": "é"}'),))
    assert kept(reply) == [*content[:2], {"type": "tool_use", "id": "t1"}]


def test_ids_are_unique_and_the_kept_blocks_name_them() -> None:
    """Repeated, used and missing ids are replaced, in the blocks as in the calls (B80)."""
    reply = assembled(
        thinking(0, "hm"),
        call(1, '{"n":1}', id="x"),
        call(2, '{"n":2}', id="x"),
        call(3, '{"n":3}', id=""),
        call(4, '{"n":4}', id="old"),
        end("tool_use"),
        used=("old",),
    )

    ids = [c.id for c in reply.calls]
    assert [ids[0], len(set(ids)), "old" in ids] == ["x", 4, False]
    assert [c.arguments for c in reply.calls] == ['{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}']
    assert [b["id"] for b in kept(reply)[1:]] == ids


def test_an_index_used_again_begins_another_block() -> None:
    """Servers that number every block 0 are understood."""
    reply = assembled(call(0, '{"n":1}', id="a"), call(0, '{"n":2}', id="b"), end("tool_use"))

    assert [(c.id, c.arguments) for c in reply.calls] == [("a", '{"n":1}'), ("b", '{"n":2}')]


def test_unreadable_arguments_are_kept_as_they_are() -> None:
    """What a model wrote is for the tool plan to judge (B78)."""
    assert assembled(call(0, '{"a": '), end("tool_use")).calls[0].arguments == '{"a": '


def test_a_refusal_has_category_and_explanation() -> None:
    """What the classifier says is the reply's detail; without it, the reply's own text (B92)."""
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    explained = assembled(text(0, "I"), end("refusal", stop_details=details))
    bare = assembled(text(0, "I cannot."), end("refusal", stop_details=None))

    assert (explained.stop, explained.stop_detail) == (StopReason.REFUSAL, "cyber: No.")
    assert (bare.stop, bare.stop_detail) == (StopReason.REFUSAL, "I cannot.")


def test_split_surrogates_are_joined_and_nul_made_visible() -> None:
    """Half a character in one piece and half in the next is one character (B65, B67)."""
    reply = assembled(text(0, "\ud83c", "\udf78 \x00 \ud800"), call(1, '{"a":"\x00"}'), end("tool_use"))

    assert (reply.text, reply.calls[0].arguments) == ("🍸 ␀ �", '{"a":"␀"}')


@pytest.mark.parametrize("thought", ["a\x00", "a\ud800"])
def test_thinking_that_cannot_go_back_byte_for_byte_is_not_kept(thought: str) -> None:
    """A signed thought goes back as it came or not at all."""
    assert assembled(thinking(0, thought), text(1, "x"), end("end_turn")).extra == {}


def test_events_of_odd_shapes_are_passed_over() -> None:
    """Unknown events, and numbers and nulls where objects belong, do no harm."""
    odd: list[Any] = [
        {},
        {"type": "ping"},
        {"type": "news", "message": {"a": 1}},
        {"type": "message_start", "message": None},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "index": None, "content_block": {"type": 7}},
        {"type": "content_block_delta", "index": 9, "delta": {"text": "lost"}},
        {"type": "content_block_delta", "index": 0, "delta": {"text": 7, "citation": {}}},
        {"type": "message_delta", "delta": None, "usage": 3},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": 3}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": []}},
    ]
    reply = assembled(odd, text(1, "fine"), end("end_turn"))

    assert (reply.text, [(c.name, c.arguments) for c in reply.calls]) == ("fine", [("", "")])


@pytest.mark.parametrize(
    "value",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"type": "error"},
        {"type": "message", "error": {"message": "x"}},
        {"error": {"message": "x"}},
        {"detail": "x"},
        [{"error": {}}],
    ],
)
def test_an_error_is_no_event(value: Any) -> None:
    """An error event, and an error body of a gateway, are told apart from the events of a message."""
    with pytest.raises(ErrorInside):
        MessageAssembly().absorb(value)


def test_a_reply_beyond_its_bounds_is_given_up() -> None:
    """Text, calls, blocks and nesting are bounded, whatever the server sends."""
    half = "x" * (MAX_CHARACTERS // 2)
    with pytest.raises(TooLarge, match="characters"):
        assembled(text(0, half, half, half))
    with pytest.raises(TooLarge, match="characters"):
        assembled(block(0, {"type": "web_search_tool_result", "content": half * 3}))
    with pytest.raises(TooLarge, match="calls"):
        assembled(*(call(n) for n in range(MAX_CALLS + 1)))
    with pytest.raises(TooLarge, match="blocks"):
        assembled(*(text(n) for n in range(MAX_BLOCKS + 1)))
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(TooLarge, match="deeply"):
        assembled(block(0, {"type": "tool_use", "input": deep}))


def counted(started: Any, ended: Any = None, said: str = "x" * 40) -> Usage:
    made = MessageAssembly()
    made.absorb({"type": "message_start", "message": {"usage": started}})
    for event in text(0, said):
        made.absorb(event)
    if ended is not None:
        made.absorb({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": ended})
    return made.counted(len, b"y" * 100)


STARTED = {
    "input_tokens": 50,
    "cache_read_input_tokens": 30,
    "cache_creation_input_tokens": 20,
    "output_tokens": 1,
}

USAGES = {
    "cached and written": (STARTED, {"output_tokens": 7}, Usage(100, 30, 20, 7)),
    "plain": ({"input_tokens": 50, "output_tokens": 1}, {"output_tokens": 7}, Usage(50, 0, 0, 7)),
    "nulls": (
        {**STARTED, "cache_read_input_tokens": None},
        {"output_tokens": 7, "input_tokens": None},
        Usage(70, 0, 20, 7),
    ),
    "all from the cache": (
        {"input_tokens": 0, "cache_read_input_tokens": 90},
        {"output_tokens": 7},
        Usage(90, 90, 0, 7),
    ),
    "totals at the end": (STARTED, {"input_tokens": 60, "output_tokens": 7}, Usage(110, 30, 20, 7)),
    "only at the end": (None, {"input_tokens": 60, "output_tokens": 7}, Usage(60, 0, 0, 7)),
    "cut before the end": (STARTED, None, Usage(100, 30, 20, 40, estimated=True)),
    "none": (None, {}, Usage(100, 0, 0, 40, estimated=True)),
    "nonsense": ({"input_tokens": "9"}, {"output_tokens": -1}, Usage(100, 0, 0, 40, estimated=True)),
    "zeros": ({"input_tokens": 0}, {"output_tokens": 0}, Usage(100, 0, 0, 40, estimated=True)),
}


@pytest.mark.parametrize(("started", "ended", "usage"), USAGES.values(), ids=USAGES)
def test_usage_has_one_meaning(started: Any, ended: Any, usage: Usage) -> None:
    """Input includes cache reads and writes; a first count of output is no count (B27, B28)."""
    assert counted(started, ended) == usage


def test_what_was_thought_and_asked_is_in_the_estimate() -> None:
    """A cut reply is charged for thinking and arguments too."""
    made = assembly(thinking(0, "t" * 10), call(1, '{"a":1}', name="shell"))

    assert made.counted(len, b"y").output == len("t" * 10 + "shell" + '{"a":1}')


def test_what_is_kept_is_json() -> None:
    """The blocks can be stored and sent: they are plain values."""
    reply = assembled(thinking(0, "hm"), text(1, "x"), end("end_turn"))

    assert json.loads(json.dumps(dict(reply.extra))) == reply.extra
