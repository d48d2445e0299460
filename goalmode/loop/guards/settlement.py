"""When a task settles into long-term memory: once, as it completes, if it took long enough. Pure."""

from __future__ import annotations

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.memory import EARLIEST_TURN, SETTLEMENT_TURNS, SettlementState


def settles(goal: Goal, exit: Exit, *, wrapped_up: bool) -> bool:
    """Whether a wakeup that is about to end with `exit` settles first.

    Args:
        goal: as stored, the turn that led to the ending counted.
        wrapped_up: that turn was the wrap-up. Goals that run until their budget settle then, and not at a claim.
    """
    if not _may_settle(goal) or goal.stretch_turns < SETTLEMENT_TURNS:
        return False
    if goal.settings.until_budget:
        return wrapped_up and exit.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    return exit.reason is ExitReason.CURRENT_TASK_DONE


def will_settle(goal: Goal) -> bool:
    """Whether the wrap-up of a goal is followed by settlement, if it comes after one turn more."""
    wrapped_up = goal.wrapped_limits_revision >= goal.limits_revision
    due = goal.settings.until_budget and not wrapped_up and _may_settle(goal)
    return due and goal.stretch_turns + 2 >= SETTLEMENT_TURNS


def too_early(goal: Goal) -> str:
    """Why a model that wants to settle by itself has to wait; empty if it need not.

    Args:
        goal: as stored, the turn in which it asks counted.
    """
    turn = goal.stretch_turns
    if turn >= EARLIEST_TURN:
        return ""
    return f"too early: this is turn {turn} of the task, and it is possible from turn {EARLIEST_TURN} on"


def _may_settle(goal: Goal) -> bool:
    settings = goal.settings
    return settings.user_tools and not settings.autonomous and goal.settlement is SettlementState.NONE
