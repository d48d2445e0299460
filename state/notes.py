"""The inbox: what users say to a goal. Its rows are only ever added; a row can be superseded by a later one.

A note that is taken back is superseded by a row without text, which supersedes itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.notes import News, NewsKind, Note
from goalmode.domain.questions import AnsweredBy
from goalmode.errors import NotAllowed
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store

SPOKEN = ("note", "answer")
"""Kinds of entries that hold words for the model."""


def post(
    store: Store,
    connection: sa.Connection,
    goal: int,
    kind: str,
    text: str,
    now: datetime,
    *,
    question: int | None = None,
) -> int:
    """Append what a user said to the goal's inbox; returns the entry's id.

    Args:
        question: number of the question that an answer answers.
    """
    row = {"goal": goal, "kind": kind, "text": store.clean(text), "question": question, "at": now}
    return int(connection.execute(sa.insert(t.inbox).values(**row).returning(t.inbox.c.id)).scalar_one())


def add(store: Store, goal: Goal, text: str, *, replaces: int | None = None, now: datetime) -> Note:
    """Store a note, in the place of another if the number of one is given.

    Raises:
        NotAllowed: the goal is done or aborted, or `replaces` is not the number of a note that stands.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        _must_be_open(connection, goal)
        new = post(store, connection, goal.id, "note", text, now)
        if replaces is not None:
            _supersede(connection, goal, replaces, new)
        return of_goal(connection, goal.id)[-1]


def withdraw(store: Store, goal: Goal, number: int, *, now: datetime) -> Note:
    """Take a note back. A wakeup that has heard it is told.

    Raises:
        NotAllowed: the goal is done or aborted, or there is no such note that stands.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        _must_be_open(connection, goal)
        new = post(store, connection, goal.id, "note", "", now)
        _supersede(connection, goal, number, new)
        connection.execute(sa.update(t.inbox).where(t.inbox.c.id == new).values(superseded_by=new))
        return of_goal(connection, goal.id)[number - 1]


def of_goal(connection: sa.Connection, goal: int) -> list[Note]:
    """All notes, oldest first."""
    rows = _notes(connection, goal)
    numbers = {row.id: number for number, row in enumerate(rows, 1)}
    return [
        Note(
            number,
            row.text,
            row.at,
            replaced_by=numbers.get(row.superseded_by),
            withdrawn=row.superseded_by is not None and row.superseded_by not in numbers,
        )
        for number, row in enumerate(rows, 1)
    ]


def news(connection: sa.Connection, goal: int, after: int) -> tuple[News, ...]:
    """What was said since the entry with the id `after`, oldest first, as far as it still stands."""
    stands = sa.or_(t.inbox.c.superseded_by.is_(None), t.inbox.c.superseded_by == t.inbox.c.id)
    rows = connection.execute(
        sa.select(t.inbox, t.questions.c.text.label("asked"), t.questions.c.answered_by)
        .outerjoin(
            t.questions,
            sa.and_(t.questions.c.goal == t.inbox.c.goal, t.questions.c.number == t.inbox.c.question),
        )
        .where(t.inbox.c.goal == goal, t.inbox.c.id > after, t.inbox.c.kind.in_(SPOKEN), stands)
        .order_by(t.inbox.c.id)
    ).all()
    replaced = _replaced(connection, goal, after)
    found = (_news(row, replaced.get(row.id, "")) for row in rows)
    return tuple(one for one in found if one is not None)


def _news(row: sa.Row[Any], replaced: str) -> News | None:
    if row.kind == "answer":
        kind = NewsKind.DEFAULT if row.answered_by == AnsweredBy.DEFAULT else NewsKind.ANSWER
        return News(kind, row.text, "" if row.question is None else f"Q{row.question}: {row.asked}")
    if row.superseded_by is None:
        return News(NewsKind.NOTE, row.text, replaced)
    return News(NewsKind.WITHDRAWN, replaced) if replaced else None


def _replaced(connection: sa.Connection, goal: int, after: int) -> dict[int, str]:
    """By the id of an entry after `after`: what the note said that was heard before and whose place it has taken."""
    rows = connection.execute(
        sa.select(t.inbox.c.id, t.inbox.c.superseded_by, t.inbox.c.text).where(
            t.inbox.c.goal == goal, t.inbox.c.superseded_by > after
        )
    ).all()
    following = {row.id: row.superseded_by for row in rows}
    replaced = {}
    for row in rows:
        last = row.superseded_by
        while following.get(last, last) != last:
            last = following[last]
        if row.id <= after:
            replaced[last] = row.text
    return replaced


def _notes(connection: sa.Connection, goal: int) -> list[sa.Row[Any]]:
    said = (t.inbox.c.goal == goal, t.inbox.c.kind == "note", t.inbox.c.text != "")
    return list(connection.execute(sa.select(t.inbox).where(*said).order_by(t.inbox.c.id)).all())


def _must_be_open(connection: sa.Connection, goal: Goal) -> None:
    status = connection.execute(sa.select(t.goals.c.status).where(t.goals.c.id == goal.id)).scalar_one()
    if status == GoalStatus.DONE:
        raise NotAllowed(
            f"goal {goal.uid}: is done, nobody reads a note; `goalmode edit {goal.uid}` reopens it"
        )
    if status == GoalStatus.ABORTED:
        raise NotAllowed(f"goal {goal.uid}: is aborted and can only be read, so `note` is refused")


def _supersede(connection: sa.Connection, goal: Goal, number: int, new: int) -> None:
    notes = _notes(connection, goal.id)
    old = notes[number - 1] if 0 < number <= len(notes) else None
    if old is None or old.id == new:
        raise NotAllowed(f"goal {goal.uid}: has no note {number}; `goalmode note {goal.uid}` lists them")
    changed = connection.execute(
        sa.update(t.inbox)
        .where(t.inbox.c.id == old.id, t.inbox.c.superseded_by.is_(None))
        .values(superseded_by=new)
    )
    if changed.rowcount != 1:
        raise NotAllowed(
            f"goal {goal.uid}: note {number} no longer stands; `goalmode note {goal.uid}` lists them"
        )
