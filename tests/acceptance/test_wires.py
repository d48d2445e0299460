"""The same long wakeup on each wire format: whatever a model and its server do, no request is refused."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from goalmode import ExitReason
from goalmode.domain.workflow import Movement, Workflow
from goalmode.testing import Stub, steps
from goalmode.testing.steps import Completion, StubCall
from tests.acceptance.world import World, complete

TURNS = 60
WIRES = ["openai", "openai-responses", "anthropic"]
WORKFLOW = Workflow("two", "draft", (Movement("draft", "Draft it."), Movement("review", "Read it closely.")))
MOVES = {20: "review", 40: "draft"}
"""Turns that also move on to another movement, on the same conversation."""


def work(number: int) -> Completion:
    """One call that does something new."""
    note = {"path": f"part-{number % 7}.md", "content": f"Part {number}.\n"}
    return steps.tool(
        "write_file", note, text=f"Part {number}. 第{number}部分。", reasoning=f"Thinking of {number}."
    )


def turn(request: Mapping[str, Any], number: int) -> steps.Step:
    """Honest work, and between it every way in which replies go wrong."""
    reads = ("list_files", {"path": "."}), ("shell", {"command": f"echo {number}"})
    if number in MOVES:
        move = ("transition", {"to": MOVES[number], "reason": "a third is done"})
        return steps.tools([*reads, move], "Moving on.")
    match number % 15:
        case 1:
            return steps.tools([*reads, ("write_file", {"path": "a.md", "content": "a"})], "Three at once.")
        case 2:
            return steps.tools(
                [("shell", '{"command": "ec'), ("shell", "[1]"), ("shell", '{"command": NaN}')]
            )
        case 3:
            return steps.tools([StubCall("shell", f'{{"command": "echo {n}"}}', id="same") for n in range(3)])
        case 4:
            return steps.tools([StubCall("list_files", '{"path": "."}', id=i) for i in ("", "a b", "call_1")])
        case 5:
            return steps.cut(work(number), after_chars=20)
        case 6:
            return steps.error_chunk({"message": "Overloaded", "code": "server_error"}, after="Half a ")
        case 7 if number < TURNS // 2:
            return steps.tools([("no such tool!", {}), ("shell", {"command": "true"})], reasoning="Hm.")
        case 8:
            return replace(work(number), finish="length")
        case 9:
            return steps.tool(
                "shell", '{"command": "\\ud83c", "other": "\\u0000"}', text="half \ud83c and \x00"
            )
        case 10 if number > 10:
            return steps.text("", reasoning="Nothing to say.")
        case _:
            return work(number)


@pytest.mark.parametrize("wire", WIRES)
def test_sixty_turns_of_trouble_without_a_refused_request(world: World, wire: str) -> None:
    """Parallel, malformed, repeated and unknown calls, cut and broken streams: 60 turns, 0 refused requests."""
    goal = world.goal("Write the parts.", max_turns=TURNS, workflow=WORKFLOW)
    failed: list[Any] = []
    with Stub(turn) as stub:
        world.profile = replace(world.profile, wire=wire, base_url=stub.base_url)
        ending = world.wake(goal, on_retry=lambda error, wait, attempt: failed.append(error))

    assert stub.rejected == []
    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED, ending
    assert world.now(goal).spent.turns == TURNS
    assert Counter(t["movement"] for t in world.turns(goal))["review"] >= 10
    assert world.inspect(goal)["movement"] == "draft"
    assert len(stub.requests) >= TURNS + len(failed) >= TURNS + 8
    assert {error.kind.value for error in failed} == {"STREAM_CUT", "OVERLOADED"}
    outcomes = Counter(world.outcomes())
    assert outcomes["failed"] >= 12
    assert outcomes["success"] > TURNS // 2
    assert outcomes["skipped"] + outcomes["denied"] >= 4  # the cut calls, which were never run
    assert None not in outcomes
    assert world.intact()


@pytest.mark.parametrize("wire", WIRES)
def test_each_turn_shows_the_providers_own_word(world: World, wire: str) -> None:
    """`goalmode turns` tells the normalised ending and the word it was read from, in each format's own words."""
    goal = world.goal(max_turns=2)
    with Stub([work(0), replace(work(1), finish="length"), steps.text("saved")]) as stub:
        world.profile = replace(world.profile, wire=wire, base_url=stub.base_url)
        world.wake(goal)

    words = {
        "openai": ["tool_calls", "length"],
        "openai-responses": ["completed", "incomplete/max_output_tokens"],
        "anthropic": ["tool_use", "max_tokens"],
    }
    shown = [(t["stop_reason"], t["stop_raw"]) for t in world.turns(goal)][:2]
    assert shown == list(zip(["TOOL_USE", "MAX_TOKENS"], words[wire], strict=True))
    assert stub.rejected == []


WORDS: dict[str, list[str | None]] = {
    "openai": [
        *(
            "stop",
            "tool_calls",
            "function_call",
            "length",
            "content_filter",
            "null",
            None,
            "",
            "abort",
            "error",
        ),
        *("repetition", "pause_turn", "model_length", "sensitive", "MALFORMED_FUNCTION_CALL", "banana"),
    ],
    "openai-responses": [
        *("completed", "max_output_tokens", "max_messages", "content_filter", "steered", None, "failed"),
        *("cancelled", "queued", "in_progress", "banana"),
    ],
    "anthropic": [
        *("end_turn", "tool_use", "stop_sequence", "max_tokens", "pause_turn", "refusal", None, "banana"),
        *("model_context_window_exceeded", "compaction", "error"),
    ],
}
ORDERLY = {
    "openai": {"stop", "tool_calls", "function_call", "pause_turn"},
    "openai-responses": {"completed"},
    "anthropic": {"end_turn", "tool_use", "stop_sequence", "pause_turn", "compaction"},
}
"""Words under which a call may be run. A paused chat completion that asks for our tools waits for us."""


@pytest.mark.parametrize("called", [True, False], ids=["a claim", "no call"])
@pytest.mark.parametrize("wire", WIRES)
def test_only_an_accepted_claim_succeeds_whatever_the_ending(world: World, wire: str, called: bool) -> None:
    """A goal whose work is done ends in success only by a claim in an orderly reply, not by any word or text."""
    (world.workspace / "marks").write_text("x")
    for word, said in itertools.product(WORDS[wire], ["Everything is finished.", ""]):
        goal = world.goal(deliverables=["marks"], max_turns=6)
        claim = complete() if called else steps.text("")
        work_ = steps.tool("shell", {"command": "cat marks"})
        script = [work_, replace(claim, text=said, finish=word), *[steps.text("")] * 9]
        with Stub(script) as stub:
            world.profile = replace(world.profile, wire=wire, base_url=stub.base_url)
            ending = world.wake(goal)

        succeeded = ending.reason is ExitReason.CURRENT_TASK_DONE
        assert (word, said, succeeded) == (word, said, called and word in ORDERLY[wire])
        assert [refusal for refusal in stub.rejected if "has no step" not in refusal] == []


@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_beyond_all_bounds_ends_for_a_clear_reason(world: World, wire: str) -> None:
    """Thousands of calls in one reply: nothing of it runs, the journal is whole, and the ending says what it was."""
    goal = world.goal(deliverables=["marks"])
    many = steps.tools([("shell", {"command": "echo x >> marks"})] * 5_000)
    with Stub([many], forever=True) as stub:
        world.profile = replace(world.profile, wire=wire, base_url=stub.base_url)
        ending = world.wake(goal)

    assert ending.reason is ExitReason.BACKEND_ERROR
    assert "more than 512" in ending.detail
    assert world.marks() == 0
    assert world.outcomes() == []
    assert world.intact()
    assert len(stub.requests) == 5
