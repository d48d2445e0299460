"""A goal as one JSON value, from which another store can take it over (`goalmode.orchestrator.transfer`)."""

from __future__ import annotations

from typing import Any

from goalmode.domain.exits import ExitReason
from goalmode.inspection.seen import shown
from goalmode.inspection.show import public
from goalmode.state import goals, locks, questions, reading, transfer, wake_sources
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store
from goalmode.state.transfer import Left

CUT_OFF = "it ran when the goal was exported"


def export(store: Store, goal_id: int) -> tuple[dict[str, Any], int]:
    """The goal with its whole history, and how many texts lost a secret on the way.

    A wakeup that runs, or whose process died, is in it as interrupted. What belongs to this store and this machine is
    left out; long-term memory belongs to the workspace, and is too.

    Raises:
        StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        questions.of_goal(connection, goal)
        wake_sources.of_goal(connection, goal)
        last = reading.last_wakeup(connection, goal_id)
        found = transfer.read(connection, goal_id, left=_left(store, goal_id, last))
    found["settings"] = {**found["settings"], "base_url": public(goal.settings.base_url)}
    cleaned = dict(store.clean_json(found))
    return cleaned, _differences(found, cleaned)


def _left(store: Store, goal: int, last: WakeupSeen | None) -> Left:
    if last is None or last.exit_reason is not None:
        return Left(ExitReason.INTERRUPTED.value, "")
    started = locks.started(store.lock_file(goal, last.fence))
    how = shown(store, last)
    if how.exit_reason is None:
        return Left(ExitReason.INTERRUPTED.value, CUT_OFF, started=started)
    pending = last.pending_exit or {}
    facts = pending.get("facts", {"owner": last.lease.owner.name})
    return Left(how.exit_reason, how.exit_detail, facts, started)


def _differences(before: Any, after: Any) -> int:
    match before:
        case dict():
            return sum(map(_differences, before.values(), after.values()))
        case list():
            return sum(map(_differences, before, after))
        case _:
            return int(before != after)
