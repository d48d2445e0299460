"""Questions to the user: asked by the ending of a wakeup, withdrawn when the goal is over. Answers: `answers.py`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.questions import AnsweredBy, Asking, Question, QuestionKind, QuestionStatus
from goalmode.errors import StoreUnreadable
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.columns import written
from goalmode.state.shape import each, held
from goalmode.state.store import Store

MAX_SHOWN = 20
"""Questions that a context is rendered from."""

_KINDS = {
    ExitReason.NEEDS_USER_INPUT: QuestionKind.INPUT,
    ExitReason.WAITING_HUMAN: QuestionKind.HUMAN,
}
"""Endings that leave a question."""

_OPEN = written("questions.status", QuestionStatus.OPEN)

# Read for every context: a statement that is built anew each time takes longer to build than to run.
_SHOWN = (
    sa.select(t.questions)
    .where(t.questions.c.goal == sa.bindparam("wanted"), t.questions.c.status != QuestionStatus.WITHDRAWN)
    .order_by((t.questions.c.status == QuestionStatus.OPEN).desc(), t.questions.c.number.desc())
    .limit(MAX_SHOWN)
)


def ask(
    store: Store, connection: sa.Connection, goal: int, wakeup: int, exit: Exit, *, now: datetime
) -> None:
    """Store the question that an ending puts to the user, if it puts one, as part of the commit that ends the wakeup.

    An ending that waits for the user without saying for what asks in the words of its detail.
    """
    kind = _KINDS.get(exit.reason)
    if kind is None:
        return
    asking = exit.question or Asking(kind, exit.detail)
    last = connection.execute(
        sa.select(sa.func.max(t.questions.c.number)).where(t.questions.c.goal == goal)
    ).scalar()
    connection.execute(
        sa.insert(t.questions).values(
            goal=goal,
            number=int(last or 0) + 1,
            wakeup=wakeup,
            kind=asking.kind,
            status=QuestionStatus.OPEN,
            text=store.clean(asking.text),
            why=store.clean(asking.why),
            options=[store.clean(option) for option in asking.options],
            default=store.clean(asking.default),
            default_at=asking.default_at,
            session_id=store.clean(asking.session_id),
            answer="",
            answered_by="",
            asked_at=now,
        )
    )


def withdraw(connection: sa.Connection, goal: int) -> None:
    """Nobody need answer any more what is open: the goal is over."""
    connection.execute(
        sa.update(t.questions)
        .where(t.questions.c.goal == goal, t.questions.c.status == QuestionStatus.OPEN)
        .values(status=QuestionStatus.WITHDRAWN)
    )


def of_goal(connection: sa.Connection, goal: Goal) -> list[Question]:
    """All questions of a goal, oldest first."""
    return _read(connection, goal.uid, (t.questions.c.goal == goal.id,))


def open_of(connection: sa.Connection, goal: Goal) -> list[Question]:
    """What a goal waits to be told, oldest first."""
    return _read(
        connection, goal.uid, (t.questions.c.goal == goal.id, t.questions.c.status == QuestionStatus.OPEN)
    )


def every_open(connection: sa.Connection) -> list[tuple[str, Question | StoreUnreadable]]:
    """The open questions of all goals, each with its goal's public id, oldest first.

    One of a shape that we do not know hides no other: in its place is what is wrong with it.
    """
    statement = (
        sa.select(t.questions, t.goals.c.uid)
        .join(t.goals, t.goals.c.id == t.questions.c.goal)
        .where(_OPEN)
        .order_by(t.questions.c.asked_at, t.questions.c.id)
    )
    rows = each(connection, statement, _name, t.questions.c.id, t.goals.c.uid)
    return [(str(row.uid), _or_fault(row) if fault is None else fault) for row, fault in rows]


def _name(row: sa.Row[Any]) -> str:
    return f"question Q{row.number}"


def _or_fault(row: sa.Row[Any]) -> Question | StoreUnreadable:
    try:
        return _question(row.uid, row)
    except StoreUnreadable as error:
        return error


def shown(connection: sa.Connection, goal: Goal) -> tuple[Question, ...]:
    """Those that a context is rendered from, oldest first: what is open, and what was answered of late."""
    rows = held(connection, _SHOWN, _name, {"wanted": goal.id})
    return tuple(sorted((_question(goal.uid, row) for row in rows), key=lambda q: q.number))


def _read(connection: sa.Connection, uid: str, chosen: Sequence[sa.ColumnElement[bool]]) -> list[Question]:
    rows = held(connection, sa.select(t.questions).where(*chosen).order_by(t.questions.c.number), _name)
    return [_question(uid, row) for row in rows]


def _question(uid: str, row: sa.Row[Any]) -> Question:
    by, options = row.answered_by, row.options
    if not isinstance(options, list):
        raise StoreUnreadable(f"{_name(row)}: options is {options!r}, a list was expected")
    return Question(
        number=row.number,
        asking=Asking(
            kind=mapping.word(uid, "question.kind", QuestionKind, row.kind),
            text=row.text,
            why=row.why,
            options=tuple(map(str, options)),
            default=row.default,
            default_at=row.default_at,
            session_id=row.session_id,
        ),
        status=mapping.word(uid, "question.status", QuestionStatus, row.status),
        wakeup=row.wakeup,
        asked_at=row.asked_at,
        answer=row.answer,
        answered_by=mapping.word(uid, "question.answered_by", AnsweredBy, by) if by else None,
        answered_at=row.answered_at,
    )
