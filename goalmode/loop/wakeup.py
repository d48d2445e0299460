"""THE PAGE: one wakeup, from its rebuilt context to its explicit, stored ending."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import anyio

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.steps import Claim, Close, Nudge, Rerender, Resend, RunTools, Transition
from goalmode.errors import Fenced, Stopped, StoreError
from goalmode.loop.act import Done, answer, ending, refuse, run_tools, warn
from goalmode.loop.claim import put_claim
from goalmode.loop.commit import commit
from goalmode.loop.decide import decide
from goalmode.loop.forced import by_default, rescued
from goalmode.loop.outside import with_outside
from goalmode.loop.ports import Ports, Wakeup
from goalmode.loop.settlement import close, settle
from goalmode.loop.stop import under_watch
from goalmode.loop.transition import make_transition
from goalmode.loop.turn import Run, ask, next_call, wrapped_up
from goalmode.loop.window import begin_anew, shrink
from goalmode.state.checks import CheckResult
from goalmode.state.closing import ClaimSuperseded
from goalmode.tools.workers import seen_through


async def run_wakeup(wake: Wakeup, ports: Ports) -> Exit:
    """Take turns until something ends the wakeup, and store how it ended.

    Returns the ending as stored. If another owner took the goal over, nothing is stored and INTERRUPTED is returned.

    Raises:
        StoreError: the store cannot be written; nothing is closed, and the next claim finds the wakeup INTERRUPTED.
        The event loop's cancellation, after the wakeup has been closed as USER_ABORTED.
    """
    run = Run(wake, ports)
    try:
        run.emit(
            "wakeup_started",
            context_tokens=wake.context_tokens,
            max_turns=wake.goal.settings.max_turns,
            fence=wake.fence,
            model=ports.profile.name,
            wire=ports.profile.wire,
        )
        return await _to_its_end(run)
    except Fenced:
        await seen_through(wake.fenced)
        return Exit(ExitReason.INTERRUPTED, "another process has taken the goal over", {"fenced": True})
    finally:
        wake.let_go()


async def _to_its_end(run: Run) -> Exit:
    try:
        return await under_watch(lambda: with_outside(run, _take_turns), run.wake, run.ports)
    except Stopped as stopped:
        return await _close(run, stopped.exit)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends the wakeup for a stored reason
        return await _close(run, _engine_error(error))
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _close(run, Exit(ExitReason.USER_ABORTED, "the run was cancelled", {"control": "pause"}))
        raise


async def _take_turns(run: Run) -> Exit:
    while True:
        try:
            call = await next_call(run)
            reply = await ask(run, call)
        except Stopped as stopped:
            await rescued(run, stopped)
            continue
        if reply is None:
            continue
        run.history = run.history.replied(reply.stop)
        goal = run.wake.goal
        match decide(reply, run.history, goal.settings, call.last, movement=goal.current):
            case RunTools() as tools:
                done = await run_tools(run, call, tools, reply.calls)
            case Claim() as claim:
                done = await put_claim(run, call, claim, reply)
            case Transition() as transition:
                done = await make_transition(run, call, transition, reply.calls)
            case Nudge() as nudge:
                done = answer(run, nudge)
            case Rerender(refused):
                done = refuse(run, refused, "not executed: the reply was cut off, the model's window is full")
                shrink(run)
            case Resend():
                done = Done(run.wake.work)
                run.history = replace(run.history, pauses=run.history.pauses + 1)
            case Close(exit, refused):
                done = refuse(run, refused, "not executed: the wakeup ended with this reply")
                done.exit = exit
            case step:
                assert_never(step)
        run.history = run.history.ran(done.records, new_phase=done.new_phase)
        warn(run, done)
        end = await by_default(run, done, ending(run, call, done))
        await commit(run, done, last=end is not None)
        if done.afresh:
            await begin_anew(run, keep_turns=False)
        if end is None:
            continue
        if end is call.last and call.limit is not None:
            end = await wrapped_up(run, call.limit)
        end = await settle(run, call, end, done.checks)
        try:
            return await _close(run, end, done.checks)
        except ClaimSuperseded:
            continue  # The edit is said at the next turn's boundary.


async def _close(run: Run, exit: Exit, checks: Sequence[CheckResult] = ()) -> Exit:
    """End the wakeup in the store, then tell; the closing event is always the last."""
    with anyio.CancelScope(shield=True):
        if run.ports.outside is not None:
            await run.ports.outside.close()  # Once it is stored, another process may begin the next wakeup.
        stored = await close(run, exit, checks)
    run.emit(
        "wakeup_closed",
        exit_reason=stored.reason.value,
        detail=stored.detail,
        facts=dict(stored.facts),
        turns=run.history.turn,
    )
    return stored


def _engine_error(error: Exception) -> Exit:
    """Our own failure, with its traceback and without the values of its variables."""
    trace = "".join(traceback.format_exception(error))[-8000:]
    facts = {"error": type(error).__name__, "traceback": trace}
    return Exit(ExitReason.ENGINE_ERROR, f"{type(error).__name__}: {error}"[:500], facts)
