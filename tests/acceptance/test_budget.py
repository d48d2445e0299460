"""Rows B21 to B29: one formula for what is spent, limits that hold, and a stop that charges nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode import Exit, ExitReason, GoalStatus, Limits
from goalmode.errors import StoreUnreadable
from goalmode.orchestrator.goals import resume_goal
from goalmode.testing import steps
from goalmode.testing.steps import ABSENT, usage
from tests import stores
from tests.acceptance.processes import Children
from tests.acceptance.world import World, checkpoint, complete, mark, told, write


def test_totals_are_the_sum_of_what_was_served(real_world: World, children: Children) -> None:
    """B21: six requests over three wakeups and two processes cost exactly what they cost, nothing twice."""
    world = real_world
    goal = world.goal(max_turns=2)
    each = usage(prompt=1000, completion=60)
    world.provider.script(*[mark(usage=each), checkpoint(key_info="saved", usage=each)] * 3)

    world.wake(goal)
    children.wake(world, goal, death="after close").killed()
    world.wake(goal)

    shown = world.inspect(goal)
    assert len(world.provider.requests) == 6
    assert shown["spent"]["tokens"] == 6360
    assert sum(w["tokens"] for w in shown["wakeups"]) == 6360
    assert sum(t["usage"]["tokens"] for t in world.turns(goal)) == 6360
    assert (shown["spent"]["turns"], shown["spent"]["wakeups"]) == (6, 3)


def test_the_last_turn_of_a_budget_may_complete(world: World) -> None:
    """B23: three turns are enough for tool, tool, completion."""
    goal = world.goal(deliverables=["a.txt"], limits=Limits(turns=3))
    world.provider.script(write("a.txt", "a"), mark(), complete())

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    assert world.now(goal).spent.turns == 3


def test_a_turn_budget_is_worth_its_turns(world: World) -> None:
    """B23: tools for ever make exactly three requests."""
    goal = world.goal(limits=Limits(turns=3))
    world.provider.script(then=mark())

    assert world.wake(goal).reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert len(world.provider.requests) == 3


@pytest.mark.parametrize("limits", [{"turns": 2}, {"tokens": 2 * 5_060}], ids=str)
def test_nothing_left_is_nothing(world: World, limits: dict[str, int]) -> None:
    """B25 (a): a goal that used exactly its budget makes no request."""
    goal = world.goal(limits=Limits(turns=2), max_turns=2)
    each = usage(prompt=5_000, completion=60)
    world.provider.script(checkpoint(key_info="a", usage=each), checkpoint(key_info="b", usage=each))
    world.wake(goal)
    resume_goal(world.store, world.now(goal), limits=Limits(**limits))
    assert world.now(goal).spent.tokens == 2 * 5_060

    ending = world.wake(goal)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert len(world.provider.requests) == 2


@pytest.mark.parametrize("kind", ["turns", "wakeups", "tokens", "active_seconds"])
def test_zero_is_not_unlimited(world: World, kind: str) -> None:
    """B25 (b): a budget of 0 makes no request."""
    goal = world.goal(limits=Limits(**{kind: 0}))

    ending = world.wake(goal)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert ending.facts["limit"] == kind
    assert world.provider.requests == []


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("limits", '{"v": 1, "turns": "many"}', "limits.turns"),
        pytest.param("spent_output", "some", "spent_output", marks=pytest.mark.sqlite),
    ],
)
def test_a_budget_that_is_no_number_is_told(world: World, column: str, value: str, named: str) -> None:
    """B25 (c): text in a budget's column is an error that names the field, never "unlimited"."""
    goal = world.goal(limits=Limits(turns=5))
    stores.rows(world.store.url, f"UPDATE goals SET {column} = ?", value)

    with pytest.raises(StoreUnreadable, match=named):
        world.wake(goal)
    assert world.provider.requests == []


def test_one_formula_everywhere(world: World) -> None:
    """B27: the gate, the total, the turns' rows and the report agree to the token (the row's figures times ten)."""
    goal = world.goal(limits=Limits(tokens=20_000))
    world.provider.script(then=mark(usage=usage(prompt=10_000, completion=500, cached=8_000)))

    ending = world.wake(goal)

    shown, rows = world.inspect(goal), world.turns(goal)
    served = len(world.provider.requests)
    total = served * 2_500
    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert ending.facts["limit"] == "tokens"
    assert shown["spent"]["tokens"] == shown["wakeups"][0]["tokens"] == total
    assert sum(row["usage"]["tokens"] for row in rows) == total
    replies = [e.data["spent_tokens"] for e in world.events if e.kind == "reply"]
    assert replies[-1] <= total <= 20_000


def test_missing_usage_is_estimated_and_ends_the_budget(world: World) -> None:
    """B28: answers without usage, with null and with zeros are charged an estimate, flagged as one."""
    goal = world.goal(limits=Limits(tokens=30_000), max_turns=100)
    said = "Several words about the report. " * 120
    none: list[Any] = [ABSENT, None, usage(prompt=0, completion=0)]
    world.provider.follow(lambda request, number: mark(said, usage=none[number % 3]))

    ending = world.wake(goal)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert 3 <= len(world.provider.requests) <= 12
    rows = world.turns(goal)
    assert all(row["usage"]["tokens"] > 0 and row["usage"]["estimated"] for row in rows)
    assert sum(row["usage"]["tokens"] for row in rows) == world.now(goal).spent.tokens <= 30_000


def test_a_stop_between_turns_leaves_nothing_behind(world: World) -> None:
    """B29: no third request, nothing charged for it, and no recovery text in the next wakeup's context."""
    goal = world.goal()
    world.provider.script(mark(), steps.text("All is done."))
    asked: list[Exit] = []

    def stops(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            asked.append(Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"}))

    ending = world.wake(goal, on_event=stops, stop=lambda: asked[0] if asked else None)
    stopped = world.now(goal)
    resume_goal(world.store, stopped)
    world.provider.script(*[steps.text("")] * 3)
    world.wake(goal)

    assert ending.reason is ExitReason.USER_ABORTED
    assert (stopped.status, stopped.spent.turns) == (GoalStatus.PAUSED, 2)
    reminder = "your reply held no tool call"
    assert reminder not in told(world.provider.requests[1])
    assert reminder not in told(world.provider.requests[2])
    assert reminder in told(world.provider.requests[3])
    assert len(world.provider.requests) == 2 + 3
