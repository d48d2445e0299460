"""Keeping a store small and safe: a backup, space given back, and texts pruned that nobody needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from goalmode.domain.exits import GoalStatus
from goalmode.state import bodies
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store

FINISHED = (GoalStatus.DONE, GoalStatus.ABORTED)
"""A goal that is blocked or out of budget may be resumed, and is not finished."""

PRUNED = "pruned"
"""Kind of the event that says that bodies of a goal are missing for a reason."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was taken away: texts of so many goals, and the bytes that they took."""

    goals: int = 0
    bodies: int = 0
    bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(self.goals + other.goals, self.bodies + other.bodies, self.bytes + other.bytes)


def backup(store: Store, target: Path) -> int:
    """Write the whole store to a new file, for its user alone, while others go on writing; returns its bytes.

    Raises:
        NotAllowed: the store is on a server, which has tools of its own for that.
        StoreError: the file is there already, or cannot be written; then there is none afterwards.
    """
    store.database.copy_to(target)
    return target.stat().st_size


def vacuum(store: Store) -> tuple[int, int]:
    """Give the space back that nothing uses any more; returns the bytes that the store took before and takes now."""
    before = store.database.size()
    store.database.vacuum()
    return before, store.database.size()


def prune(store: Store, *, before: datetime, now: datetime) -> Pruned:
    """Take away the texts of goals that were finished before a time: contexts, replies, results, ends of outputs.

    What was done, decided and counted stays, each goal by itself is one commit, and one that is open again by then is
    left whole.
    """
    old = (t.goals.c.status.in_(FINISHED), t.goals.c.updated_at < before)
    with store.reading() as connection:
        found = connection.execute(sa.select(t.goals.c.id).where(*old).order_by(t.goals.c.id)).scalars().all()
    total = Pruned()
    for goal in found:
        with store.writing(durable=False) as connection:
            lock_goal(connection, goal)
            still = connection.execute(sa.select(t.goals.c.id).where(t.goals.c.id == goal, *old)).first()
            total += Pruned() if still is None else _prune(connection, goal, now)
    return total


def _prune(connection: sa.Connection, goal: int, now: datetime) -> Pruned:
    named = t.bodies.c.id.in_(bodies.of_goal(goal))
    size = sa.func.coalesce(sa.func.sum(sa.func.length(t.bodies.c.data)), 0)
    count, taken = connection.execute(sa.select(sa.func.count(), size).where(named)).one()
    if not count:
        return Pruned()
    connection.execute(sa.delete(t.bodies).where(named))
    data = {"bodies": int(count), "bytes": int(taken)}
    connection.execute(sa.insert(t.events).values(goal=goal, kind=PRUNED, data=data, at=now))
    return Pruned(1, int(count), int(taken))
