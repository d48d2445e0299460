"""Why a goal is not woken just now: a value, and the look that gives it. A skip is no ending."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from goalmode.domain.exits import GoalStatus, SkipReason
from goalmode.domain.goal import Goal
from goalmode.orchestrator.questions import by_itself_at
from goalmode.state.store import Store

_STATUS_SKIPS = {
    GoalStatus.WAITING_USER: SkipReason.WAITING,
    GoalStatus.PAUSED: SkipReason.PAUSED,
    GoalStatus.BLOCKED: SkipReason.BLOCKED,
    GoalStatus.EXHAUSTED: SkipReason.EXHAUSTED,
    GoalStatus.DONE: SkipReason.DONE,
    GoalStatus.ABORTED: SkipReason.ABORTED,
}


@dataclass(frozen=True, slots=True)
class Skip:
    """Why the goal was not woken just now. Nothing is stored of it."""

    reason: SkipReason
    detail: str
    due_at: datetime | None = None


def refusal(store: Store, goal: Goal, *, only_if_due: bool = True) -> Skip | None:
    """Why the goal, which nobody runs, would not be woken now; None if it would. Nothing is written."""
    if goal.status is GoalStatus.WAITING_USER:
        return _waiting(store, goal)
    if goal.status is not GoalStatus.ACTIVE:
        return Skip(_STATUS_SKIPS[goal.status], goal.status_detail or f"the goal is {goal.status}")
    if not store.owner.reaches(goal.host_label):
        return other_host(goal)
    due = goal.next_wakeup_at
    if only_if_due and due is not None and due > store.clock.now():
        return Skip(
            SkipReason.NOT_DUE, f"due at {due.isoformat(timespec='seconds')} ({goal.wake_reason})", due
        )
    return None


def superseded() -> Skip:
    """Something was faster than the claim."""
    return Skip(SkipReason.SUPERSEDED, "somebody else woke or changed the goal at the same moment")


def _waiting(store: Store, goal: Goal) -> Skip | None:
    """Why a goal that waits for the user would not be woken now; None once a question's default stands."""
    at = by_itself_at(store, goal)
    if at is not None and not store.owner.reaches(goal.host_label):
        return other_host(goal)
    if at is not None and at <= store.clock.now():
        return None
    return Skip(SkipReason.WAITING, goal.status_detail or "the goal waits for an answer", at)


def other_host(goal: Goal) -> Skip:
    """Its workspace cannot be reached from here."""
    detail = f"its workspace is on {goal.host_label}; set GOALMODE_HOST_LABEL if this is that machine"
    return Skip(SkipReason.OTHER_HOST, detail)


def facts_of(skip: Skip) -> dict[str, Any]:
    due = skip.due_at.isoformat() if skip.due_at else None
    return {"skipped": skip.reason.value, "detail": skip.detail, "next_wakeup_at": due}
