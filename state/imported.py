"""What was done for a goal before it came into this store: counted and kept like what is done in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.work import MAX_WRITTEN, Checkpoint, WorkState
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store


@dataclass(frozen=True, slots=True)
class Earlier:
    """The part of a goal's past that another engine kept.

    Attributes:
        wakeups: that it has had; they count towards its limit.
        work: what is known of the work.
    """

    wakeups: int = 0
    work: WorkState = WorkState()


def write(store: Store, connection: sa.Connection, goal: int, earlier: Earlier, *, now: datetime) -> None:
    """Store it with the goal that is just being created."""
    connection.execute(sa.update(t.goals).where(t.goals.c.id == goal).values(spent_wakeups=earlier.wakeups))
    if earlier.work != WorkState():
        _write_work(store, connection, goal, earlier.work, now)


def take_over(store: Store, goal: int, work: WorkState, *, now: datetime) -> bool:
    """Store what another engine holds with a goal for which nothing has been saved and that nobody wakes just now.

    Files that are known already stay. Returns whether it was stored.
    """
    with store.writing() as connection:
        lock_goal(connection, goal)
        free = sa.select(t.goals.c.uid).where(
            t.goals.c.id == goal,
            ~sa.exists().where(t.wakeups.c.goal == goal, t.wakeups.c.exit_reason.is_(None)),
            ~sa.exists().where(t.work_items.c.goal == goal),
        )
        uid = connection.execute(free).scalar()
        if uid is None:
            return False
        newest = (
            sa.select(t.checkpoints).where(t.checkpoints.c.goal == goal).order_by(t.checkpoints.c.id.desc())
        )
        row = connection.execute(newest.limit(1)).first()
        known = WorkState() if row is None else mapping.checkpoint_from_json(uid, row.wakeup, row.body)
        if known.checkpoint != Checkpoint():
            return False
        written = tuple(dict.fromkeys(work.written + known.written))[-MAX_WRITTEN:]
        _write_work(store, connection, goal, replace(work, found=known.found, written=written), now)
        return True


def _write_work(store: Store, connection: sa.Connection, goal: int, work: WorkState, now: datetime) -> None:
    body = store.clean_json(mapping.checkpoint_to_json(work))
    connection.execute(sa.insert(t.checkpoints).values(goal=goal, wakeup=0, body=body, at=now))
    for item in work.items:
        row = mapping.item_to_row(item, store.clean)
        connection.execute(sa.insert(t.work_items).values(goal=goal, **row))
