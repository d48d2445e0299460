"""All goals, one row each."""

from __future__ import annotations

from typing import Any

from goalmode.domain.goal import Goal
from goalmode.domain.text import one_line
from goalmode.errors import StoreUnreadable
from goalmode.inspection.seen import iso, shown, status_of
from goalmode.state import goals, reading
from goalmode.state.goals import Unreadable
from goalmode.state.store import Store

TITLE = 200
"""Characters of an objective that a list holds."""

UNREADABLE = "UNREADABLE"


def listing(store: Store, *, limit: int | None = None, offset: int = 0) -> list[dict[str, Any]]:
    """The goals, newest first; one whose rows are of unknown shape is marked and hides no other."""
    return [store.clean_json(_row(store, goal)) for goal in goals.every(store, limit=limit, offset=offset)]


def _row(store: Store, goal: Goal | Unreadable) -> dict[str, Any]:
    if isinstance(goal, Unreadable):
        return {"id": goal.uid, "status": UNREADABLE, "running": False, "problem": goal.problem}
    try:
        with store.reading() as connection:
            last = reading.last_wakeup(connection, goal.id)
    except StoreUnreadable as error:
        return _row(store, Unreadable(goal.uid, f"goal {goal.uid}: {error}"))
    how = None if last is None else shown(store, last)
    running = how is not None and how.running
    return {
        "id": goal.uid,
        "status": status_of(goal, last, running=running).value,
        "running": running,
        "owner": last.lease.owner.name if last is not None and running else None,
        "title": one_line(goal.objective.strip(), TITLE),
        "turns": goal.spent.turns,
        "wakeups": goal.spent.wakeups,
        "tokens": goal.spent.tokens,
        "cost_micro": goal.spent.cost_micro,
        "last_exit_reason": None if how is None else how.exit_reason,
        "next_wakeup_at": iso(goal.next_wakeup_at),
        "created_at": iso(goal.created_at),
        "updated_at": iso(goal.updated_at),
    }
