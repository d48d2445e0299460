"""A wakeup as it is to be shown: one that nobody closed either runs, or its process is gone and it is interrupted."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import Goal
from goalmode.errors import StoreUnreadable
from goalmode.state import reading
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store


def last_wakeup(connection: sa.Connection, goal: int) -> WakeupSeen | None:
    newest = reading.wakeups(connection, goal, newest=1)
    return newest[0] if newest else None


def runs(store: Store, wakeup: WakeupSeen) -> bool:
    """Whether its process lives and has given a sign of life within the lease."""
    return wakeup.exit_reason is None and not wakeup.lease.is_void(store.clock.lease_ms(), store.owner)


def shown_reason(store: Store, wakeup: WakeupSeen) -> str | None:
    """The exit reason; None while it runs."""
    if wakeup.exit_reason is None:
        return None if runs(store, wakeup) else ExitReason.INTERRUPTED.value
    return wakeup.exit_reason


def shown_detail(store: Store, wakeup: WakeupSeen) -> str:
    if wakeup.exit_reason is None and not runs(store, wakeup):
        return f"the process {wakeup.lease.owner.name} ended"
    return wakeup.exit_detail


def known_reason(goal: Goal, wakeup: WakeupSeen, word: str) -> ExitReason:
    """The exit reason that a stored word means.

    Raises:
        StoreUnreadable: a word that this code does not know.
    """
    try:
        return ExitReason(word)
    except ValueError:
        raise StoreUnreadable(
            f"goal {goal.uid}: wakeup {wakeup.seq}: exit_reason is {word!r}, which this goalmode does not know"
        ) from None


def iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
