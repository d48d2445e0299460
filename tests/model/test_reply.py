"""Chunks put together to a reply, in all the shapes that servers send them."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.domain.messages import Reply, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.model.wire.assembly import MAX_CALLS, MAX_CHARACTERS, TooLarge
from goalmode.model.wire.openai_reply import ChatAssembly


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(
    arguments: Any = None, *, index: int | None = 0, id: str | None = None, name: str | None = None
) -> Any:
    call: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    return call | ({} if index is None else {"index": index}) | ({} if id is None else {"id": id})


def assembled(*chunks: dict[str, Any], used: set[str] | None = None) -> Reply:
    assembly = ChatAssembly()
    for chunk in chunks:
        assembly.absorb(chunk)
    return assembly.reply(used_ids=used or (), usage=Usage(1, 0, 0, 1), max_output=1000)


def calls_of(*pieces: Any) -> list[tuple[str, str, str]]:
    reply = assembled(*(delta(tool_calls=[p]) for p in pieces), delta("tool_calls"))
    return [(c.id, c.name, c.arguments) for c in reply.calls]


def test_text_and_calls_come_together() -> None:
    """Pieces of text and arguments are joined in order."""
    reply = assembled(
        delta(role="assistant", content="Let me "),
        delta(content="look."),
        delta(tool_calls=[piece("", id="c1", name="shell")]),
        delta(tool_calls=[piece('{"command":')]),
        delta(tool_calls=[piece('"ls"}')]),
        delta("tool_calls"),
    )

    assert ("Let me look.", (ToolCall("c1", "shell", '{"command":"ls"}'),)) == (reply.text, reply.calls)
    assert reply.stop is StopReason.TOOL_USE


SHAPES = {
    "interleaved by index": (
        [
            piece("{", index=0, id="a", name="x"),
            piece("[", index=1, id="b", name="y"),
            piece("}"),
            piece("]", index=1),
        ],
        [("a", "x", "{}"), ("b", "y", "[]")],
    ),
    "the same index for every call": (
        [piece("{}", id="a", name="x"), piece("{}", id="b", name="y")],
        [("a", "x", "{}"), ("b", "y", "{}")],
    ),
    "id and name in every piece": (
        [piece('{"a"', id="a", name="x"), piece(":1}", id="a", name="x")],
        [("a", "x", '{"a":1}')],
    ),
    "no index": (
        [piece("{}", index=None, id="a", name="x"), piece("{}", index=None, id="b", name="y")],
        [("a", "x", "{}"), ("b", "y", "{}")],
    ),
    "no index, no id": (
        [piece("{}", index=None, name="x"), piece("{}", index=None, name="x")],
        [("call_1", "x", "{}"), ("call_2", "x", "{}")],
    ),
    "no index in later pieces": (
        [piece("{", index=None, id="a", name="x"), piece("}", index=None)],
        [("a", "x", "{}")],
    ),
    "the name in pieces": (
        [piece("", id="a", name="read_"), piece("", name="file"), piece("{}")],
        [("a", "read_file", "{}")],
    ),
    "arguments as an object": ([piece({"a": "é"}, id="a", name="x")], [("a", "x", '{"a": "é"}')]),
    "no arguments": ([piece(None, id="a", name="x")], [("a", "x", "")]),
}


@pytest.mark.parametrize(("pieces", "calls"), SHAPES.values(), ids=SHAPES)
def test_calls_are_told_apart(pieces: list[Any], calls: list[tuple[str, str, str]]) -> None:
    """Each way in which servers number and name their calls gives the calls that were meant."""
    assert calls == calls_of(*pieces)


def test_repeated_and_empty_ids_are_replaced() -> None:
    """Calls that share an id, or have none, keep their own arguments under ids of their own (B80)."""
    pieces = [
        piece('{"n":1}', index=0, id="x", name="a"),
        piece('{"n":2}', index=1, id="x", name="b"),
        piece('{"n":3}', index=2, id="", name="c"),
    ]

    assert calls_of(*pieces) == [
        ("x", "a", '{"n":1}'),
        ("call_1", "b", '{"n":2}'),
        ("call_2", "c", '{"n":3}'),
    ]


def test_an_id_of_an_earlier_turn_is_replaced() -> None:
    """Models use ids again; in a conversation each occurs once."""
    reply = assembled(delta("tool_calls", tool_calls=[piece("{}", id="c1", name="x")]), used={"c1", "call_2"})

    assert [c.id for c in reply.calls] == ["call_3"]


def test_an_id_that_no_wire_can_carry_is_replaced() -> None:
    """Blanks, control characters and very long ids do not come in."""
    reply = assembled(
        delta(
            "tool_calls",
            tool_calls=[
                piece("{}", index=n, id=i, name="x") for n, i in enumerate(["a b", "\x00", "y" * 300])
            ],
        )
    )

    assert [c.id for c in reply.calls] == ["call_1", "call_2", "call_3"]


def test_a_whole_completion_is_read_the_same_way() -> None:
    """A server that does not stream sends a message in place of deltas."""
    message = {
        "content": [{"type": "text", "text": "Hi"}, {"type": "image"}],
        "tool_calls": [
            {"id": "a", "function": {"name": "x", "arguments": "{}"}},
            {"id": "a", "function": {"name": "x", "arguments": "{}"}},
        ],
    }
    reply = assembled({"model": "big", "choices": [{"message": message, "finish_reason": "stop"}]})

    assert (
        reply.text,
        [c.id for c in reply.calls],
        reply.stop,
    ) == ("Hi", ["a", "call_1"], StopReason.TOOL_USE)
    assert reply.model == "big"


def test_the_legacy_function_call_is_a_call() -> None:
    """`function_call` is read as one tool call."""
    reply = assembled(
        delta(function_call={"name": "x", "arguments": "{"}),
        delta("function_call", function_call={"arguments": "}"}),
    )

    assert [(c.name, c.arguments) for c in reply.calls] == [("x", "{}")]
    assert (reply.stop, reply.stop_raw) == (StopReason.TOOL_USE, "function_call")


def test_a_refusal_beside_stop_is_a_refusal() -> None:
    """`refusal` is read even where the finish reason says `stop`."""
    reply = assembled(delta(refusal="I can"), delta("stop", refusal="not."))

    assert (reply.stop, reply.stop_raw, reply.stop_detail) == (StopReason.REFUSAL, "stop", "I cannot.")


def test_a_filtered_replys_text_is_its_detail() -> None:
    """What a filter's reply says is kept as the reason (B92)."""
    reply = assembled(delta("content_filter", content="Not this."))

    assert (reply.stop, reply.stop_detail) == (StopReason.CONTENT_FILTER, "Not this.")


def test_no_later_null_unsays_a_finish_reason() -> None:
    """DashScope's word "null", and an empty one, come with every chunk."""
    reply = assembled(delta("null", content="a"), delta("stop"), delta("null"), delta(""))

    assert (reply.stop, reply.stop_raw) == (StopReason.END_TURN, "stop")


@pytest.mark.parametrize(
    "chunk",
    [
        {
            "choices": [
                {"delta": {}, "finish_reason": "stop", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}
            ]
        },
        {
            "choices": [
                {
                    "delta": {},
                    "finish_reason": "stop",
                    "provider_specific_fields": {"native_finish_reason": "MALFORMED_FUNCTION_CALL"},
                }
            ]
        },
        {
            "choices": [
                {
                    "message": {
                        "provider_specific_fields": {"native_finish_reason": "MALFORMED_FUNCTION_CALL"}
                    },
                    "finish_reason": "stop",
                }
            ]
        },
    ],
)
def test_the_native_word_is_found_and_kept(chunk: dict[str, Any]) -> None:
    """OpenRouter and LiteLLM put the real word in different places."""
    reply = assembled(chunk)

    assert (
        reply.stop,
        reply.stop_raw,
        reply.stop_native,
    ) == (StopReason.MALFORMED_TOOL_CALL, "stop", "MALFORMED_FUNCTION_CALL")


def test_reasoning_is_kept_apart() -> None:
    """Reasoning is not part of the text."""
    reply = assembled(delta(reasoning_content="hm, "), delta(reasoning="so"), delta("stop", content="Yes."))

    assert (reply.text, reply.extra) == ("Yes.", {"reasoning_content": "hm, so"})


def test_split_surrogates_are_joined_and_nul_made_visible() -> None:
    """Half a character at the end of one chunk and half at the start of the next is one character (B67, B65)."""
    reply = assembled(
        delta(content="\ud83c"),
        delta(content="\udf78 \x00 \ud800"),
        delta("stop", tool_calls=[piece('{"a":"\ud83c', name="x")]),
        delta(tool_calls=[piece('\udf78"}')]),
    )

    assert (reply.text, reply.calls[0].arguments) == ("🍸 ␀ �", '{"a":"🍸"}')


def test_chunks_of_odd_shapes_are_passed_over() -> None:
    """Null, numbers and strings where objects belong do no harm."""
    odd: list[dict[str, Any]] = [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [None, 3]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 7, "tool_calls": {"a": 1}, "function_call": "x"}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"index": "0", "function": None}]}}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        {"usage": 7},
    ]
    reply = assembled(*odd, delta("stop", content="fine"))

    assert reply.text == "fine"


def test_a_reply_beyond_its_bounds_is_given_up() -> None:
    """Text and calls are bounded, whatever the server sends."""
    with pytest.raises(TooLarge, match="characters"):
        assembled(*(delta(content="x" * (MAX_CHARACTERS // 2)) for _ in range(3)))
    with pytest.raises(TooLarge, match="calls"):
        assembled(*(delta(tool_calls=[piece("", index=n)]) for n in range(MAX_CALLS + 1)))


def counted(usage: Any, text: str = "x" * 40) -> Usage:
    assembly = ChatAssembly()
    assembly.absorb({"usage": usage, **delta("stop", content=text)})
    return assembly.counted(len, b"y" * 100)


USAGES = {
    "plain": ({"prompt_tokens": 50, "completion_tokens": 7}, Usage(50, 0, 0, 7)),
    "cached": (
        {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 30}},
        Usage(50, 30, 0, 7),
    ),
    "DeepSeek": (
        {"prompt_tokens": 50, "completion_tokens": 7, "prompt_cache_hit_tokens": 30},
        Usage(50, 30, 0, 7),
    ),
    "more cached than there is": (
        {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 80}},
        Usage(50, 50, 0, 7),
    ),
    "none": (None, Usage(100, 0, 0, 40, estimated=True)),
    "empty": ({}, Usage(100, 0, 0, 40, estimated=True)),
    "zeros": ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(100, 0, 0, 40, estimated=True)),
    "nonsense": ({"prompt_tokens": "50", "completion_tokens": -1}, Usage(100, 0, 0, 40, estimated=True)),
    "no output": ({"prompt_tokens": 50}, Usage(50, 0, 0, 40, estimated=True)),
    "no input": ({"completion_tokens": 7}, Usage(100, 0, 0, 7, estimated=True)),
}


@pytest.mark.parametrize(("reported", "usage"), USAGES.values(), ids=USAGES)
def test_usage_has_one_meaning(reported: Any, usage: Usage) -> None:
    """Input includes what was cached; what is not reported is estimated and flagged (B27, B28)."""
    assert usage == counted(reported)


def test_an_empty_reply_may_cost_no_output() -> None:
    """Zero output tokens are believed of a reply that holds nothing."""
    assert Usage(50) == counted({"prompt_tokens": 50, "completion_tokens": 0}, text="")
