"""What the forms of a goal's page do: each calls the function that the command of its name calls. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from starlette.responses import Response

from goalmode.domain.goal import Control, Goal
from goalmode.errors import BadInput, NotAllowed
from goalmode.orchestrator.accept import accept as accept_names
from goalmode.orchestrator.goals import parse_deadline, raised, resume_goal, stop_goal
from goalmode.orchestrator.notes import add_note
from goalmode.orchestrator.questions import answer_question
from goalmode.state.store import Store
from goalmode.web import goal as goal_page
from goalmode.web.ask import Ask

Action = Callable[[Store, Goal, Mapping[str, str]], str]
"""(the store, the goal, the form) -> what was done, a word of `goal.DONE`."""


def pause(store: Store, goal: Goal, form: Mapping[str, str]) -> str:
    _, running = stop_goal(store, goal, Control.PAUSE)
    return "pausing" if running else "paused"


def abort(store: Store, goal: Goal, form: Mapping[str, str]) -> str:
    _, running = stop_goal(store, goal, Control.ABORT)
    return "aborting" if running else "aborted"


def resume(store: Store, goal: Goal, form: Mapping[str, str]) -> str:
    """Makes the goal due, with raised limits if any are given; whoever serves the store wakes it."""
    changes = {name: form[name].strip() for name in goal_page.RAISED if form.get(name, "").strip()}
    limits = raised(goal.limits, changes)
    deadline = form.get("deadline", "").strip()
    if deadline:
        limits = replace(limits, deadline=parse_deadline(deadline, "deadline", store.clock.now()))
    resume_goal(store, goal, limits=limits)
    return "resumed"


def note(store: Store, goal: Goal, form: Mapping[str, str]) -> str:
    add_note(store, goal, form.get("text", ""))
    return "noted"


def answer(store: Store, goal: Goal, form: Mapping[str, str]) -> str:
    """The words that were written; without any, the option that was chosen."""
    option, text = form.get("option", ""), form.get("text", "")
    number = int(option) if option.isascii() and option.isdigit() and len(option) < 4 else None
    if option and number is None:
        raise BadInput("option", option, "the number of an option")
    label = form.get("question", "")
    if text.strip() or number is None:
        answer_question(store, goal, text, question=label)
    else:
        answer_question(store, goal, option=number, question=label)
    return "answered"


def accept(store: Store, goal: Goal, form: Mapping[str, str]) -> str:
    """A requirement that only a person can accept, or a protected file as it is now."""
    accept_names(store, goal, [form.get("name", "")])
    return "accepted"


ACTIONS: Mapping[str, Action] = {
    "pause": pause,
    "abort": abort,
    "resume": resume,
    "note": note,
    "answer": answer,
    "accept": accept,
}
"""By the last part of their paths."""


def act(ask: Ask, *, action: Action) -> Response:
    """Do what a form asks, and show the goal; where it is refused, with the reason and what was written."""
    with ask.stores.goal_alone(ask.uid, writing=True) as (store, goal):
        try:
            return ask.to_goal(goal.uid, action(store, goal, ask.form))
        except (BadInput, NotAllowed) as error:
            status = 400 if isinstance(error, BadInput) else 409
            return goal_page.answer(ask, store, goal, status=status, problem=str(error), given=ask.form)


def confirm(ask: Ask) -> Response:
    """Asks before a goal is stopped for good."""
    with ask.stores.goal(ask.uid) as (_, goal):
        return ask.page("abort.html", goal={"id": goal.uid, "objective": goal.objective})
