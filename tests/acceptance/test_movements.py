"""Movements over HTTP: a conversation shared by several movements is one that a strict provider takes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from goalmode import ExitReason
from goalmode.domain.workflow import Movement, Workflow
from goalmode.testing import steps
from goalmode.workflows.load import shipped
from tests.acceptance.world import World, complete, mark, results, write

WORKFLOW = Workflow("two", "draft", (Movement("draft", "Draft it."), Movement("review", "Read it closely.")))
REVIEW = ("transition", {"to": "review", "reason": "a draft is there"})


def unanswered(request: dict[str, Any]) -> list[str]:
    """Ids of calls in a request that have no result, or more than one; and of results without a call."""
    called = Counter(c["id"] for m in request["messages"] for c in m.get("tool_calls") or ())
    answered = Counter(m["tool_call_id"] for m in request["messages"] if m["role"] == "tool")
    return [*(called - answered), *(answered - called)]


@pytest.mark.parametrize(
    "moving",
    [
        steps.tools([REVIEW]),
        steps.tools([REVIEW, ("shell", {"command": "echo x >> marks"})]),
        steps.tools([("shell", {"command": "echo x >> marks"}), REVIEW, ("list_files", {})], "Moving on."),
        steps.tools([REVIEW, ("transition", {"to": "draft", "reason": "or not"})]),
        steps.tools([REVIEW, ("complete", {"status": "success", "summary": "Written."})]),
        steps.tools([REVIEW, ("shell", "{broken"), ("no_such_tool", {})]),
    ],
    ids=["alone", "before work", "between work", "twice", "with a claim", "beside broken calls"],
)
def test_second_movement_input_has_no_dangling_control_calls(world: World, moving: steps.Step) -> None:
    """The first request of the next movement has every call answered once, in place, and the stub takes it."""
    goal = world.goal(deliverables=["a.txt"], workflow=WORKFLOW)
    world.provider.script(write("a.txt", "a"), moving, mark(), complete())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    before, after = world.provider.requests[1], world.provider.requests[2]
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert unanswered(after) == []
    assert "accepted: transition to review" in results(after)
    assert after["messages"][-1]["role"] == "user"
    assert "Read it closely." in after["messages"][-1]["content"]
    assert world.provider.violations() == []


def test_two_transitions_in_a_long_wakeup(world: World) -> None:
    """The shipped workflow, with parallel calls and prose between: 0 rejected requests."""
    goal = world.goal(deliverables=["a.txt"], workflow=shipped("polish"))
    both = steps.tools([("list_files", {}), ("read_file", {"path": "a.txt"})], "Looking at both.")
    world.provider.script(
        write("a.txt", "a"),
        steps.text("It is written, 全部完成。"),
        steps.tools([("transition", {"to": "verify", "reason": "a first version"}), ("list_files", {})]),
        both,
        steps.tools([("list_files", {}), ("transition", {"to": "improve", "reason": "two weak points"})]),
        write("a.txt", "a better one"),
        both,
        complete(),
    )

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert [unanswered(request) for request in world.provider.requests] == [[]] * 8
    assert world.inspect(goal)["movement"] == "improve"
    assert [t["movement"] for t in world.turns(goal)] == ["create"] * 3 + ["verify"] * 2 + ["improve"] * 3
