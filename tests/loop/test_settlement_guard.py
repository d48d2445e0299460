"""When a task settles: both sides of each boundary, without a store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goalmode.domain.budget import Spent
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.memory import EARLIEST_TURN, SETTLEMENT_TURNS, SettlementState
from goalmode.loop.guards.settlement import settles, too_early, will_settle
from tests.context.builders import make_goal

DONE = Exit(ExitReason.CURRENT_TASK_DONE)
SPENT = Exit(ExitReason.GOAL_BUDGET_EXHAUSTED)


def goal(turns: int = SETTLEMENT_TURNS, *, before: int = 0, **changes: object) -> Goal:
    """A goal with so many turns in its stretch, and some before that."""
    made = make_goal(**changes)  # type: ignore[arg-type]
    return replace(made, spent=Spent(turns=before + turns), stretch_from=before)


@pytest.mark.parametrize("before", [0, 100])
@pytest.mark.parametrize(
    ("turns", "expected"), [(0, False), (14, False), (15, True), (16, True), (900, True)]
)
def test_the_boundary_is_fifteen_of_the_stretch(turns: int, before: int, expected: bool) -> None:
    """`>= 15`, counted from the goal's creation or its last reopening."""
    assert settles(goal(turns, before=before), DONE, wrapped_up=False) is expected


@pytest.mark.parametrize("reason", [r for r in ExitReason if r is not ExitReason.CURRENT_TASK_DONE])
@pytest.mark.parametrize("wrapped_up", [False, True])
def test_only_a_claim_that_stands_settles(reason: ExitReason, wrapped_up: bool) -> None:
    """However a goal with an end of its own stops otherwise, it does not settle."""
    assert not settles(goal(), Exit(reason), wrapped_up=wrapped_up)


@pytest.mark.parametrize("state", [s for s in SettlementState if s is not SettlementState.NONE])
def test_once_in_a_stretch(state: SettlementState) -> None:
    """Whatever came of it, it is not begun again."""
    assert not settles(goal(settlement=state), DONE, wrapped_up=False)
    assert not will_settle(goal(settlement=state, until_budget=True))


@pytest.mark.parametrize("exempt", [{"user_tools": False}, {"autonomous": True}])
def test_exemptions(exempt: dict[str, bool]) -> None:
    """No tools, or nobody who attends to it: no settlement, and nothing is kept back for it."""
    assert not settles(goal(**exempt), DONE, wrapped_up=False)
    assert not settles(goal(until_budget=True, **exempt), SPENT, wrapped_up=True)
    assert not will_settle(goal(until_budget=True, **exempt))


@pytest.mark.parametrize(
    ("exit", "wrapped_up", "expected"),
    [
        (SPENT, True, True),
        (SPENT, False, False),
        (DONE, False, False),
        (Exit(ExitReason.YIELDED), True, False),
    ],
)
def test_goals_until_their_budget_settle_behind_the_wrap_up(
    exit: Exit, wrapped_up: bool, expected: bool
) -> None:
    """Only there, and only if it was made."""
    assert settles(goal(until_budget=True), exit, wrapped_up=wrapped_up) is expected


@pytest.mark.parametrize(("turns", "expected"), [(12, False), (13, True), (500, True)])
def test_what_is_kept_for_it_is_kept_in_time(turns: int, expected: bool) -> None:
    """From the turn on after which one turn of work and the wrap-up make fifteen."""
    assert will_settle(goal(turns, until_budget=True)) is expected
    assert not will_settle(goal(turns))


def test_nothing_is_kept_once_the_wrap_up_was_made() -> None:
    """Behind it there is no other, until the limit is raised."""
    wrapped = replace(goal(until_budget=True), wrapped_limits_revision=1)

    assert not will_settle(wrapped)
    assert will_settle(replace(wrapped, limits_revision=2))


@pytest.mark.parametrize(("turns", "early"), [(1, True), (9, True), (10, False), (11, False)])
def test_the_explicit_call_is_possible_from_turn_ten_on(turns: int, early: bool) -> None:
    """The refusal says which turn it is, and from which on it is possible."""
    said = too_early(goal(turns, before=40))

    assert bool(said) is early
    if early:
        assert f"turn {turns} " in said
        assert f"turn {EARLIEST_TURN} on" in said
