"""What goals ask, as plain values: the open questions of all of them, or everything that one has asked."""

from __future__ import annotations

from typing import Any

from goalmode.domain.goal import Goal
from goalmode.domain.questions import Question
from goalmode.errors import StoreUnreadable
from goalmode.inspection.listing import UNREADABLE
from goalmode.inspection.seen import iso
from goalmode.state import questions
from goalmode.state.store import Store


def open_everywhere(store: Store) -> list[dict[str, Any]]:
    """What waits for an answer, oldest first; one of a shape that we do not know is marked and hides no other."""
    with store.reading() as connection:
        found = questions.every_open(connection)
    return [store.clean_json({"goal": uid, **_described_or_marked(one)}) for uid, one in found]


def of_goal(store: Store, goal: Goal) -> list[dict[str, Any]]:
    """All that a goal has asked, oldest first, with the answers."""
    with store.reading() as connection:
        found = [
            {"goal": goal.uid, **described(question)} for question in questions.of_goal(connection, goal)
        ]
    return [store.clean_json(question) for question in found]


def _described_or_marked(question: Question | StoreUnreadable) -> dict[str, Any]:
    if isinstance(question, Question):
        return described(question)
    blank = dict.fromkeys(("id", "kind", "why", "default", "session_id", "answer"), "")
    unknown = dict.fromkeys(("default_at", "wakeup", "asked_at", "answered_by", "answered_at"))
    return {**blank, **unknown, "options": [], "status": UNREADABLE, "text": str(question)}


def described(question: Question) -> dict[str, Any]:
    asking = question.asking
    return {
        "id": question.label,
        "kind": asking.kind.value,
        "status": question.status.value,
        "text": asking.text,
        "why": asking.why,
        "options": list(asking.options),
        "default": asking.default,
        "default_at": iso(asking.default_at),
        "session_id": asking.session_id,
        "wakeup": question.wakeup,
        "asked_at": iso(question.asked_at),
        "answer": question.answer,
        "answered_by": None if question.answered_by is None else question.answered_by.value,
        "answered_at": iso(question.answered_at),
    }
