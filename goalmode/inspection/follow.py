"""A goal's turns as they happen, read from the store again and again, while anything is to be expected of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import takewhile
from typing import Any

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.inspection.seen import runs
from goalmode.inspection.turns import turns
from goalmode.state import goals, reading, reading_turns
from goalmode.state.store import Store
from goalmode.state.tables import TurnState

POLL_SECONDS = 0.5
PAGE = 200
"""Turns that are read at once."""

BEGIN_WITH = 10
"""Turns from before that are shown first."""

Place = tuple[int, int]
"""Of a turn: its wakeup's number and its own."""


async def follow(
    store: Store,
    goal: Goal,
    *,
    wakeup: int | None = None,
    full: bool = False,
    last: int = BEGIN_WITH,
    poll_seconds: float = POLL_SECONDS,
) -> AsyncIterator[dict[str, Any]]:
    """The goal's turns, each once, when it is over; ends when no wakeup runs and none is due.

    Args:
        wakeup: only those of one wakeup; ends with it.
        full: with what was said.
        last: how many of those that are there already come first.

    Raises:
        UnknownGoal: it was deleted meanwhile.
    """
    place = _behind(store, goal, wakeup, last)
    while True:
        expected = expects(store, goal, wakeup=wakeup)  # Before the look, so that nothing slips in between.
        found = newer(store, goal, place, wakeup=wakeup, full=full)
        for turn in found:
            place = turn["wakeup"], turn["seq"]
            yield turn
        if not found and not expected:
            return
        if expected and len(found) < PAGE:
            await store.clock.sleep(poll_seconds)


def newer(
    store: Store,
    goal: Goal,
    place: Place,
    *,
    wakeup: int | None = None,
    full: bool = False,
    limit: int = PAGE,
) -> list[dict[str, Any]]:
    """The turns behind `place` that are over, oldest first: the last one of a wakeup that runs may not be yet."""
    with store.reading() as connection:
        last = reading.last_wakeup(connection, goal.id)
    running = last.seq if last is not None and runs(store, last) else None
    found = turns(store, goal, wakeup=wakeup, full=full, after=place, limit=limit)
    return list(takewhile(lambda turn: turn["state"] != TurnState.OPEN or turn["wakeup"] != running, found))


def expects(store: Store, goal: Goal, *, wakeup: int | None = None) -> bool:
    """Whether a wakeup runs or is due; with `wakeup`: whether that one runs or is still to come.

    Raises:
        UnknownGoal: it was deleted meanwhile.
    """
    with store.reading() as connection:
        now = goals.read(connection, goal.id)
        last = reading.last_wakeup(connection, goal.id)
    newest = 0 if last is None else last.seq
    if last is not None and runs(store, last):
        return wakeup is None or wakeup >= newest
    if wakeup is not None and wakeup <= newest:
        return False
    due = now.next_wakeup_at
    return now.status is GoalStatus.ACTIVE and (due is None or due <= store.clock.now())


def _behind(store: Store, goal: Goal, wakeup: int | None, last: int) -> Place:
    """The place of the turn before the newest `last` ones."""
    with store.reading() as connection:
        found = reading_turns.turns(connection, goal.id, wakeup=wakeup, limit=1, offset=last, newest=True)
    return (found[0].wakeup, found[0].seq) if found else (0, 0)
