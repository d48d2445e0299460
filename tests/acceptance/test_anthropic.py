"""A long wakeup over Anthropic's wire format, with all that can go wrong in one, against the strict provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from goalmode import ExitReason
from goalmode.testing import steps
from goalmode.testing.steps import StubCall
from tests.acceptance.world import World, complete, write

QUOTA = 60


@pytest.fixture
def anthropic(world: World) -> World:
    """The world, its model behind `/v1/messages`."""
    world.profile = replace(world.profile, spec="anthropic:stub", wire="anthropic")
    return world


def work(number: int) -> steps.Completion:
    """An ordinary turn, with a signed thought."""
    thought = f"What is missing in part {number}?\n第{number}步。"
    if number % 4 == 1:
        reads: list[Any] = [("list_files", {"path": "."}), ("shell", {"command": f"echo {number}"})]
        return steps.tools(reads, f"I look at part {number}.", reasoning=thought)
    return write(f"part-{number}.md", f"Part {number}.", text=f"Part {number} is written.", reasoning=thought)


TROUBLE: Mapping[int, steps.Step] = {
    9: steps.tool("shell", '{"command": "echo', reasoning="cut off"),
    14: steps.tools([StubCall("list_files", '{"path": "."}', id="x")] * 3),
    15: steps.tool("list_files", {"path": "."}, id="x", reasoning="the same id again"),
    20: steps.tool("no such tool!", {"a": 1}),
    26: steps.cut(write("cut.md", "never " * 20), after_chars=40),
    31: steps.error_chunk({"type": "overloaded_error", "message": "Overloaded"}, after="Half a "),
    36: steps.text("I search.", finish="pause_turn", reasoning="where?"),
    41: write("half.md", "half", finish="max_tokens"),
    46: steps.text("", reasoning="nothing to say"),
    51: steps.text("", finish="tool_use"),
}


def turn(request: Mapping[str, Any], number: int) -> steps.Step:
    return TROUBLE.get(number) or work(number)


def thoughts(request: Mapping[str, Any]) -> list[str]:
    return [b["thinking"] for m in request["messages"] for b in m["content"] if b["type"] == "thinking"]


def test_a_long_wakeup_sends_nothing_that_is_refused(anthropic: World) -> None:
    """Parallel and malformed calls, ids twice, unknown tools, cuts, errors, pauses: nothing refused (B78-B94)."""
    goal = anthropic.goal("Write sixty parts.", max_turns=QUOTA)
    anthropic.provider.follow(turn)

    ending = anthropic.wake(goal)

    stub = anthropic.provider.stub
    assert (ending.reason, stub.rejected) == (ExitReason.MAX_TURNS_EXCEEDED, [])
    assert anthropic.now(goal).spent.turns == QUOTA
    assert {seen.path for seen in stub.requests} == {"/v1/messages"}
    stops = Counter(turn["stop_reason"] for turn in anthropic.turns(goal))
    assert (stops["PAUSE"], stops["MAX_TOKENS"], stops["MALFORMED_TOOL_CALL"]) == (1, 1, 1)
    assert not (anthropic.workspace / "half.md").exists()
    assert not (anthropic.workspace / "cut.md").exists()
    assert len(thoughts(stub.requests[-1].body)) > QUOTA * 3 // 4


def test_no_thought_of_an_earlier_wakeup_comes_back(anthropic: World) -> None:
    """Signed thoughts belong to one conversation: the next wakeup begins without any (B01)."""
    goal = anthropic.goal("Write sixty parts.", max_turns=5)
    anthropic.provider.follow(turn)
    anthropic.wake(goal)
    before = len(anthropic.provider.stub.requests)

    anthropic.provider.follow(lambda request, number: complete() if number > before else work(number))
    anthropic.wake(goal)

    first = anthropic.provider.stub.requests[before].body
    assert thoughts(anthropic.provider.stub.requests[before - 1].body)
    assert thoughts(first) == []
    assert [message["role"] for message in first["messages"]] == ["user"]


def test_a_pause_is_resumed_at_once(anthropic: World) -> None:
    """B94: the paused reply goes back unchanged, its words in it, and costs no recovery prompt."""
    goal = anthropic.goal(deliverables=["a.md"])
    anthropic.provider.script(
        write("a.md", "A."),
        steps.text("I search.", finish="pause_turn"),
        steps.text("", finish="pause_turn"),
        complete(),
    )

    ending = anthropic.wake(goal)

    resumed = anthropic.provider.stub.requests[3].body["messages"][-1]
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert [block["type"] for block in resumed["content"]] == [
        "text",
        "server_tool_use",
        "web_search_tool_result",
        "server_tool_use",
    ]
    assert anthropic.inspect(goal)["wakeups"][0]["recoveries"] == 0


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (steps.text("", refusal="Not this."), ExitReason.MODEL_REFUSED),
        (steps.text("x", finish="model_context_window_exceeded"), ExitReason.CONTEXT_OVERFLOW),
        (steps.text("x", finish="banana"), ExitReason.BACKEND_ERROR),
        (steps.text("x", finish=None), ExitReason.BACKEND_ERROR),
    ],
)
def test_no_ending_but_a_claim_is_success(anthropic: World, step: steps.Step, reason: ExitReason) -> None:
    """What the provider reports instead of an answer ends the wakeup for its own reason (B87, B92)."""
    goal = anthropic.goal()
    anthropic.provider.script(then=step)

    assert anthropic.wake(goal).reason is reason
