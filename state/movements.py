"""The movement that a goal is in, and its change to another: written by the wakeup's owner only, under its fence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from goalmode.state import statements
from goalmode.state import tables as t
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed, guard


@dataclass(frozen=True, slots=True)
class Moved:
    """The goal goes on in the movement `to`.

    Attributes:
        reason: the model's words, or the ending that forced it.
        forced: by `default_next`, not by the model.
        found_nothing: what is left is a verification that found nothing to mend.
    """

    to: str
    reason: str
    forced: bool = False
    found_nothing: bool = False


def movement_of(connection: sa.Connection, goal: int) -> str:
    """The movement that the goal is in, for the row of a turn that happens in it."""
    return str(statements.look_up(connection, t.goals.c.movement, goal))


def move(store: Store, claimed: Claimed, moved: Moved, *, now: datetime) -> None:
    """Store that the goal goes on in another movement, where no turn's outcome does.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
    """
    with store.writing() as connection:
        guard(store, connection, claimed)
        store_move(store, connection, claimed, moved, now)


def store_move(
    store: Store, connection: sa.Connection, claimed: Claimed, moved: Moved, now: datetime
) -> None:
    """`move`, as part of a larger commit."""
    left = movement_of(connection, claimed.goal)
    connection.execute(
        sa.update(t.goals).where(t.goals.c.id == claimed.goal).values(movement=moved.to, updated_at=now)
    )
    data = {
        "from": left,
        "to": moved.to,
        "reason": moved.reason[:2000],
        "forced": moved.forced,
        "found_nothing": moved.found_nothing,
    }
    connection.execute(
        sa.insert(t.events).values(
            goal=claimed.goal, wakeup=claimed.seq, kind="transition", data=store.clean_json(data), at=now
        )
    )
