"""From one movement of the workflow to another, in the middle of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from goalmode.domain.calls import CallOutcome
from goalmode.domain.messages import ToolCall, User
from goalmode.domain.steps import Transition
from goalmode.loop.act import Asked, Done, run_control
from goalmode.loop.report import leave_report
from goalmode.loop.turn import Call, Run
from goalmode.state.movements import Moved
from goalmode.tools.builtin.transition import parse_transition

MAX_IDLE_MOVES = 3
"""Transitions in a row with no successful read or write between them; further ones are refused."""


async def make_transition(run: Run, call: Call, step: Transition, reply: Sequence[ToolCall]) -> Done:
    """Run the ordinary calls, then go on in the movement that is named. Every call of the reply gets its result."""
    return await run_control(
        run,
        call,
        step.call,
        siblings=step.siblings,
        surplus=step.surplus,
        reply=reply,
        act=partial(_go, run),
    )


async def _go(run: Run, done: Done, asked: Asked) -> None:
    parsed = parse_transition(asked.arguments, run.wake.goal.movement, run.ports.redact)
    idle = run.history.moves >= MAX_IDLE_MOVES and not any(r.substantive for r in done.records)
    if isinstance(parsed, str):
        done.answer(asked.record(CallOutcome.FAILED, parsed))
    elif idle:
        refused = (
            f"transition: refused, {run.history.moves} in a row with no work between them; work here first"
        )
        done.answer(asked.record(CallOutcome.DENIED, refused))
    else:
        done.answer(asked.record(CallOutcome.SUCCESS, f"accepted: transition to {parsed.to}"))
        go_on(run, done, Moved(parsed.to, parsed.reason))


def go_on(run: Run, done: Done, moved: Moved, *, claimed: bool = False) -> None:
    """Begin another movement on the same conversation: its instruction follows the results of the reply's calls.

    What is left leaves its report; where it was a verification that found nothing, the bar is raised.

    Args:
        claimed: by a claim that stood.
    """
    nothing = leave_report(run, done, moved.reason)
    done.moved, done.new_phase = replace(moved, found_nothing=nothing), True
    run.entered_with = done.work
    if nothing:
        done.prompts.append(run.prompt("raise_bar", checked=claimed))
    goal = replace(run.wake.goal, movement=moved.to)
    done.prompts.append(User(run.ports.entered(goal, bool(done.work.pending))))
