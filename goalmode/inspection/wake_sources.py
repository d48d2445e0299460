"""What wakes a goal: its wake sources, and what its last ending left for it. Times are given with their offsets."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.wake import ASKED_TIME, BACK_OFF, QUOTA_RESET, At, Cron, GoalEnd, Spec, WakeSource
from goalmode.inspection.seen import iso
from goalmode.state import questions
from goalmode.state import wake_sources as stored
from goalmode.state.store import Store

_BY_RULE = {ASKED_TIME: ("at", "model"), QUOTA_RESET: ("quota", "provider"), "quota": ("quota", "provider")}
"""Wake reasons that an ending leaves: the kind of source, and whose it is."""


def of_goal(
    store: Store, goal: Goal, *, only_open: bool = False, running: bool = False
) -> list[dict[str, Any]]:
    """All that wakes the goal, or did. What follows from its last ending has no id, and nothing is stored of it twice.

    Raises:
        StoreUnreadable: a source of a shape that this code does not know.
    """
    with store.reading() as connection:
        sources = stored.of_goal(connection, goal, only_open=only_open)
        asked = questions.open_of(connection, goal) if goal.status is GoalStatus.WAITING_USER else []
    found = [described(source) for source in sources]
    for question in asked:
        what = f"answer to {question.label}"
        found.append(_implied("answer", "user", what, question.asking.default_at))
    return (
        found
        if running or goal.status is not GoalStatus.ACTIVE
        else [*found, *_by_rule(goal, sources, store)]
    )


def described(source: WakeSource) -> dict[str, Any]:
    """A stored source."""
    due, ceiling = source.due_at, source.ceiling_at
    return {
        "id": source.label,
        "kind": source.spec.kind.value,
        "by": "user",
        "what": str(source.spec),
        "status": source.status.value,
        "due_at": _in_its_zone(due, source.spec),
        "ceiling_at": iso(ceiling),
        "fired_at": iso(source.fired_at),
        "created_at": iso(source.created_at),
        **_details(source.spec),
    }


def _by_rule(goal: Goal, sources: list[WakeSource], store: Store) -> list[dict[str, Any]]:
    """What the goal's last ending, or a user, left for its next wakeup, unless that is one of its sources."""
    due, reason = goal.next_wakeup_at, goal.wake_reason
    if due is None or any(reason == source.awaited for source in sources):
        return []
    if reason in _BY_RULE:
        kind, by = _BY_RULE[reason]
        return [_implied(kind, by, reason, due)]
    if reason == BACK_OFF:
        return [_implied("back-off", "rule", reason, due)]
    return [_implied("now" if due <= store.clock.now() else "at", "rule", reason, due)]


def _implied(kind: str, by: str, what: str, due: datetime | None) -> dict[str, Any]:
    return {
        "id": None,
        "kind": kind,
        "by": by,
        "what": what,
        "status": "open",
        "due_at": iso(due),
        "ceiling_at": None,
        "fired_at": None,
        "created_at": None,
    }


def _details(spec: Spec) -> dict[str, Any]:
    """The fields of its kind, by which a program knows it."""
    given = {k: v for k, v in stored.spec_to_json(spec).items() if k != "v"}
    if isinstance(spec, GoalEnd):
        return {"goal": spec.uid}
    return given


def _in_its_zone(due: datetime | None, spec: Spec) -> str | None:
    """A time as its user thinks of it: in the zone of a cron line, in the offset that was given."""
    match spec:
        case Cron(_, zone) if due is not None:
            with suppress(KeyError, ValueError, OSError):  # Another machine may know less zones.
                return due.astimezone(ZoneInfo(zone)).isoformat()
            return iso(due)
        case At(time):
            return time.isoformat()
        case _:
            return iso(due)
