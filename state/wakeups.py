"""Claiming, renewing, recovering and closing a wakeup. Everything here is one short transaction.

The first statement of every write of a wakeup is the guard: it renews the lease of exactly this wakeup at exactly this
fence, and touches no row once somebody else has taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.cost import Price, cost_of, reserve_of
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, Obstacle
from goalmode.domain.messages import Usage
from goalmode.domain.sandbox import SandboxMode
from goalmode.errors import Fenced
from goalmode.state import bodies, mapping, statements
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.owner import Lease, Owner
from goalmode.state.store import Store

MAX_OBSTACLE = 200
"""Characters of an obstacle's words that are kept, and by which it is known again."""


MAX_OBSTACLES = 50
"""Obstacles of a goal that are kept; of more, the one that was not met for longest goes."""


@dataclass(frozen=True, slots=True)
class OpenWakeup:
    """A wakeup that has not been closed. Whether its owner still lives is the lease's question.

    `pending_exit` is the ending that it stored before it settled, see `goalmode.state.settlement`.
    """

    id: int
    seq: int
    fence: int
    lease: Lease
    started_at: datetime
    progress: int = 0
    pending_exit: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """This process's hold on a goal. `uid` is the goal's, `price` is of the tokens of the model that it is run with."""

    goal: int
    wakeup: int
    seq: int
    fence: int
    uid: str
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class StoredContext:
    """What the model is shown first, of a wakeup or after its conversation began anew.

    Attributes:
        text: the whole of it. sections: their names and sizes.
        messages: for a later replay.
    """

    text: str
    sha256: str
    tokens: int
    encoding: str
    completion_phrases: int
    sections: Sequence[Mapping[str, Any]]
    messages: Sequence[Sequence[Any]]


def open_wakeup(connection: sa.Connection, goal: int) -> OpenWakeup | None:
    row = connection.execute(
        sa.select(t.wakeups).where(t.wakeups.c.goal == goal, t.wakeups.c.exit_reason.is_(None))
    ).first()
    if row is None:
        return None
    owner = Owner(row.owner, row.host_label, row.pid, row.pid_start, row.boot_id)
    lease = Lease(owner, row.lease_ms)
    return OpenWakeup(row.id, row.seq, row.fence, lease, row.started_at, row.progress, row.pending_exit)


def turns_of(connection: sa.Connection, wakeup: int) -> int:
    """The wakeup's turns with a committed outcome: one whose tools never ended is none."""
    done = sa.select(sa.func.count()).where(t.turns.c.wakeup == wakeup, t.turns.c.state == t.TurnState.DONE)
    return connection.execute(done).scalar_one()


def was_interrupted(connection: sa.Connection, goal: int, seq: int) -> bool:
    """Whether the goal's wakeup number `seq` ended because its process did."""
    ending = sa.select(t.wakeups.c.exit_reason).where(t.wakeups.c.goal == goal, t.wakeups.c.seq == seq)
    return connection.execute(ending).scalar() == ExitReason.INTERRUPTED


def control(store: Store, goal: int) -> Control:
    """What a user asks of the goal's wakeup; a deleted goal is to be aborted."""
    with store.reading() as connection:
        asked = statements.look_up(connection, t.goals.c.control, goal)
    return Control.ABORT if asked is None else Control(asked)


def current_fence(store: Store, goal: int) -> int:
    """The goal's fence now; -1 if the goal is gone."""
    with store.reading() as connection:
        fence = statements.look_up(connection, t.goals.c.fence, goal)
    return -1 if fence is None else int(fence)


def claim(
    store: Store,
    goal: Goal,
    *,
    seq: int,
    context: StoredContext | None,
    reserve: Usage,
    counted: bool,
    now: datetime,
    price: Price | None = None,
    delivery: int | None = None,
    sandbox: SandboxMode = SandboxMode.NONE,
) -> Claimed | None:
    """Take the goal for one wakeup, if it is still what the context was rendered from; None if it is not.

    Args:
        goal: as read with the snapshot that the context was rendered from.
        context: None where no call will be made.
        reserve: what the first call may cost; charged if the process dies before it is known.
        counted: whether it counts towards the goal's wakeups (not one that only finds its budget spent).
        price: of the model's tokens, for all that the wakeup spends.
        delivery: by which the goal came here; it must be the newest, and have claimed nothing yet.
        sandbox: what its commands run in.
    """
    with store.writing(durable=False) as connection:
        fence = _taken(connection, goal, delivery, counted, now)
        if fence is None:
            return None
        needed = reserved(price, reserve)
        wakeup = _begun(store, connection, goal, now, seq=seq, fence=fence, sandbox=sandbox.value, **needed)
        if context is not None:
            _store_context(store, connection, wakeup, 0, context)
        return Claimed(goal.id, wakeup, seq, fence, goal.uid, price)


def _taken(
    connection: sa.Connection, goal: Goal, delivery: int | None, counted: bool, now: datetime
) -> int | None:
    """The goal's new fence; None if the goal is not what it was, or somebody has it."""
    delivered = () if delivery is None else (t.goals.c.delivery == delivery, t.goals.c.issued_at.is_not(None))
    fence = connection.execute(
        sa.update(t.goals)
        .where(
            t.goals.c.id == goal.id,
            t.goals.c.fence == goal.fence,
            t.goals.c.revision == goal.revision,
            t.goals.c.status == GoalStatus.ACTIVE,
            t.goals.c.control == Control.NONE,
            ~sa.exists().where(t.wakeups.c.goal == goal.id, t.wakeups.c.exit_reason.is_(None)),
            *delivered,
        )
        .values(
            fence=t.goals.c.fence + 1,
            issued_at=None,
            spent_wakeups=t.goals.c.spent_wakeups + int(counted),
            updated_at=now,
        )
        .returning(t.goals.c.fence)
    ).scalar()
    return None if fence is None else int(fence)


def _begun(store: Store, connection: sa.Connection, goal: Goal, now: datetime, **more: Any) -> int:
    """The id of a new wakeup of this process, at whose beginning all that users said until the snapshot is known."""
    owner = store.owner
    wakeup = connection.execute(
        sa.insert(t.wakeups)
        .values(
            goal=goal.id,
            owner=owner.name,
            host_label=owner.host_label,
            pid=owner.pid,
            pid_start=owner.pid_start,
            boot_id=owner.boot_id,
            lease_ms=store.lease_now() + store.lease_length,
            revision=goal.revision,
            inbox_seen=goal.inbox_head,
            exit_detail="",
            exit_facts={},
            turns=0,
            tokens=0,
            recoveries=0,
            rejections=0,
            progress=0,
            started_at=now,
            **more,
        )
        .returning(t.wakeups.c.id)
    ).scalar_one()
    return int(wakeup)


def begin_anew(
    store: Store, claimed: Claimed, n: int, context: StoredContext, *, reserve: Usage, inbox_seen: int
) -> None:
    """Store the wakeup's context number `n`, which takes the place of its conversation so far.

    Args:
        reserve: what the next call may cost, now that its input is another.
        inbox_seen: what users said up to here is in the context.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
    """
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed, **reserved(claimed.price, reserve), inbox_seen=inbox_seen)
        _store_context(store, connection, claimed.wakeup, n, context)


def replace_first(store: Store, connection: sa.Connection, claimed: Claimed, context: StoredContext) -> None:
    """Put another context in the place of the first one, which the model has not seen, as part of a larger commit."""
    first = (t.contexts.c.wakeup == claimed.wakeup, t.contexts.c.n == 0)
    old = connection.execute(sa.select(t.contexts.c.body, t.contexts.c.messages).where(*first)).first()
    connection.execute(sa.delete(t.contexts).where(*first))
    if old is not None:
        connection.execute(sa.delete(t.bodies).where(t.bodies.c.id.in_([i for i in old if i is not None])))
    _store_context(store, connection, claimed.wakeup, 0, context)


def _store_context(
    store: Store, connection: sa.Connection, wakeup: int, n: int, context: StoredContext
) -> None:
    """The messages are kept of the first one only: it and the turns are all that was ever said."""
    messages = bodies.put_json(connection, store.clean_json(context.messages)) if n == 0 else None
    statements.insert(
        connection,
        t.contexts,
        wakeup=wakeup,
        n=n,
        sha256=context.sha256,
        tokens=context.tokens,
        encoding=context.encoding,
        completion_phrases=context.completion_phrases,
        sections=[dict(s) for s in context.sections],
        body=bodies.put(connection, store.clean(context.text)),
        messages=messages,
    )


def guard(
    store: Store,
    connection: sa.Connection,
    claimed: Claimed,
    *,
    add: Mapping[str, int] = statements.NOTHING,
    **changes: Any,
) -> None:
    """Take the goal, renew the lease, make `changes` to the wakeup's row and `add` to its numbers.

    Raises:
        Fenced: the wakeup is no longer this process's.
    """
    lock_goal(connection, claimed.goal)
    _renew(store, connection, claimed, add, **changes)


def _renew(
    store: Store,
    connection: sa.Connection,
    claimed: Claimed,
    add: Mapping[str, int] = statements.NOTHING,
    **changes: Any,
) -> None:
    open_here = {"id": claimed.wakeup, "fence": claimed.fence, "exit_reason": None}
    now, length = store.lease_now(), store.lease_length
    served: dict[str, tuple[sa.ColumnElement[int], int]] = {}
    if isinstance(now, int):
        changes["lease_ms"] = now + length
    else:
        served["lease_ms"] = (now, length)  # By the server's clock, without asking for it first.
    renewed = statements.update(connection, t.wakeups, open_here, add=add, beyond=served, **changes)
    if renewed != 1:
        raise Fenced


def reserved(price: Price | None, usage: Usage) -> dict[str, Any]:
    """The columns of a wakeup that hold what its next call may use: charged if the process dies before it is known."""
    cost = reserve_of(price, usage)
    return {"reserved_input": usage.input, "reserved_output": usage.output, "reserved_cost": cost}


def progressed(marks: Mapping[str, int] | None) -> dict[str, Any]:
    """The columns of a wakeup that hold its marks of progress, by what they are of; none where nobody counts them."""
    if marks is None:
        return {}
    return {"progress": sum(marks.values()), "progress_by": {"v": mapping.VERSION, **marks}}


def renew(store: Store, claimed: Sequence[Claimed]) -> list[Claimed]:
    """Renew the leases of several wakeups in one transaction; returns those that are lost."""
    lost: list[Claimed] = []
    with store.pulsing() as connection:
        for one in sorted(claimed, key=lambda one: one.wakeup):
            try:
                _renew(store, connection, one)
            except Fenced:
                lost.append(one)
    return lost


def charge(
    connection: sa.Connection,
    claimed: Claimed,
    usage: Usage,
    *,
    cost_micro: int | None = None,
    turns: int,
    active_ms: int,
    now: datetime,
) -> None:
    """Add to the goal's and the wakeup's totals. `cost_micro`: None for what the usage costs at the wakeup's price."""
    cost = cost_of(claimed.price, usage) if cost_micro is None else cost_micro
    spent = {
        "spent_turns": turns,
        "spent_input": usage.input,
        "spent_cached": usage.cached,
        "spent_cache_write": usage.cache_write,
        "spent_output": usage.output,
        "spent_cost_micro": cost,
        "spent_active_ms": active_ms,
    }
    statements.update(connection, t.goals, {"id": claimed.goal}, add=spent, updated_at=now)
    if turns or usage.tokens:
        by_wakeup = {"turns": turns, "tokens": usage.tokens}
        statements.update(connection, t.wakeups, {"id": claimed.wakeup}, add=by_wakeup)


def met_obstacle(store: Store, claimed: Claimed, obstacle: str, requirement: str = "") -> Obstacle:
    """Note that this wakeup met an obstacle; returns it with all wakeups that met it since the count was opened.

    Args:
        obstacle: its id (`O2`), or words; words that were said before mean the obstacle that they made.
        requirement: the id of the requirement that it stands in the way of; the same obstacle before another
            requirement is counted by itself.
    """
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed)
        stored = connection.execute(
            sa.select(t.goals.c.obstacles).where(t.goals.c.id == claimed.goal)
        ).scalar_one()
        known = list(mapping.obstacles_from_json(f"number {claimed.goal}", stored))
        said = " ".join(store.clean(obstacle).split())[:MAX_OBSTACLE]
        found = next((o for o in known if _names(said, o, requirement)), None)
        if found is None:
            words = next((o.text for o in known if o.id == said.upper()), said)
            last = int(known[-1].id[1:]) if known else 0
            found = Obstacle(f"O{last + 1}", words, requirement)
            known.append(found)
        met = replace(found, wakeups=tuple(sorted({*found.wakeups, claimed.seq})))
        kept = [met if o.id == met.id else o for o in known]
        if len(kept) > MAX_OBSTACLES:
            kept.remove(min(kept, key=lambda o: o.wakeups[-1:]))
        connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == claimed.goal)
            .values(obstacles=mapping.obstacles_to_json(kept))
        )
        return met


def _names(said: str, obstacle: Obstacle, requirement: str) -> bool:
    """Whether `said` is the obstacle's id, or its words, before the same requirement."""
    if requirement and obstacle.requirement and requirement != obstacle.requirement:
        return False
    if said.upper() == obstacle.id:
        return not requirement or requirement == obstacle.requirement
    return said.casefold() == obstacle.text.casefold() and requirement == obstacle.requirement


def latch_wrap_up(connection: sa.Connection, goal: int) -> bool:
    """Use up the one wrap-up of the goal's current limits; False if it was used already."""
    latched = connection.execute(
        sa.update(t.goals)
        .where(t.goals.c.id == goal, t.goals.c.wrapped_limits_rev < t.goals.c.limits_rev)
        .values(wrapped_limits_rev=t.goals.c.limits_rev)
    )
    return latched.rowcount == 1
