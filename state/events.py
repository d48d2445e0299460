"""What happened to a goal beside its turns: appended, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed


def note(
    store: Store,
    connection: sa.Connection,
    goal: int,
    kind: str,
    data: Mapping[str, Any],
    *,
    wakeup: int | None = None,
    now: datetime,
) -> None:
    """Append an event, as part of a larger commit. `wakeup`: the number of the one that it belongs to."""
    cleaned = store.clean_json(data)
    connection.execute(sa.insert(t.events).values(goal=goal, wakeup=wakeup, kind=kind, data=cleaned, at=now))


def fenced(store: Store, claimed: Claimed, now: datetime) -> None:
    """The one thing that an owner may still write once another has the goal: that it was late."""
    data = {"owner": store.owner.name, "wakeup": claimed.seq, "fence": claimed.fence}
    with store.writing() as connection:
        lock_goal(connection, claimed.goal)
        if connection.execute(sa.select(t.goals.c.id).where(t.goals.c.id == claimed.goal)).first() is None:
            return  # Deleted meanwhile.
        note(store, connection, claimed.goal, "fenced", data, wakeup=claimed.seq, now=now)
