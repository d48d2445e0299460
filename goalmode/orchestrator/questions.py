"""Answering what a goal asks: every answer is checked before anything is stored; a refused one changes nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.questions import MAX_ANSWER, Question
from goalmode.domain.text import is_blank, one_line
from goalmode.errors import BadInput, NotAllowed
from goalmode.state import answers, goals, questions
from goalmode.state.store import Store

_LABEL = re.compile(r"[Qq]([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with the answer that stands from now on, and its goal as it is now."""

    goal: Goal
    question: Question


def answer_question(
    store: Store,
    goal: Goal,
    text: str | None = None,
    *,
    option: int | None = None,
    question: str | None = None,
) -> Answered:
    """Answer one of the goal's open questions; a goal that waits for the user is due.

    Args:
        text: any text that is not blank. option: in its place, the number of one of the question's options, from 1.
        question: its id (`Q2`); None for the only one that is open.

    Raises:
        BadInput: the answer or the id is wrong; the message says what would be right. The question stays open.
        NotAllowed: the goal asks nothing or is over, or somebody else has just answered.
    """
    chosen = chosen_question(store, goal, question)
    said = checked_answer(chosen, text, option)
    answers.answer(store, goal, chosen.number, said, now=store.clock.now())
    return answered(store, goal, chosen)


def chosen_question(store: Store, goal: Goal, label: str | None) -> Question:
    """The open question with this id, or the only open one.

    Raises:
        BadInput: there is none with this id. NotAllowed: the goal asks nothing or is over, or several are open.
    """
    _refuse_over(goal)
    with store.reading() as connection:
        known = questions.of_goal(connection, goal)
    waiting = [q for q in known if q.is_open]
    if label is not None:
        named = _LABEL.fullmatch(label.strip())
        found = next((q for q in known if named and q.number == int(named.group(1))), None)
        if found is None:
            have = ", ".join(q.label for q in waiting) or "none is open"
            raise BadInput("question", label, f"the id of an open question of goal {goal.uid}: {have}")
        return found
    if not waiting:
        last = f"; {answers.closed(known[-1])}" if known else ""
        hint = f"`goalmode note {goal.uid} TEXT` tells it something"
        raise NotAllowed(f"goal {goal.uid}: waits for no answer, it is {goal.status}{last}; {hint}")
    if len(waiting) > 1:
        have = ", ".join(q.label for q in waiting)
        example = f"goalmode answer {goal.uid} {waiting[-1].label} TEXT"
        raise NotAllowed(f"goal {goal.uid}: several questions are open ({have}); say which one: {example}")
    return waiting[0]


def newest_question(store: Store, goal: Goal) -> Question:
    """The newest open question.

    Raises:
        NotAllowed: none is open.
    """
    with store.reading() as connection:
        waiting = questions.open_of(connection, goal)
    if not waiting:
        raise NotAllowed(f"goal {goal.uid}: waits for no answer, it is {goal.status}")
    return waiting[-1]


def checked_answer(question: Question, text: object, option: int | None = None) -> str:
    """The answer that is given, in words.

    Raises:
        BadInput: it is none; the message says what would be right.
    """
    if option is not None:
        if text is not None:
            raise BadInput("option", option, "an option's number or a text, not both")
        return _option(question, option)
    if not isinstance(text, str) or is_blank(text):
        raise BadInput(
            "answer", "" if text is None else text, f"a text that is not blank{_or_option(question)}"
        )
    if len(text) > MAX_ANSWER:
        expected = f"at most {MAX_ANSWER:,} characters, it has {len(text):,}"
        raise BadInput("answer", text, f"{expected}{_or_option(question)}")
    return text


def answered(store: Store, goal: Goal, question: Question) -> Answered:
    """The question as it stands now."""
    with store.reading() as connection:
        now = goals.read(connection, goal.id)
        known = questions.of_goal(connection, now)
    return Answered(now, next(q for q in known if q.number == question.number))


def by_itself_at(store: Store, goal: Goal) -> datetime | None:
    """When a goal that waits for the user goes on with a question's default; None: only an answer helps."""
    with store.reading() as connection:
        times = [q.asking.default_at for q in questions.open_of(connection, goal)]
    return min((at for at in times if at is not None), default=None)


def told(question: Question) -> str:
    """A question in one line."""
    return f"{question.label}: {one_line(question.asking.text, 300)}"


def _option(question: Question, option: object) -> str:
    options = question.asking.options
    if not options:
        raise BadInput("option", option, f"a text: {question.label} has no options")
    if isinstance(option, bool) or not isinstance(option, int) or not 1 <= option <= len(options):
        listed = ", ".join(f"{n}) {one_line(text, 40)}" for n, text in enumerate(options, 1))
        raise BadInput("option", option, f"the number of one of {question.label}'s options: {listed}")
    return options[option - 1]


def _or_option(question: Question) -> str:
    count = len(question.asking.options)
    return f", or --option 1 to {count}" if count else ""


def _refuse_over(goal: Goal) -> None:
    if goal.status is GoalStatus.DONE:
        raise NotAllowed(f"goal {goal.uid}: is done and asks nothing; `goalmode edit {goal.uid}` reopens it")
    if goal.status is GoalStatus.ABORTED:
        raise NotAllowed(f"goal {goal.uid}: is aborted and can only be read, so `answer` is refused")
