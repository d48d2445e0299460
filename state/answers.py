"""Answers: each open question takes exactly one, of a user or by its default, and a goal that waited goes on once."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal, GoalSettings
from goalmode.domain.questions import AnsweredBy, Question, QuestionKind, QuestionStatus
from goalmode.domain.text import one_line
from goalmode.errors import NotAllowed
from goalmode.state import goals, notes, questions
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store


def answer(
    store: Store,
    goal: Goal,
    number: int,
    text: str,
    *,
    now: datetime,
    resumes: bool = False,
    limits: Limits | None = None,
    settings: GoalSettings | None = None,
) -> None:
    """Answer an open question; a goal that waits for the user is due at once. Of several answers the first one stands.

    Args:
        text: has been checked (`goalmode.orchestrator.questions`).
        resumes: the goal goes on whatever it waited for, with new limits and settings if they are given.

    Raises:
        NotAllowed: it is not open, or not any more; nothing is stored.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        if not _take(store, connection, goal.id, number, text, AnsweredBy.USER, now):
            raise NotAllowed(_not_open(connection, goal, number))
        if resumes:
            goals.go_on(connection, goal, now=now, reason="answered", limits=limits, settings=settings)
        else:
            goals.go_on(connection, goal, now=now, reason="answered", only=GoalStatus.WAITING_USER)


def answer_by_default(store: Store, goal: Goal, *, now: datetime) -> list[int]:
    """Let the defaults stand whose time has come; returns the numbers of the questions that this answered.

    A goal that waits for the user is due. Its streak goes on: nobody has looked at it.
    """
    with store.reading() as connection:
        due = [
            q
            for q in questions.open_of(connection, goal)
            if q.asking.default_at and q.asking.default_at <= now
        ]
    if not due:
        return []
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        answered = [
            q.number
            for q in due
            if _take(store, connection, goal.id, q.number, q.asking.default, AnsweredBy.DEFAULT, now)
        ]
        if answered:
            goals.go_on(connection, goal, now=now, reason="default", only=GoalStatus.WAITING_USER, anew=False)
    return answered


def sign_off(store: Store, connection: sa.Connection, goal: Goal, text: str, *, now: datetime) -> bool:
    """Answer what the goal asks about acceptance, as part of a larger commit; False if it asks nothing of the kind.

    A goal that waits for the user is due at once.
    """
    asked = [q for q in questions.open_of(connection, goal) if q.asking.kind is QuestionKind.SIGN_OFF]
    for question in asked:
        _take(store, connection, goal.id, question.number, text, AnsweredBy.USER, now)
    if asked:
        goals.go_on(connection, goal, now=now, reason="signed off", only=GoalStatus.WAITING_USER)
    return bool(asked)


def _take(
    store: Store,
    connection: sa.Connection,
    goal: int,
    number: int,
    text: str,
    by: AnsweredBy,
    now: datetime,
) -> bool:
    """Give an open question its answer, and put it into the inbox; False if it is not open."""
    said = store.clean(text)
    taken = connection.execute(
        sa.update(t.questions)
        .where(
            t.questions.c.goal == goal,
            t.questions.c.number == number,
            t.questions.c.status == QuestionStatus.OPEN,
        )
        .values(status=QuestionStatus.ANSWERED, answer=said, answered_by=by, answered_at=now)
    )
    if taken.rowcount != 1:
        return False
    notes.post(store, connection, goal, "answer", said, now, question=number)
    return True


def closed(question: Question) -> str:
    """Why a question that is not open takes no answer."""
    if question.status is QuestionStatus.WITHDRAWN:
        return f"{question.label} was withdrawn, nobody waits for its answer"
    by = "by the user" if question.answered_by is AnsweredBy.USER else "by its default"
    return f"{question.label} was answered already, {by}: {one_line(question.answer, 80)!r}"


def _not_open(connection: sa.Connection, goal: Goal, number: int) -> str:
    found = next((q for q in questions.of_goal(connection, goal) if q.number == number), None)
    return f"goal {goal.uid}: {closed(found) if found else f'has no question Q{number}'}"
