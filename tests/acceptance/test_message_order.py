"""Rows B101, B103, B104: whatever stops a wakeup, the next request is one that a strict provider takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goalmode import Exit, ExitReason, Goal
from goalmode.orchestrator.goals import edit_goal, resume_goal
from goalmode.testing import steps
from tests.acceptance.processes import Children
from tests.acceptance.world import World, complete, mark

STOP = Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"})


def sleeping(world: World) -> tuple[steps.Step, Path]:
    """A call that never ends by itself, and the file that shows it has begun."""
    return steps.tool("shell", {"command": "touch started; exec sleep 4321"}), world.workspace / "started"


@pytest.mark.slow
def test_a_history_cut_by_kill_9(real_world: World, children: Children) -> None:
    """B101: call, result, call, kill -9; then recovery prompt, work, a resume, and the end: nothing is refused."""
    world = real_world
    goal = world.goal(deliverables=["marks"], max_turns=4)
    sleeps, started = sleeping(world)
    world.provider.script(mark(), sleeps)
    child = children.wake(world, goal)
    child.until(started.exists, "the tool runs")
    child.kill()

    world.provider.script(steps.text("Where was I?"), steps.text(""), mark(), mark())
    second = world.wake(goal)
    resume_goal(world.store, world.now(goal))
    world.provider.script(steps.text("Hm."), complete())
    third = world.wake(goal)

    assert second.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert third.reason is ExitReason.CURRENT_TASK_DONE
    assert world.provider.violations() == []


def test_a_stop_during_a_tool_and_then_the_user_speaks(world: World) -> None:
    """B103: the call is closed as interrupted before anything the user says, and the model is told so."""
    goal = world.goal(deliverables=["marks"])
    sleeps, started = sleeping(world)
    world.provider.script(mark(), sleeps)
    stopped = world.wake(goal, stop=lambda: STOP if started.exists() else None)
    edit_goal(world.store, world.now(goal), objective="Write the report in French.")
    resume_goal(world.store, world.now(goal))
    world.provider.script(mark(), complete())
    ending = world.wake(goal)

    assert stopped.reason is ExitReason.USER_ABORTED
    assert world.outcomes() == ["success", "interrupted", "success", "success"]
    first = world.provider.told(2)
    assert "Write the report in French." in first
    assert "interrupted" in first
    assert ending.reason is ExitReason.CURRENT_TASK_DONE


def test_a_stop_within_a_batch(world: World) -> None:
    """B104: of four calls two ran; all four have a result, and the two that had not begun did not run."""
    goal = world.goal()
    world.provider.script(steps.tools([("shell", {"command": f"echo {n} >> marks"}) for n in range(4)]))
    finished: list[Any] = []

    def counts(event: Any) -> None:
        if event.kind == "tool":
            finished.append(event)

    ending = world.wake(goal, on_event=counts, stop=lambda: STOP if len(finished) >= 2 else None)
    resume_goal(world.store, world.now(goal))
    world.provider.script(*[steps.text("")] * 3)
    world.wake(goal)

    assert ending.reason is ExitReason.USER_ABORTED
    assert world.outcomes() == ["success", "success", "skipped", "skipped"]
    assert world.marks() == 2


def test_the_same_goal_in_replay(world: World) -> None:
    """B104: under the replay policy the stopped batch is sent again, complete and in order."""
    goal: Goal = world.goal(policy="replay")
    world.provider.script(steps.tools([("shell", {"command": f"echo {n} >> marks"}) for n in range(4)]))
    ran: list[Any] = []
    world.wake(
        goal,
        on_event=lambda event: ran.append(event) if event.kind == "tool" else None,
        stop=lambda: STOP if len(ran) >= 2 else None,
    )
    resume_goal(world.store, world.now(goal))
    world.provider.script(*[steps.text("")] * 3)
    world.wake(goal)

    replayed = world.provider.requests[1]["messages"]
    assert sum(len(m.get("tool_calls") or ()) for m in replayed) == 4
    assert sum(m["role"] == "tool" for m in replayed) == 4
