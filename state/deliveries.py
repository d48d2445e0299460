"""Deliveries: goals that are issued to workers on several machines, and what one that arrives is still good for.

A delivery is a number of its goal. The newest may claim the goal, once; all older ones come too late. Whoever issues
takes the goals that nobody else is just issuing, so that a second one at the same moment finds nothing left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from goalmode.domain.exits import GoalStatus
from goalmode.domain.questions import QuestionStatus
from goalmode.state import tables as t
from goalmode.state.columns import written
from goalmode.state.due import Due, due_statement
from goalmode.state.owner import Lease, Owner
from goalmode.state.store import Store
from goalmode.state.wakeups import open_wakeup

UNCLAIMED_SECONDS = 60.0
"""After so long a delivery that has claimed nothing counts as lost: a worker that dies with it leaves nothing else."""

AHEAD = 100
"""Deliveries that are on the way at once: enough to keep workers busy, few enough to issue those of a backlog again."""

_G, _W, _Q = t.goals.c, t.wakeups.c, t.questions.c

_ASKED = written("questions.status", QuestionStatus.OPEN)
_UNCLAIMED = ~sa.exists().where(_W.goal == _G.id, _W.exit_reason.is_(None))


@dataclass(frozen=True, slots=True)
class Delivery:
    """A goal on its way to a worker.

    Attributes:
        number: of this goal's deliveries.
        label: the host label that a worker must serve.
        replaces: the delivery before it was lost, or its worker died: what is left of it is of no use.
    """

    goal: int
    number: int
    label: str
    replaces: bool


Enqueue = Callable[[Any, Delivery], None]
"""Hands a delivery to whatever carries it, in the transaction of the connection that it is given."""


def issue(store: Store, labels: Collection[str], enqueue: Enqueue, *, ahead: int = AHEAD) -> list[Delivery]:
    """Issue the goals of these host labels that somebody should wake and that are not on their way, oldest first.

    They are those whose owner died or gives no more signs of life, those whose question is answered by its default,
    and those that are due; also if a delivery was issued, but has claimed nothing for `UNCLAIMED_SECONDS`. The numbers
    and what `enqueue` writes are one transaction.

    Args:
        ahead: how many may be on the way at once.

    Raises:
        StoreError: nothing is issued.
    """
    with store.writing() as connection:
        now = _now(store, connection)
        lost = now - timedelta(seconds=UNCLAIMED_SECONDS)
        dead = _dead(store, connection)
        room = ahead - _on_the_way(connection, labels, lost)
        issued: list[Delivery] = []
        for wanted in (_of(dead), _by_default(now), due_statement(labels, now)):
            room -= len(rows := _taken(connection, wanted, labels, lost, room))
            issued += [
                Delivery(
                    row.id, row.delivery + 1, row.host_label, row.issued_at is not None or row.id in dead
                )
                for row in rows
            ]
        if issued:
            connection.execute(
                sa.update(t.goals)
                .where(_G.id.in_([one.goal for one in issued]))
                .values(delivery=_G.delivery + 1, issued_at=now)
            )
        for one in issued:
            enqueue(connection, one)
        return issued


def arrived(store: Store, goal: int, number: int) -> Due | None:
    """The goal that a delivery is for; None if the delivery is not the newest, or has claimed the goal already."""
    with store.reading() as connection:
        row = connection.execute(
            sa.select(_G.uid, _G.next_wakeup_at, _G.wake_reason).where(
                _G.id == goal, _G.delivery == number, _G.issued_at.is_not(None)
            )
        ).first()
        running = open_wakeup(connection, goal)
    if row is None:
        return None
    if running is None:
        return Due(goal, row.uid, row.next_wakeup_at, row.wake_reason)
    why = f"{running.lease.owner.name} ended in wakeup {running.seq}"
    return Due(goal, row.uid, None, why, dead=True)


def give_back(store: Store, goal: int, number: int) -> None:
    """The delivery claims nothing any more: the goal is issued anew as soon as there is something to wake it for."""
    with store.writing(durable=False) as connection:
        connection.execute(
            sa.update(t.goals).where(_G.id == goal, _G.delivery == number).values(issued_at=None)
        )


def _taken(
    connection: sa.Connection, wanted: sa.Select[Any], labels: Collection[str], lost: datetime, room: int
) -> list[Any]:
    """Of the goals that are wanted those that are not on their way, locked; what others hold is passed over."""
    free = sa.or_(_G.issued_at.is_(None), _G.issued_at <= lost)
    statement = (
        wanted.with_only_columns(_G.id, _G.delivery, _G.host_label, _G.issued_at)
        .where(_G.host_label.in_(labels), free)
        .limit(max(0, room))
        .with_for_update(of=t.goals, key_share=True, skip_locked=True)
    )
    return list(connection.execute(statement).all())


def _of(goals: Collection[int]) -> sa.Select[Any]:
    return sa.select(_G.id).where(_G.id.in_(goals)).order_by(_G.id)


def _by_default(now: datetime) -> sa.Select[Any]:
    """Goals that wait for the user, with an open question whose default answers by now."""
    asked = sa.select(_Q.goal).where(_ASKED, _Q.default_at <= now)
    waiting = _G.status == GoalStatus.WAITING_USER
    return sa.select(_G.id).where(waiting, _G.id.in_(asked), _UNCLAIMED).order_by(_G.id)


def _dead(store: Store, connection: sa.Connection) -> set[int]:
    """Goals, of whatever label, with a wakeup that somebody else may take over."""
    now = store.lease_now()
    clock = sa.literal(now) if isinstance(now, int) else now
    columns = (_W.owner, _W.host_label, _W.pid, _W.pid_start, _W.boot_id)
    rows = connection.execute(
        sa.select(*columns, _W.goal, _W.lease_ms, clock.label("now")).where(_W.exit_reason.is_(None))
    )
    served = store.database.lease_now is not None
    return {
        row.goal
        for row in rows
        if Lease(Owner(*row[:5]), row.lease_ms).is_void(row.now, store.owner, served=served)
    }


def _on_the_way(connection: sa.Connection, labels: Collection[str], lost: datetime) -> int:
    count = sa.select(sa.func.count()).where(_G.issued_at > lost, _G.host_label.in_(labels))
    return connection.execute(count).scalar_one()


def _now(store: Store, connection: sa.Connection) -> datetime:
    """On the clock that all machines share, where there is one."""
    if isinstance(store.lease_now(), int):
        return store.clock.now()
    now: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return now
