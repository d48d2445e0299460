"""Rows B08, B10, B12: a completion signal counts once, fails within bounds, and leaves nothing behind."""

from __future__ import annotations

import pytest

from goalmode import ExitReason, GoalStatus, Skip
from goalmode.domain.exits import SkipReason
from goalmode.loop.act import MAX_FAILED_CONTROLS
from goalmode.testing import steps
from tests.acceptance.processes import Children
from tests.acceptance.world import World, complete, mark, results, write


def test_an_accepted_completion_is_the_last_request(world: World) -> None:
    """B08: after the claim stood nothing more is asked, in this wakeup or in the next three intervals."""
    goal = world.goal(deliverables=["a.txt"])
    world.provider.script(write("a.txt", "a"), mark(), mark(), complete(), then=mark())

    ending = world.wake(goal, only_if_due=True)
    later = []
    for _ in range(3):
        world.clock.advance(3600)
        later.append(world.wake(goal, only_if_due=True))

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert [s.reason for s in later if isinstance(s, Skip)] == [SkipReason.DONE] * 3
    assert len(world.provider.requests) == 4


def test_a_signal_that_was_cut_off_leaves_no_flag(real_world: World, children: Children) -> None:
    """B10: killed between a true claim and the change of state: the next wakeup asks again and honours it once."""
    world = real_world
    goal, other = world.goal(deliverables=["a.txt"]), world.goal("Something else.", deliverables=["b.txt"])
    (world.workspace / "a.txt").write_text("a")
    world.provider.script(complete())

    children.wake(world, goal, death="before close").killed()
    world.provider.script(complete())
    ending = world.wake(goal)
    world.provider.script(write("b.txt", "b"), complete())
    ending_of_other = world.wake(other)

    assert len(world.provider.requests) == 1 + 1 + 2
    assert ending.reason is ending_of_other.reason is ExitReason.CURRENT_TASK_DONE
    reasons = [
        r for (r,) in world.rows("SELECT exit_reason FROM wakeups WHERE goal = ? ORDER BY seq", goal.id)
    ]
    assert reasons == ["INTERRUPTED", "CURRENT_TASK_DONE"]


@pytest.mark.parametrize(
    "bad",
    [
        steps.tool("complete", '{"status": "success", "summ'),
        steps.tool("complete", "[1]"),
        steps.tool("task_complete", {"summary": "done"}),
    ],
    ids=["cut", "array", "wrong name"],
)
def test_failing_completion_calls_are_bounded(world: World, bad: steps.Step) -> None:
    """B12: each gets an error that names the valid form; after the documented few the wakeup ends without success."""
    goal = world.goal()
    world.provider.script(then=bad)

    ending = world.wake(goal)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert len(world.provider.requests) == MAX_FAILED_CONTROLS
    answers = results(world.provider.requests[-1])
    assert len(answers) == MAX_FAILED_CONTROLS - 1
    assert all("complete" in answer for answer in answers)
    assert world.now(goal).status is GoalStatus.ACTIVE
