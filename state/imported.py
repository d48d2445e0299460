"""What was done for a goal before it came into this store: counted and kept like what is done in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.work import WorkState
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.store import Store


@dataclass(frozen=True, slots=True)
class Earlier:
    """The part of a goal's past that another engine kept.

    Attributes:
        wakeups: that it has had; they count towards its limit.
        work: what is known of the work; its items are not taken.
    """

    wakeups: int = 0
    work: WorkState = WorkState()


def write(store: Store, connection: sa.Connection, goal: int, earlier: Earlier, *, now: datetime) -> None:
    """Store it with the goal that is just being created."""
    connection.execute(sa.update(t.goals).where(t.goals.c.id == goal).values(spent_wakeups=earlier.wakeups))
    if earlier.work != WorkState():
        body = store.clean_json(mapping.checkpoint_to_json(earlier.work))
        connection.execute(sa.insert(t.checkpoints).values(goal=goal, wakeup=0, body=body, at=now))
