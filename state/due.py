"""What is to be done now, over all goals: asked again and again, so every question has an index of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.exits import GoalStatus
from goalmode.domain.questions import QuestionStatus
from goalmode.state import tables as t
from goalmode.state.columns import written
from goalmode.state.owner import Lease, Owner
from goalmode.state.shape import each
from goalmode.state.store import Store

PAGE = 200
"""Rows that are read at a time while goals that are passed over are skipped."""

_G, _W = t.goals.c, t.wakeups.c

_ACTIVE = written("goals.status", GoalStatus.ACTIVE)
_ASKED = written("questions.status", QuestionStatus.OPEN)
_UNCLAIMED = ~sa.exists().where(_W.goal == _G.id, _W.exit_reason.is_(None))


@dataclass(frozen=True, slots=True)
class Due:
    """A goal that somebody should wake.

    Attributes:
        since: when it became due; None where that is not known.
        why: the reason that is stored for it.
        dead: the owner of its last wakeup died, or gave no more signs of life.
    """

    goal: int
    uid: str
    since: datetime | None
    why: str
    dead: bool = False


def goals_due(
    store: Store, labels: Collection[str], now: datetime, *, limit: int, passing: Collection[int] = ()
) -> list[Due]:
    """The goals that have been due for longest and that nobody runs, at most `limit`, without those in `passing`."""
    found: list[Due] = []
    for due in _pages(store, labels, now):
        if len(found) >= limit:
            break
        if due.goal not in passing:
            found.append(due)
    return found


def _pages(store: Store, labels: Collection[str], now: datetime) -> Iterator[Due]:
    beyond: sa.ColumnElement[bool] = sa.true()
    while True:
        with store.reading() as connection:
            rows = connection.execute(due_statement(labels, now).where(beyond).limit(PAGE)).all()
        for row in rows:
            yield Due(row.id, row.uid, _time(row.since), row.wake_reason)
        if len(rows) < PAGE:
            return
        last = t.goals.alias("last")
        place = sa.select(last.c.next_wakeup_at, last.c.id).where(last.c.id == rows[-1].id)
        beyond = sa.tuple_(_G.next_wakeup_at, _G.id) > place.scalar_subquery()


def due_statement(labels: Collection[str], now: datetime) -> sa.Select[Any]:
    """Due goals, in the order of `ix_goals_due`."""
    # The time is read as text: one that is stored and is none must not hide the other goals.
    since = sa.cast(_G.next_wakeup_at, sa.String).label("since")
    return (
        sa.select(_G.id, _G.uid, since, _G.wake_reason)
        .where(_ACTIVE, _G.next_wakeup_at <= now, _G.host_label.in_(labels), _UNCLAIMED)
        .order_by(_G.next_wakeup_at, _G.id)
    )


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def abandoned(store: Store, labels: Collection[str]) -> tuple[list[Due], list[str]]:
    """Goals with a wakeup whose owner is dead or gives no more signs of life, whatever their status is.

    And what is wrong with open wakeups of unknown shape, which hide no others.
    """
    open_ones = sa.select(
        _W.id, _W.goal, _W.seq, _W.owner, _W.host_label, _W.pid, _W.pid_start, _W.boot_id, _W.lease_ms
    ).where(_W.exit_reason.is_(None))
    with store.reading() as connection:
        rows = each(connection, open_ones, lambda row: f"wakeup {row.seq}", _W.id, _W.goal)
        if not rows:
            return [], []
        ours = sa.select(_G.id, _G.uid).where(
            _G.id.in_([row.goal for row, _ in rows]), _G.host_label.in_(labels)
        )
        uids = {row.id: row.uid for row in connection.execute(ours)}
    running = [row for row, fault in rows if fault is None]
    faults = [f"goal {uids[row.goal]}: {fault}" for row, fault in rows if fault and row.goal in uids]
    found, now_ms = [], store.lease_ms()
    for row in sorted(running, key=lambda row: row.id):
        owner = Owner(row.owner, row.host_label, row.pid, row.pid_start, row.boot_id)
        if row.goal in uids and store.is_void(Lease(owner, row.lease_ms), now_ms=now_ms):
            why = f"{owner.name} ended in wakeup {row.seq}"
            found.append(Due(row.goal, uids[row.goal], None, why, dead=True))
    return found, faults


def defaults_due(store: Store, labels: Collection[str], now: datetime) -> list[Due]:
    """Goals that wait for the user, with an open question whose default answers by now."""
    first = sa.func.min(t.questions.c.default_at)  # Read as text, as above.
    with store.reading() as connection:
        rows = connection.execute(
            sa.select(_G.id, _G.uid, sa.cast(first, sa.String).label("at"))
            .join(t.questions, t.questions.c.goal == _G.id)
            .where(
                _ASKED,
                t.questions.c.default_at <= now,
                _G.host_label.in_(labels),
                _G.status == GoalStatus.WAITING_USER,
                _UNCLAIMED,
            )
            .group_by(_G.id, _G.uid)
            .order_by(first)
        ).all()
    return [Due(row.id, row.uid, _time(row.at), "default") for row in rows]
