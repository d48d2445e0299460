"""Forced exits: what the movement's `default_next` makes of them. The one place where it is asked.

An ending that somebody decided (the user, the model, a limit, the provider) is never changed here. After replies or a
conversation that were cut, `goalmode.domain.workflow.overflow_next` leaves neither success nor a question.
"""

from __future__ import annotations

from dataclasses import replace

from goalmode.domain import workflow
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import User
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.errors import Stopped
from goalmode.loop.act import Done
from goalmode.loop.claim import rule
from goalmode.loop.turn import Run
from goalmode.loop.window import begin_anew
from goalmode.state.movements import Moved
from goalmode.tools.builtin.control import ClaimArguments, ClaimStatus
from goalmode.tools.workers import in_worker


async def by_default(run: Run, done: Done, end: Exit | None) -> Exit | None:
    """The turn's ending, by `default_next` where it is a forced one; None: the wakeup goes on."""
    if end is None:
        return None
    match workflow.forced_next(end.reason, run.wake.goal.current.default_next):
        case workflow.ABORT:
            return end
        case workflow.ASK:
            return _question(run, end)
        case workflow.COMPLETE:
            return await _claim(run, done, end)
        case movement:
            return _next(run, done, end, movement)


async def rescued(run: Run, stopped: Stopped) -> None:
    """Let another movement take over from one that could not even make its next call.

    Raises:
        Stopped: none does.
    """
    done = Done(run.wake.work)
    if stopped.exit is run.wake.over:
        raise stopped  # What was over before it began has no movement to leave.
    end = await by_default(run, done, stopped.exit)
    if end is not None or done.moved is None:
        raise Stopped(end or stopped.exit) from None
    await in_worker(run.wake.move, done.moved)
    await begin_anew(run, keep_turns=False)


def _next(run: Run, done: Done, end: Exit, movement: str) -> Exit | None:
    """Begin the movement with a context of its own. Not where that led nowhere before: then there is no point in it."""
    if run.history.forced_in_vain:
        return end
    done.moved = Moved(movement, f"{end.reason}: {end.detail}", forced=True)
    done.afresh = True
    run.history, run.entered_with = run.history.forced(), done.work
    return None


async def _claim(run: Run, done: Done, end: Exit) -> Exit | None:
    """A claim that nobody made: every check and deliverable must hold, and it cites nothing."""
    claim = ClaimArguments(ClaimStatus.SUCCESS, f"claimed by default after {end.reason}: {end.detail}")
    ruling = await rule(run, done, claim, by="default_next", phase=run.history.phase_substantive)
    if not ruling.stands:
        return replace(end, facts={**end.facts, "default_next": workflow.COMPLETE, "missing": ruling.missing})
    if ruling.exit is None:
        done.prompts.append(User(ruling.told))
        run.history = run.history.forced()
    return ruling.exit


def _question(run: Run, end: Exit) -> Exit:
    movement = run.wake.goal.movement
    missing = f"how to go on: the movement {movement} ended with {end.reason}, {end.detail}"
    why = f"the workflow says to ask when the movement {movement} is forced to end"
    facts = {
        **end.facts,
        "missing_info": missing,
        "why_no_default": why,
        "forced_by": end.reason.value,
        "forced_detail": end.detail,
    }
    question = Asking(QuestionKind.INPUT, missing, why)
    return Exit(ExitReason.NEEDS_USER_INPUT, missing, facts, question=question)
