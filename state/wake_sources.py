"""Wake sources as rows: added and removed by users, fired once by whoever sees first that they have come.

A goal with open sources is due when the first of them comes: `goals.next_wakeup_at` is that time, so nothing but the
goals' own index is asked which goals are due. A ceiling is such a time too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.wake import (
    ASKED_TIME,
    MAX_SOURCES,
    WATCHED,
    At,
    Cron,
    Every,
    FileChange,
    FileMark,
    GoalEnd,
    Planned,
    ProcessEnd,
    SourceKind,
    SourceStatus,
    Spec,
    WakeSource,
)
from goalmode.errors import BadInput, NotAllowed, StoreUnreadable
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.columns import written
from goalmode.state.events import note
from goalmode.state.exclusion import lock_goal
from goalmode.state.shape import each, held
from goalmode.state.store import Store

if TYPE_CHECKING:
    from goalmode.state.closing import Aftermath

_S = t.wake_sources.c

RETRIED = frozenset({ExitReason.BACKEND_ERROR, ExitReason.INTERRUPTED})
"""Endings that cut a wakeup off from outside. It is tried again by its own rule, whatever is scheduled."""

_OPEN = written("wake_sources.status", SourceStatus.OPEN)
_LOOKED_AT = written("wake_sources.kind", *WATCHED)


@dataclass(frozen=True, slots=True)
class Open:
    """An open source, with what is needed to look at it and to fire it.

    Attributes:
        id: the row's. goal, uid, workspace, fence: of the goal that waits.
        target: status of the goal that is waited for; None where there is none, or none any more.
    """

    id: int
    goal: int
    uid: str
    workspace: str
    fence: int
    source: WakeSource
    target: GoalStatus | None


@dataclass(frozen=True, slots=True)
class Firing:
    """A source that has come: why, and for one that recurs when it comes next."""

    open: Open
    reason: str
    next_due: datetime | None = None


def add(store: Store, connection: sa.Connection, goal: int, planned: Planned, *, now: datetime) -> WakeSource:
    """Store a source; the goal is due when the first of its sources comes, and not before."""
    last = connection.execute(sa.select(sa.func.max(_S.number)).where(_S.goal == goal)).scalar()
    source = WakeSource(
        int(last or 0) + 1, planned.spec, SourceStatus.OPEN, planned.due_at, planned.ceiling_at, now
    )
    spec = planned.spec
    connection.execute(
        sa.insert(t.wake_sources).values(
            goal=goal,
            number=source.number,
            kind=spec.kind,
            spec=store.clean_json(spec_to_json(spec)),
            target=spec.goal if isinstance(spec, GoalEnd) else None,
            status=SourceStatus.OPEN,
            due_at=planned.due_at,
            ceiling_at=planned.ceiling_at,
            created_at=now,
        )
    )
    note(store, connection, goal, "scheduled", {"source": source.label, "what": str(spec)}, now=now)
    _hold(connection, goal, source, store.clean(source.awaited), now)
    return source


def schedule(store: Store, goal: Goal, planned: Planned, *, now: datetime) -> WakeSource:
    """Add a source to a goal that is there already.

    Raises:
        NotAllowed: it has too many. BadInput: a chain of goals would wait for itself.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        if len(of_goal(connection, goal, only_open=True)) >= MAX_SOURCES:
            raise NotAllowed(
                f"goal {goal.uid}: waits for {MAX_SOURCES} things already; `goalmode schedule {goal.uid} --remove N`"
            )
        if isinstance(planned.spec, GoalEnd):
            _refuse_loop(connection, goal, planned.spec)
        return add(store, connection, goal.id, planned, now=now)


def unschedule(store: Store, goal: Goal, number: int, *, now: datetime) -> WakeSource | None:
    """Wait for it no longer; None if it is not open. A goal that waited for nothing else is due now."""
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        source = next((s for s in of_goal(connection, goal, only_open=True) if s.number == number), None)
        if source is None:
            return None
        connection.execute(
            sa.update(t.wake_sources)
            .where(_S.goal == goal.id, _S.number == number)
            .values(status=SourceStatus.REMOVED)
        )
        note(store, connection, goal.id, "unscheduled", {"source": source.label}, now=now)
        first = earliest(connection, goal.id)
        due = (now, "unscheduled") if first is None else (first.next_at, first.awaited)
        connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == goal.id, *_IDLE, t.goals.c.next_wakeup_at == source.next_at)
            .values(next_wakeup_at=due[0], wake_reason=due[1], updated_at=now)
        )
    return replace(source, status=SourceStatus.REMOVED)


def of_goal(connection: sa.Connection, goal: Goal, *, only_open: bool = False) -> list[WakeSource]:
    """A goal's sources, oldest first."""
    chosen = [_S.goal == goal.id, *([_OPEN] if only_open else [])]
    rows = held(connection, sa.select(t.wake_sources).where(*chosen).order_by(_S.number), _name)
    return [_source(goal.uid, row) for row in rows]


def open_of(connection: sa.Connection, goal: int) -> list[Open]:
    """The open sources of one goal, ready to be looked at."""
    rows = held(connection, _with_goals().where(_S.goal == goal, _OPEN).order_by(_S.id), _name)
    return [_open(row) for row in rows]


def to_watch(
    connection: sa.Connection, labels: Collection[str], *, beyond: int, limit: int
) -> tuple[list[Open], list[str], int]:
    """Sources that only looking tells of, of active goals that nobody runs; and where to go on, 0 for the start.

    Between them what is wrong with those of unknown shape, which hide no others.
    """
    statement = (
        _with_goals()
        .where(_OPEN, _LOOKED_AT, _S.id > beyond, t.goals.c.host_label.in_(labels), *_IDLE)
        .order_by(_S.id)
        .limit(limit)
    )
    rows = each(connection, statement, _name, _S.id, t.goals.c.uid)
    found: list[Open] = []
    faults: list[str] = []
    for row, fault in rows:
        try:
            if fault is not None:
                raise fault
            found.append(_open(row))
        except StoreUnreadable as error:
            faults.append(f"goal {row.uid}: {error}")
    return found, faults, rows[-1][0].id if len(rows) == limit else 0


def fire(store: Store, firings: Sequence[Firing], *, now: datetime) -> bool:
    """Note that sources of one goal have come, and let it be due; False if somebody else did so first.

    Nothing is stored of a goal that is not active, or that somebody runs: its sources come when it is free again.
    """
    goal = firings[0].open
    try:
        with store.writing() as connection:
            lock_goal(connection, goal.goal)
            _make_due(connection, goal, "; ".join(firing.reason for firing in firings), now)
            for firing in firings:
                _close(store, connection, firing, now)
    except _NotFired:
        return False
    return True


def scheduled(connection: sa.Connection, goal: int, exit: Exit, after: Aftermath) -> Aftermath:
    """An ending's aftermath where sources are open: the first of them takes the place of "now" and of back-offs.

    A time that the model asked for counts beside them, and a wakeup that was cut off is tried again by its own rule.
    """
    if after.status is not GoalStatus.ACTIVE or exit.reason in RETRIED:
        return after
    first = earliest(connection, goal)
    if first is None or first.next_at is None:
        return after
    if exit.wake_at is not None and exit.wake_at <= first.next_at:
        return after
    return replace(after, next_wakeup_at=first.next_at, wake_reason=first.awaited)


def earliest(connection: sa.Connection, goal: int) -> WakeSource | None:
    """The open source that comes first, or is given up first."""
    statement = (
        sa.select(t.wake_sources, t.goals.c.uid)
        .join(t.goals, t.goals.c.id == _S.goal)
        .where(_S.goal == goal, _OPEN)
        .order_by(sa.func.coalesce(_S.due_at, _S.ceiling_at), _S.id)
        .limit(1)
    )
    return next((_source(row.uid, row) for row in held(connection, statement, _name)), None)


_IDLE = (
    t.goals.c.status == GoalStatus.ACTIVE,
    ~sa.exists().where(t.wakeups.c.goal == t.goals.c.id, t.wakeups.c.exit_reason.is_(None)),
)
"""Of goals that may be woken and that nobody runs."""


class _NotFired(Exception):
    """Somebody else was first; the transaction is undone."""


def _refuse_loop(connection: sa.Connection, goal: Goal, spec: GoalEnd) -> None:
    """A chain of goals that comes back to `goal` would wait for ever."""
    paths: list[tuple[tuple[int, str], ...]] = [((spec.goal, spec.uid),)]
    seen: set[int] = set()
    while paths:
        path = paths.pop()
        last = path[-1][0]
        if last == goal.id:
            chain = " waits for ".join(uid for _, uid in path)
            loops = "itself" if len(path) == 1 else f"one that does: {chain}"
            raise BadInput(
                "after", spec.uid, f"a goal that does not wait for goal {goal.uid}; this is {loops}"
            )
        if last not in seen:
            seen.add(last)
            paths += [(*path, further) for further in _waited_for(connection, last)]


def _waited_for(connection: sa.Connection, goal: int) -> list[tuple[int, str]]:
    """The goals whose end `goal` waits for: ids and public ids."""
    rows = connection.execute(
        sa.select(_S.target, t.goals.c.uid)
        .join(t.goals, t.goals.c.id == _S.target)
        .where(_S.goal == goal, _OPEN, _S.kind == SourceKind.GOAL)
    )
    return [(int(row.target), row.uid) for row in rows]


def _hold(connection: sa.Connection, goal: int, source: WakeSource, reason: str, now: datetime) -> None:
    """A new source holds an idle goal back; not from a retry, nor from an earlier time that was asked for."""
    at = sa.bindparam("at", source.next_at, type_=t.goals.c.next_wakeup_at.type)
    sooner = sa.select(_S.id).where(
        _S.goal == goal, _OPEN, _S.number != source.number, sa.func.coalesce(_S.due_at, _S.ceiling_at) <= at
    )
    asked = sa.and_(t.goals.c.wake_reason == ASKED_TIME, t.goals.c.next_wakeup_at <= at)
    connection.execute(
        sa.update(t.goals)
        .where(t.goals.c.id == goal, *_IDLE, t.goals.c.failures == 0, ~sooner.exists(), ~asked)
        .values(next_wakeup_at=source.next_at, wake_reason=reason, updated_at=now)
    )


def _make_due(connection: sa.Connection, goal: Open, reason: str, now: datetime) -> None:
    goals = t.goals.c
    # A goal whose provider failed keeps the time of its retry: waking it earlier would fail again.
    keeps = sa.or_(
        goals.failures > 0, goals.next_wakeup_at <= sa.bindparam("at", now, type_=goals.next_wakeup_at.type)
    )
    made = connection.execute(
        sa.update(t.goals)
        .where(goals.id == goal.goal, goals.fence == goal.fence, *_IDLE)
        .values(
            next_wakeup_at=sa.case((keeps, goals.next_wakeup_at), else_=now),
            wake_reason=reason,
            updated_at=now,
        )
    )
    if made.rowcount != 1:
        raise _NotFired


def _close(store: Store, connection: sa.Connection, firing: Firing, now: datetime) -> None:
    source = firing.open.source
    goes_on = {"due_at": firing.next_due} if source.recurs else {"status": SourceStatus.FIRED}
    fired = connection.execute(
        sa.update(t.wake_sources)
        .where(
            _S.id == firing.open.id,
            _S.status == SourceStatus.OPEN,
            _S.due_at.is_not_distinct_from(source.due_at),
        )
        .values(fired_at=now, **goes_on)
    )
    if fired.rowcount != 1:
        raise _NotFired
    data = {"source": source.label, "reason": firing.reason}
    note(store, connection, firing.open.goal, "wake_source", data, now=now)


def _name(row: sa.Row[Any]) -> str:
    return f"wake source S{row.number}"


def _with_goals() -> sa.Select[Any]:
    target = t.goals.alias("target")
    return (
        sa.select(
            t.wake_sources,
            t.goals.c.uid,
            t.goals.c.workspace,
            t.goals.c.fence,
            target.c.status.label("target_status"),
        )
        .join(t.goals, t.goals.c.id == _S.goal)
        .outerjoin(target, target.c.id == _S.target)
    )


def _open(row: sa.Row[Any]) -> Open:
    status = row.target_status
    target = None if status is None else mapping.word(row.uid, "status", GoalStatus, status)
    return Open(row.id, row.goal, row.uid, row.workspace, row.fence, _source(row.uid, row), target)


def _source(uid: str, row: sa.Row[Any]) -> WakeSource:
    return WakeSource(
        number=row.number,
        spec=_spec(uid, row),
        status=mapping.word(uid, "wake_source.status", SourceStatus, row.status),
        due_at=row.due_at,
        ceiling_at=row.ceiling_at,
        created_at=row.created_at,
        fired_at=row.fired_at,
    )


def spec_to_json(spec: Spec) -> dict[str, Any]:
    given = {**asdict(spec), "time": spec.time.isoformat()} if isinstance(spec, At) else asdict(spec)
    return {"v": mapping.VERSION, **given}


def _spec(uid: str, row: sa.Row[Any]) -> Spec:
    kind = mapping.word(uid, "wake_source.kind", SourceKind, row.kind)
    try:
        return _READERS[kind](row.spec)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreUnreadable(
            f"goal {uid}: wake source S{row.number} is of another shape: {error!r}"
        ) from None


def _file(spec: Mapping[str, Any]) -> FileChange:
    seen = spec["seen"]
    return FileChange(
        str(spec["path"]), None if seen is None else FileMark(**{k: int(v) for k, v in seen.items()})
    )


_READERS: Mapping[SourceKind, Callable[[Mapping[str, Any]], Spec]] = {
    SourceKind.AT: lambda spec: At(datetime.fromisoformat(spec["time"])),
    SourceKind.EVERY: lambda spec: Every(float(spec["seconds"])),
    SourceKind.CRON: lambda spec: Cron(str(spec["line"]), str(spec["zone"])),
    SourceKind.FILE: _file,
    SourceKind.PROCESS: lambda spec: ProcessEnd(int(spec["pid"]), str(spec["start"]), str(spec["boot_id"])),
    SourceKind.GOAL: lambda spec: GoalEnd(int(spec["goal"]), str(spec["uid"])),
}
"""Raise KeyError, TypeError or ValueError where a field is missing or of another type."""
