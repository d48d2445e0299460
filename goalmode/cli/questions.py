"""`questions`, `answer` and `note`: what a goal asks, and what it is told."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from goalmode.cli import asked
from goalmode.cli.options import UTF8, Common, common, given_text
from goalmode.cli.output import say, say_json, table
from goalmode.cli.stores import changing, command_here, looking, reading
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.notes import Note
from goalmode.domain.text import one_line
from goalmode.errors import BadInput
from goalmode.inspection import questions as inspected
from goalmode.inspection.seen import iso
from goalmode.orchestrator.notes import add_note, withdraw_note
from goalmode.orchestrator.questions import Answered, answer_question
from goalmode.state import notes
from goalmode.state import reading as rows
from goalmode.state.store import Store

MAX_TEXT = 300
"""Characters of a note in a list."""

_GOAL = click.argument("goal_id", metavar="ID", type=UTF8)
_WORDS = click.argument("words", metavar="[QID] [TEXT|-|@FILE]", nargs=-1, type=UTF8)


@click.command()
@click.argument("goal_id", metavar="[ID]", type=UTF8, required=False)
@common
def questions(goal_id: str | None, common: Common) -> int:
    """List what goals ask: the open questions of all, or every question of one with its answer."""
    if goal_id is not None:
        with reading(common, goal_id) as (store, goal):
            found = inspected.of_goal(store, goal)
    elif rows.exists(common.store):
        with looking(common) as store:
            found = inspected.open_everywhere(store)
    else:
        found = []
    if common.json:
        say_json(found)
    elif found:
        asked.listed(found)
    elif not common.quiet:
        say("No goal asks anything." if goal_id is None else "It has asked nothing.")
    return 0


@click.command()
@_GOAL
@_WORDS
@click.option("--option", metavar="N", type=int, help="Take one of the question's options, by its number.")
@common
def answer(goal_id: str, words: tuple[str, ...], option: int | None, common: Common) -> int:
    """Answer a question of a goal; one that waits for it is due. QID, such as Q2, says which one if several are open.

    Nothing runs yet: `goalmode run ID` wakes the goal, if nothing else does.
    """
    label, text = _answer_words(words, option)
    with changing(common, goal_id) as (store, goal):
        if label is None and text is not None:
            _refuse_a_lone_id(store, goal, text)
        given = None if text is None else given_text(text, "answer")
        done = answer_question(store, goal, given, option=option, question=label)
    if common.json:
        question = inspected.described(done.question)
        say_json({"goal": done.goal.uid, **question, "goal_status": done.goal.status.value})
    elif not common.quiet:
        say(_told(done, common))
    return 0


@click.command()
@_GOAL
@click.argument("text", metavar="[TEXT|-|@FILE]", type=UTF8, required=False)
@click.option("--replaces", metavar="N", type=click.IntRange(1), help="The note no longer stands; TEXT does.")
@click.option("--withdraw", metavar="N", type=click.IntRange(1), help="The note no longer stands.")
@common
def note(goal_id: str, text: str | None, replaces: int | None, withdraw: int | None, common: Common) -> int:
    """Tell a goal something. A running wakeup hears it before its next model call, every later one has it too.

    Without TEXT the notes are listed with their numbers.
    """
    if withdraw is not None and (text is not None or replaces is not None):
        raise click.UsageError(
            "--withdraw takes a note back and says nothing new: leave out TEXT and --replaces."
        )
    if replaces is not None and text is None:
        raise click.UsageError("--replaces needs the TEXT that takes the note's place.")
    if withdraw is None and text is None:
        with reading(common, goal_id) as (store, goal), store.reading() as connection:
            _list(notes.of_goal(connection, goal.id), common)
        return 0
    with changing(common, goal_id) as (store, goal):
        if withdraw is not None:
            done = withdraw_note(store, goal, withdraw)
        else:
            done = add_note(store, goal, given_text(text or "", "note"), replaces=replaces)
    if common.json:
        say_json({"goal": goal.uid, **_described(done)})
    elif not common.quiet:
        state = "withdrawn" if done.withdrawn else "stands from now on"
        say(f"{goal.uid}: note {done.number} {state}{_waits(goal, common)}")
    return 0


def _answer_words(words: tuple[str, ...], option: int | None) -> tuple[str | None, str | None]:
    """The question's id and the text of an answer, each None where it is not given."""
    if option is not None:
        if len(words) > 1:
            raise click.UsageError("give TEXT or --option N, not both.")
        return (words[0] if words else None), None
    match words:
        case (text,):
            return None, text
        case (label, text):
            return label, text
        case ():
            raise click.UsageError("an answer is missing: TEXT, or --option N.")
        case _:
            raise click.UsageError("too many words: put an answer of several words into quotes.")


def _refuse_a_lone_id(store: Store, goal: Goal, text: str) -> None:
    """A question's id alone is most likely half of a command; whoever means it says it twice."""
    label = text.strip().upper()
    if label in [q["id"] for q in inspected.of_goal(store, goal) if q["status"] == "open"]:
        expected = f"an answer; {label} names a question: goalmode answer {goal.uid} {label} TEXT"
        raise BadInput("answer", text, expected)


def _told(done: Answered, common: Common) -> str:
    line = f"{done.goal.uid}: {done.question.label} is answered"
    if done.goal.status is GoalStatus.ACTIVE:
        run = command_here(common, f"goalmode run {done.goal.uid}")
        return f"{line}; the goal goes on, if nothing runs it: {run}"
    resume = command_here(common, f"goalmode resume {done.goal.uid}")
    return f"{line}; the goal is {done.goal.status}: {resume}"


def _waits(goal: Goal, common: Common) -> str:
    """A goal that waits for an answer is not woken by a note."""
    if goal.status is not GoalStatus.WAITING_USER:
        return ""
    return f"; the goal still waits for an answer: {command_here(common, f'goalmode answer {goal.uid} TEXT')}"


def _list(found: list[Note], common: Common) -> None:
    if common.json:
        say_json([_described(one) for one in found])
    elif found:
        table(
            ["NOTE", "STATE", "TEXT"], [[str(n.number), _state(n), one_line(n.text, MAX_TEXT)] for n in found]
        )
    elif not common.quiet:
        say("There are no notes.")


def _state(one: Note) -> str:
    if one.withdrawn:
        return "withdrawn"
    return "stands" if one.replaced_by is None else f"replaced by {one.replaced_by}"


def _described(one: Note) -> dict[str, Any]:
    return {**asdict(one), "at": iso(one.at), "stands": one.stands}
