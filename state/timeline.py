"""What happened to a goal, in order: what each wakeup used up in which movement, and what happened beside the turns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.errors import StoreUnreadable
from goalmode.state import tables as t
from goalmode.state.columns import written
from goalmode.state.shape import held

MAX_HAPPENINGS = 1_000
"""Of each kind, the newest of what is asked for."""

_SHOWN = written("events.kind", *t.SHOWN_EVENTS)

Span = tuple[datetime | None, datetime | None]
"""From then on, and before then; None for no such bound."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the model calls of one wakeup used up in one movement. `calls` counts all, failed and lost ones too."""

    movement: str
    calls: int
    tokens: int
    cost_micro: int


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened beside the turns.

    Attributes:
        kind: asked, answered, note, answer, edit, stop, checkpoint, or one of `tables.SHOWN_EVENTS`.
        data: what is stored of it; `text` is what was said.
    """

    at: datetime
    kind: str
    data: Mapping[str, Any]


def work(connection: sa.Connection, wakeups: Collection[int]) -> Mapping[int, list[Work]]:
    """By the ids of wakeups: what they used up, in the order in which they entered their movements."""
    found: dict[int, list[Work]] = {}
    ids = sorted(wakeups)
    for start in range(0, len(ids), 500):
        turns = t.turns.c
        rows = connection.execute(
            sa.select(
                turns.wakeup,
                turns.movement,
                sa.func.count(),
                sa.func.sum(turns.input - turns.cached + turns.output),
                sa.func.sum(turns.cost_micro),
            )
            .where(turns.wakeup.in_(ids[start : start + 500]))
            .group_by(turns.wakeup, turns.movement)
            .order_by(turns.wakeup, sa.func.min(turns.seq))
        )
        for row in rows:
            if not isinstance(row[1], str):
                raise StoreUnreadable(f"a turn: movement is {row[1]!r}, a text was expected")
            found.setdefault(row[0], []).append(Work(row[1], *map(int, row[2:])))
    return found


def happenings(
    connection: sa.Connection, goal: int, *, since: datetime | None = None, until: datetime | None = None
) -> list[Happening]:
    """What happened beside the turns, oldest first, from `since` on and before `until`.

    Raises:
        StoreUnreadable: an event of another shape.
    """
    span = since, until
    found = [
        *_said(connection, goal, span),
        *_asked(connection, goal, span),
        *_events(connection, goal, span),
        *_checkpoints(connection, goal, span),
    ]
    return sorted(found, key=lambda one: one.at)


def _said(connection: sa.Connection, goal: int, span: Span) -> list[Happening]:
    rows = _newest(connection, t.inbox, t.inbox.c.at, goal, span)
    return [Happening(r.at, r.kind, {"text": r.text, "question": r.question}) for r in rows]


def _asked(connection: sa.Connection, goal: int, span: Span) -> list[Happening]:
    rows = _newest(connection, t.questions, t.questions.c.asked_at, goal, span)
    return [Happening(r.asked_at, "asked", {"text": r.text, "question": r.number}) for r in rows]


def _checkpoints(connection: sa.Connection, goal: int, span: Span) -> list[Happening]:
    rows = _newest(connection, t.checkpoints, t.checkpoints.c.at, goal, span)
    return [Happening(r.at, "checkpoint", {"wakeup": r.wakeup}) for r in rows if r.wakeup]


def _events(connection: sa.Connection, goal: int, span: Span) -> list[Happening]:
    rows = _newest(connection, t.events, t.events.c.at, goal, span, _SHOWN)
    for row in rows:
        if not isinstance(row.data, Mapping):
            raise StoreUnreadable(f"an event of kind {row.kind} holds {row.data!r}, an object was expected")
    return [Happening(r.at, r.kind, {k: v for k, v in r.data.items() if k != "v"}) for r in rows]


def _newest(
    connection: sa.Connection,
    table: sa.Table,
    at: sa.ColumnElement[Any],
    goal: int,
    span: Span,
    *chosen: sa.ColumnElement[bool],
) -> list[sa.Row[Any]]:
    since, until = span
    statement = sa.select(table).where(table.c.goal == goal, *chosen)
    if since is not None:
        statement = statement.where(at >= since)
    if until is not None:
        statement = statement.where(at < until)
    newest = statement.order_by(table.c.id.desc()).limit(MAX_HAPPENINGS)
    return held(connection, newest, lambda row: f"{table.name} {row.id}")[::-1]
