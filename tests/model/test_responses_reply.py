"""Events of a response put together to a reply, in all the shapes that servers send them."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.domain.messages import Reply, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.model.wire.assembly import MAX_CALLS, MAX_CHARACTERS, ErrorInside, TooLarge
from goalmode.model.wire.responses_messages import EXTRA
from goalmode.model.wire.responses_reply import ResponseAssembly

S = StopReason
SEALED = "gAAAAABsealed"


def message(text: str = "Hi.", **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": text}], **more}


def called(arguments: str = "{}", **more: Any) -> dict[str, Any]:
    base = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell"}
    return {**base, "arguments": arguments, **more}


def thought(**more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEALED, **more}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(part: str, index: int, text: Any) -> dict[str, Any]:
    return {"type": f"response.{part}.delta", "output_index": index, "delta": text}


def ended(status: str = "completed", reason: str | None = None, **response: Any) -> dict[str, Any]:
    details = {"reason": reason} if reason else None
    return {
        "type": f"response.{status}",
        "response": {"status": status, "incomplete_details": details, "model": "big", **response},
    }


def whole(*output: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": status, "output": list(output), "error": None, **more}


def absorbed(*events: Any) -> ResponseAssembly:
    assembly = ResponseAssembly("m")
    for event in events:
        assembly.absorb(event)
    return assembly


def assembled(*events: Any, used: set[str] | None = None) -> Reply:
    return absorbed(*events).reply(used_ids=used or (), usage=Usage(1, 0, 0, 1), max_output=1000)


def test_text_and_calls_grow_together() -> None:
    """Deltas of text and arguments are joined; ids, names and order are the items' own."""
    reply = assembled(
        {"type": "response.created", "response": {"model": "big", "status": "in_progress"}},
        added(0, {"type": "message", "id": "msg_1", "content": []}),
        delta("output_text", 0, "Let me "),
        delta("output_text", 0, "look."),
        added(1, called("", status="in_progress")),
        delta("function_call_arguments", 1, '{"command":'),
        delta("function_call_arguments", 1, '"ls"}'),
        done(0, message("Let me look.", status="completed")),
        done(1, called('{"command":"ls"}', status="completed")),
        ended(),
    )

    assert (reply.text, reply.calls) == ("Let me look.", (ToolCall("c1", "shell", '{"command":"ls"}'),))
    assert (reply.stop, reply.stop_raw, reply.model) == (S.TOOL_USE, "completed", "big")


def test_what_was_only_streamed_is_taken_as_it_grew() -> None:
    """A done item that repeats neither text nor arguments is what its deltas made of it."""
    reply = assembled(
        added(0, called("")),
        delta("function_call_arguments", 0, '{"a":1}'),
        done(0, called("", status="completed")),
        added(1, message("")),
        delta("output_text", 1, "Hi."),
        done(1, {"type": "message", "content": []}),
        ended(),
    )

    assert (reply.text, reply.calls[0].arguments, reply.stop) == ("Hi.", '{"a":1}', S.TOOL_USE)


def test_a_whole_response_is_read_the_same_way() -> None:
    """A server that does not stream sends the response itself."""
    reply = assembled(whole(message("One."), called('{"a":1}'), message("Two."), model="big"))

    assert (reply.text, reply.calls[0].arguments, reply.stop) == ("One.\n\nTwo.", '{"a":1}', S.TOOL_USE)


def test_only_the_last_event_tells_the_ending() -> None:
    """A response that is in progress, or done item by item, has no ending yet: it was cut."""
    assembly = absorbed(
        {"type": "response.in_progress", "response": {"status": "in_progress"}}, done(0, message())
    )

    assert assembly.stop is S.MISSING
    assert not assembly.ended


@pytest.mark.parametrize("status", ["incomplete", "in_progress"])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_call_that_was_not_completed_is_a_cut_reply(status: str, streamed: bool) -> None:
    """A call in any state but completed is kept, and the reply does not count as one that asks for tools."""
    item = called('{"command": "rm -rf build"}', status=status)
    reply = assembled(done(0, item), ended()) if streamed else assembled(whole(item))

    assert (reply.stop, len(reply.calls), reply.extra) == (S.MAX_TOKENS, 1, {})


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_is_not_finished_asks_for_no_tools(status: str) -> None:
    """More may come: without calls it is asked for again, and the calls it holds so far are not run."""
    assert assembled(whole(message(), status=status)).stop is S.PAUSE
    assert assembled(whole(message(), called(), status=status)).stop is S.MAX_TOKENS


def test_a_call_that_was_announced_and_never_done_is_a_cut_reply() -> None:
    """What grew without an end is not whole, whatever the response says of itself."""
    reply = assembled(added(0, called("")), delta("function_call_arguments", 0, '{"a":1}'), ended())

    assert (reply.stop, reply.calls[0].arguments) == (S.MAX_TOKENS, '{"a":1}')


def test_the_last_list_of_items_beats_the_pieces() -> None:
    """What the closing event lists is the response, also where the stream numbered its items wrongly."""
    first, second = called('{"n":1}', id="fc_1", call_id="a"), called('{"n":2}', id="fc_2", call_id="b")
    reply = assembled(
        added(0, first), done(0, first), added(0, second), done(0, second), ended(output=[first, second])
    )

    assert [(c.id, c.arguments) for c in reply.calls] == [("a", '{"n":1}'), ("b", '{"n":2}')]


def test_ids_are_unique_over_the_conversation() -> None:
    """Calls that share an id, have none, or use an old one again get ids of their own (B80)."""
    items = [called(call_id=i, id=f"fc_{n}") for n, i in enumerate(["x", "x", "", "old"])]
    reply = assembled(whole(*items), used={"old"})

    assert [c.id for c in reply.calls] == ["x", "call_2", "call_3", "call_4"]


def test_a_refusal_part_is_a_refusal() -> None:
    """A refusal under `completed` is a refusal with its words, streamed or whole."""
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    streamed = assembled(
        added(0, message("")), delta("refusal", 0, "I can"), delta("refusal", 0, "not."), ended()
    )

    for reply in (streamed, assembled(whole(refusal))):
        assert (reply.stop, reply.stop_raw, reply.stop_detail) == (S.REFUSAL, "completed", "I cannot.")


def test_a_filtered_replys_text_is_its_detail() -> None:
    """What a filtered response says is kept as the reason."""
    reply = assembled(done(0, message("Not this.")), ended("incomplete", "content_filter"))

    assert (reply.stop, reply.stop_detail) == (S.CONTENT_FILTER, "Not this.")
    assert reply.stop_raw == "incomplete/content_filter"


def test_reasoning_is_kept_in_its_place() -> None:
    """Reasoning, texts with their phase, and the places of calls go back in the order in which they came."""
    summary = [{"type": "summary_text", "text": "Look first."}]
    reply = assembled(
        whole(
            thought(summary=summary, status=None), message("Looking.", phase="commentary"), called(id="fc_9")
        )
    )

    assert reply.extra == {
        EXTRA: {
            "model": "m",
            "items": [
                {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SEALED},
                {"type": "message", "text": "Looking.", "phase": "commentary"},
                {"type": "function_call", "id": "fc_9"},
            ],
        }
    }


def test_the_reasoning_of_the_last_event_is_the_whole_one() -> None:
    """What `added` shows of encrypted content may be a part of it; what `done` shows is kept."""
    reply = assembled(
        added(0, thought(encrypted_content="gA")), done(0, thought()), done(1, called()), ended()
    )

    assert reply.extra[EXTRA]["items"][0]["encrypted_content"] == SEALED  # type: ignore[index]


NOTHING_KEPT = {
    "no reasoning": [message(), called()],
    "reasoning that cannot be given back": [thought(encrypted_content=None), called()],
    "reasoning that led to nothing": [message(), thought()],
    "reasoning that led to a blank message": [thought(), message("  ")],
    "a call that was cut": [thought(), called(status="incomplete")],
}


@pytest.mark.parametrize("items", NOTHING_KEPT.values(), ids=NOTHING_KEPT)
def test_nothing_is_kept_that_could_not_be_given_back(items: list[dict[str, Any]]) -> None:
    """Where reasoning would be refused later, the reply is plain text and calls."""
    assert assembled(whole(*items)).extra == {}


def test_lost_reasoning_takes_the_ids_of_its_items_with_it() -> None:
    """Beside reasoning that cannot be given back no call keeps its item id, nor does one that is no `fc` id."""
    lost = assembled(
        whole(thought(), called(), thought(id="rs_2", encrypted_content=None), called(id="fc_2"))
    )
    foreign = assembled(whole(thought(), called(id="call_7")))

    for reply in (lost, foreign):
        places = reply.extra[EXTRA]["items"]  # type: ignore[index]
        assert [p for p in places if p["type"] == "function_call" and "id" in p] == []


def test_items_that_were_never_asked_for_are_passed_over() -> None:
    """Searches, programs and whatever comes next are no text and no calls of ours."""
    reply = assembled(
        whole({"type": "web_search_call", "id": "ws_1"}, {"type": "custom_tool_call"}, message())
    )

    assert (reply.text, reply.calls, reply.stop) == ("Hi.", (), S.END_TURN)


def test_split_surrogates_are_joined_and_nul_made_visible() -> None:
    """Half a character at the end of one delta and half at the start of the next is one character (B67, B65)."""
    reply = assembled(
        added(0, message("")),
        delta("output_text", 0, "\ud83c"),
        delta("output_text", 0, "\udf78 \x00 \ud800"),
        ended(),
    )

    assert reply.text == "🍸 ␀ �"


ERRORS: dict[str, Any] = {
    "event": {"type": "error", "code": "server_error", "message": "x"},
    "event with an object": {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
    "failed": ended("failed", error={"code": "invalid_prompt", "message": "x"}),
    "whole and failed": whole(status="failed") | {"error": {"code": "server_error", "message": "x"}},
    "body": {"error": {"message": "x"}},
    "detail": {"detail": "x"},
    "list": [{"error": {"message": "x"}}],
}


@pytest.mark.parametrize("event", ERRORS.values(), ids=ERRORS)
def test_an_error_inside_is_an_error(event: Any) -> None:
    """Event, body or failed response: an error is no reply."""
    with pytest.raises(ErrorInside):
        absorbed(event)


def test_a_failed_response_has_cost_what_it_says() -> None:
    """Usage beside an error is known when the error is raised."""
    assembly = ResponseAssembly("m")
    usage = {"input_tokens": 9, "output_tokens": 2}
    with pytest.raises(ErrorInside):
        assembly.absorb(ended("failed", error={"code": "server_error"}, usage=usage))

    assert Usage(9, 0, 0, 2) == assembly.counted(len, b"body")


def test_a_failed_response_without_an_error_is_a_failed_reply() -> None:
    """`failed` alone is an ending: PROVIDER_ERROR, its word kept."""
    assert (assembled(ended("failed")).stop, assembled({"type": "response.failed"}).stop) == (
        S.PROVIDER_ERROR,
        S.PROVIDER_ERROR,
    )


def test_events_of_odd_shapes_are_passed_over() -> None:
    """Null, numbers, unknown events and strings where objects belong do no harm."""
    odd: list[Any] = [
        {},
        None,
        7,
        {"type": 7},
        {"type": "response.banana", "output_index": 0, "delta": "x"},
        {"type": "response.created", "response": None},
        {"type": "response.output_item.added", "output_index": 0, "item": None},
        {"type": "response.output_item.added", "output_index": None, "item": {}},
        {"type": "response.output_item.done", "output_index": 5, "item": {"type": "message", "content": 7}},
        {"type": "response.output_item.done", "output_index": 6, "item": {"type": ["message"]}},
        delta("output_text", 0, 7),
        delta("output_text", 0, None),
        delta("output_text", 9, "of no item"),
        {"type": "response.output_text.delta", "delta": "without a place"},
    ]
    reply = assembled(*odd, done(1, message("fine")), ended(usage=7, output=[None, "x"]))

    assert (reply.text, reply.stop) == ("fine", S.END_TURN)


def test_a_reply_beyond_its_bounds_is_given_up() -> None:
    """Text, items and sealed reasoning are bounded, however they arrive."""
    half = "x" * (MAX_CHARACTERS // 2)
    with pytest.raises(TooLarge, match="characters"):
        absorbed(added(0, message("")), *(delta("output_text", 0, half) for _ in range(3)))
    with pytest.raises(TooLarge, match="characters"):
        absorbed(*(done(n, message(half)) for n in range(3)))
    with pytest.raises(TooLarge, match="characters"):
        absorbed(*(done(n, thought(encrypted_content=half)) for n in range(3)))
    with pytest.raises(TooLarge, match="items"):
        absorbed(*(added(n, called("")) for n in range(MAX_CALLS + 1)))
    with pytest.raises(TooLarge, match="items"):
        absorbed(whole(*(called("") for _ in range(MAX_CALLS + 1))))


def test_what_is_repeated_is_counted_once() -> None:
    """The done item and the closing list repeat what was streamed; that does not make the reply larger."""
    text = "x" * (MAX_CHARACTERS * 2 // 3)
    assembly = absorbed(
        added(0, message("")),
        delta("output_text", 0, text),
        done(0, message(text)),
        ended(output=[message(text)]),
    )

    assert assembly.size.characters == len(text)


def counted(usage: Any) -> Usage:
    return absorbed(done(0, message("x" * 40)), ended(usage=usage)).counted(len, b"y" * 100)


USAGES = {
    "plain": ({"input_tokens": 50, "output_tokens": 7}, Usage(50, 0, 0, 7)),
    "cached": (
        {
            "input_tokens": 50,
            "output_tokens": 7,
            "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 5},
        },
        Usage(50, 30, 5, 7),
    ),
    "more cached than there is": (
        {"input_tokens": 50, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 80}},
        Usage(50, 50, 0, 7),
    ),
    "odd details": ({"input_tokens": 50, "output_tokens": 7, "input_tokens_details": 3}, Usage(50, 0, 0, 7)),
    "none": (None, Usage(100, 0, 0, 40, estimated=True)),
    "empty": ({}, Usage(100, 0, 0, 40, estimated=True)),
    "zeros": ({"input_tokens": 0, "output_tokens": 0}, Usage(100, 0, 0, 40, estimated=True)),
    "nonsense": ({"input_tokens": float("nan"), "output_tokens": -1}, Usage(100, 0, 0, 40, estimated=True)),
}


@pytest.mark.parametrize(("reported", "usage"), USAGES.values(), ids=USAGES)
def test_usage_has_one_meaning(reported: Any, usage: Usage) -> None:
    """Input is the whole prompt, what was cached included; what is not reported is estimated (B27, B28)."""
    assert usage == counted(reported)
