"""The page of one goal: its contract and state, what it asks, its wakeups and its newest turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.inspection import show, timeline, why
from goalmode.state import notes
from goalmode.state.store import Store
from goalmode.web import figures, live, turns
from goalmode.web.ask import Ask

WAKEUPS = 20
"""Wakeups on one page of a goal."""

TURNS = 12
"""The newest turns, which follow a running goal."""

PLOTTED = 500
"""Wakeups in the plots: the newest ones."""

RAISED = ("turns", "wakeups", "tokens", "active_seconds", "cost_micro")
"""The limits that are numbers, by the names of their fields."""

DONE = frozenset({"paused", "pausing", "resumed", "aborted", "aborting", "noted", "answered", "accepted"})
"""What a form may say that it has done."""

FIELDS = ("question", "option", "text", *RAISED, "deadline")
"""What the page's forms are filled in with again when one of them was refused."""

MAY = {
    "pause": frozenset(GoalStatus) - {GoalStatus.PAUSED, GoalStatus.DONE, GoalStatus.ABORTED},
    "resume": frozenset({GoalStatus.PAUSED, GoalStatus.BLOCKED, GoalStatus.EXHAUSTED, GoalStatus.ACTIVE}),
    "abort": frozenset(GoalStatus) - {GoalStatus.ABORTED},
    "note": frozenset(GoalStatus) - {GoalStatus.DONE, GoalStatus.ABORTED},
}
"""By a form's name: the statuses in which it is offered. Whether it is allowed is decided when it is sent."""


def page(ask: Ask) -> Response:
    with ask.stores.goal(ask.uid) as (store, goal):
        return answer(ask, store, goal)


def answer(
    ask: Ask,
    store: Store,
    goal: Goal,
    *,
    status: int = 200,
    problem: str = "",
    given: Mapping[str, str] | None = None,
) -> Response:
    """The page; where a form was refused, with the reason and what was given."""
    now = store.clock.now()
    mark = live.mark_of(store, goal)  # First: what changes while the page is made is then told by its stream.
    found = show.show(store, goal.id)
    number = ask.number("wakeups", 1) or 1
    wakeups = timeline.wakeups(store, goal.id, limit=WAKEUPS + 1, offset=(number - 1) * WAKEUPS)[::-1]
    with store.reading() as connection:
        told = notes.of_goal(connection, goal.id)
    newest = turns.newest(store, goal, TURNS)
    did = ask.request.query_params.get("did", "")
    return ask.page(
        "goal.html",
        status,
        goal=found,
        why=why.why(store, goal.id),
        spends=figures.spends(goal, now),
        until=figures.until(found["next_wakeup_at"], now),
        may={name for name, statuses in MAY.items() if GoalStatus(found["status"]) in statuses},
        limits=_raisable(goal),
        notes=told[::-1],
        wakeups=wakeups[:WAKEUPS],
        wakeups_page=number,
        older_wakeups=len(wakeups) > WAKEUPS,
        turns=newest[::-1],
        stream={"mark": mark, "after": _before_the_last(newest), "lang": ask.lang},
        did=did if did in DONE else "",
        problem=problem,
        stream_most=TURNS,
        given={**dict.fromkeys(FIELDS, ""), **(given or {})},
    )


def series(ask: Ask) -> Response:
    """What the plots show, as JSON."""
    with ask.stores.goal(ask.uid) as (store, goal):
        found = timeline.wakeups(store, goal.id, limit=PLOTTED)
    return JSONResponse(figures.series(found), headers={"Cache-Control": "no-store"})


def _before_the_last(newest: list[dict[str, Any]]) -> str:
    """Behind which turn the stream begins: the last one may still change."""
    return f"{newest[-2]['wakeup']}.{newest[-2]['seq']}" if len(newest) > 1 else ""


def _raisable(goal: Goal) -> list[dict[str, Any]]:
    """The limits that a resume can raise: those that are set."""
    limits = goal.limits
    known: dict[str, Any] = {
        "turns": limits.turns,
        "wakeups": limits.wakeups,
        "tokens": limits.tokens,
        "active_seconds": limits.active_seconds,
        "cost_micro": limits.cost_micro,
    }
    examples = {"active_seconds": "+1h", "cost_micro": "+1.50", "tokens": "+200k", "wakeups": "+10"}
    found = [
        {"name": name, "example": examples.get(name, "+50")}
        for name, value in known.items()
        if value is not None
    ]
    if limits.deadline is not None:
        found.append({"name": "deadline", "example": "2030-01-31T18:00"})
    return found
