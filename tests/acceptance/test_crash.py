"""Rows B41, B43, B45: kill -9 anywhere loses nothing that was committed, and nothing runs twice by itself."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from goalmode import ExitReason, Goal
from goalmode.testing import steps
from tests import stores
from tests.acceptance.cli import Command
from tests.acceptance.processes import Children, odd_seconds, running
from tests.acceptance.world import World, complete, mark, results, told


def outcomes(goalmode: Command, goal: Goal) -> list[tuple[str, str | None]]:
    """(tool, outcome) of every call, as `goalmode turns --json` shows it."""
    return [(c["tool"], c["outcome"]) for turn in goalmode.turns(goal.uid) for c in turn["calls"]]


def goes_on(world: World, goal: Goal) -> str:
    """The next wakeup works on to the goal's end; returns its first request's text."""
    before = len(world.provider.requests)
    world.provider.script(mark(), complete())
    ending = world.wake(goal)
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.intact()
    return told(world.provider.requests[before])


def test_killed_in_a_model_call(real_world: World, goalmode: Command) -> None:
    """B43, B10: the turn before it is kept, the lost call is charged as an estimate, the next wakeup starts at once."""
    world, silence = real_world, threading.Event()
    goal = world.goal(deliverables=["marks"])
    world.provider.script(mark(), steps.stall(steps.text("never said"), until=silence))
    child = goalmode.start("run", goal.uid)
    child.until(lambda: len(world.provider.stub.requests) == 2, "the second request")
    child.kill()

    context = goes_on(world, goal)

    assert outcomes(goalmode, goal)[0] == ("shell", "success")
    assert world.marks() == 2
    assert [t["state"] for t in world.turns(goal)] == ["done", "lost", "done", "done"]
    assert world.turns(goal)[1]["usage"]["estimated"]
    assert world.now(goal).spent.turns == 3
    assert [w["exit_reason"] for w in world.inspect(goal)["wakeups"]] == ["INTERRUPTED", "CURRENT_TASK_DONE"]
    assert "INTERRUPTED" in context


def test_killed_in_a_tool(real_world: World, goalmode: Command) -> None:
    """B41, B43: of one reply, what ran is kept, what was running is interrupted, what had not begun is skipped."""
    world, word = real_world, odd_seconds()
    goal = world.goal(deliverables=["marks"])
    sleeps = {"command": f"echo x >> marks; touch started; sleep {word} & sleep {word}"}
    batch = [
        ("shell", {"command": "echo x >> marks"}),
        ("shell", sleeps),
        ("write_file", {"path": "b", "content": "b"}),
    ]
    world.provider.script(steps.tools(batch))
    child = goalmode.start("run", goal.uid)
    child.until((world.workspace / "started").exists, "the tool runs")
    child.kill()
    file = stores.content(world.store.url)

    seen = outcomes(goalmode, goal)
    shown, [listed] = goalmode.show(goal.uid), goalmode("list", "--json").json

    assert seen == [("shell", "success"), ("shell", "interrupted"), ("write_file", "skipped")]
    assert [(w["exit_reason"], w["running"]) for w in shown["wakeups"]] == [("INTERRUPTED", False)]
    assert (listed["last_exit_reason"], listed["running"]) == ("INTERRUPTED", False)
    assert stores.content(world.store.url) == file

    context = goes_on(world, goal)

    assert outcomes(goalmode, goal)[:3] == seen
    [told] = [line for line in context.splitlines() if f"sleep {word}" in line]
    assert "interrupted" in told
    assert world.marks() == 3
    assert not (world.workspace / "b").exists()
    assert running(word) == []


def test_killed_between_a_tool_and_its_outcome(
    real_world: World, goalmode: Command, children: Children
) -> None:
    """B41: the effect is there, its result is not: the call is interrupted for user and model, and not made again."""
    world = real_world
    goal = world.goal(deliverables=["marks"])
    world.provider.script(mark())
    children.wake(world, goal, death="before outcome").killed()

    seen = outcomes(goalmode, goal)
    context = goes_on(world, goal)

    assert seen == [("shell", "interrupted")]
    assert outcomes(goalmode, goal)[0] == ("shell", "interrupted")
    assert "interrupted" in context
    assert world.marks() == 1 + 1
    assert world.now(goal).spent.turns == 3


@pytest.mark.slow
def test_killed_before_anything_of_a_reply_was_stored(
    real_world: World, goalmode: Command, children: Children
) -> None:
    """The reply is lost and none of its calls ran; what it cost is charged as an estimate."""
    world = real_world
    goal = world.goal(deliverables=["marks"])
    world.provider.script(mark())
    children.wake(world, goal, death="before intent").killed()

    goes_on(world, goal)

    lost, *rest = world.turns(goal)
    assert (lost["state"], lost["calls"]) == ("lost", [])
    assert world.marks() == 1
    assert world.now(goal).spent.tokens == sum(t["usage"]["tokens"] for t in [lost, *rest])


def test_retries_carry_the_same_single_result(world: World) -> None:
    """B45: 500, 500 and a cut connection after a tool: the request is repeated, the tool is not."""
    goal = world.goal(deliverables=["marks"])
    down: Any = steps.status(500, {"error": {"message": "internal", "type": "server_error"}})
    cut = steps.cut(steps.text("half a sentence"), after_chars=6)
    world.provider.script(mark(), down, down, cut, complete())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.marks() == 1
    repeated = world.provider.requests[1:]
    assert len(repeated) == 4
    assert all(r["messages"] == repeated[0]["messages"] for r in repeated)
    assert len(results(repeated[0])) == 1
