"""Settlement: what a long task has learned is kept, once, between its ending and its closing.

The ending is stored as pending first. Whatever happens from then on, the wakeup closes with it: settlement can neither
change an ending nor hold it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from goalmode.domain import budget
from goalmode.domain.budget import MIN_OUTPUT, Affordable
from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.memory import MAX_ATTEMPTS, SettlementState
from goalmode.domain.messages import Reply, Usage, User
from goalmode.domain.profile import Protocol
from goalmode.domain.signals import StopReason
from goalmode.errors import Stopped
from goalmode.loop.act import refuse, run_calls
from goalmode.loop.commit import commit
from goalmode.loop.guards.settlement import settles
from goalmode.loop.longterm import invitation
from goalmode.loop.turn import Call, Run, ask
from goalmode.loop.window import begin_anew
from goalmode.state.checks import CheckResult
from goalmode.state.closing import ClaimSuperseded
from goalmode.state.settlement import Pending
from goalmode.state.tables import Purpose
from goalmode.tools.builtin.memory import NOTHING, REMEMBER
from goalmode.tools.registry import Registry
from goalmode.tools.workers import in_worker, seen_through

_WHOLE = frozenset({StopReason.TOOL_USE, StopReason.END_TURN, StopReason.STOP_SEQUENCE})
"""Endings of a reply that is all there, so that its calls may run."""

_TIME = ("active_seconds", "deadline")


async def settle(run: Run, call: Call, end: Exit, checks: Sequence[CheckResult]) -> Exit:
    """The ending that the wakeup closes with: `end`, with how settlement went in its facts if it was due."""
    tool = run.ports.registry.lookup(REMEMBER)
    if tool is None:
        return end
    # An ending that is reached is not lost to a stop at this moment.
    goal = await seen_through(run.wake.longterm.goal)
    if not settles(goal, end, wrapped_up=call.purpose is Purpose.WRAP_UP):
        return end
    run.pending = pending = Pending(end, tuple(checks), run.wake.goal.revision)
    await seen_through(run.wake.longterm.hold, pending)
    offered = Registry([tool, NOTHING] if run.ports.profile.protocol is Protocol.JSON else [tool])
    run.emit("settling", turns=goal.stretch_turns)
    settlement, why = await _attempts(run, end, offered)
    await seen_through(run.wake.longterm.finish, settlement)
    run.pending = pending = pending.after(settlement, why)
    run.emit("settled", settlement=settlement.value, detail=why)
    return pending.exit


async def close(run: Run, exit: Exit, checks: Sequence[CheckResult]) -> Exit:
    """End the wakeup in the store: with the pending ending if there is one, whatever came after it.

    A user's stop beats a pending ending only if that is no accepted claim.

    Raises:
        ClaimSuperseded: the goal was edited while its completion was being checked, or while it settled.
    """
    pending, run.pending = run.pending, None
    if pending is None:
        return await in_worker(run.wake.close, exit, tuple(checks))
    if pending.settlement is SettlementState.STARTED:  # Cut off, by what `exit` says.
        pending = pending.after(SettlementState.FAILED, exit.detail)
        await in_worker(run.wake.longterm.finish, SettlementState.FAILED)
    if exit.reason is ExitReason.USER_ABORTED and not pending.accepted:
        return await in_worker(run.wake.close, exit)
    try:
        return await in_worker(run.wake.close, pending.exit, pending.checks)
    except ClaimSuperseded:
        await in_worker(run.wake.longterm.withdraw)
        if exit.reason is ExitReason.CURRENT_TASK_DONE:
            raise
        return await in_worker(run.wake.close, exit)


async def _attempts(run: Run, end: Exit, offered: Registry) -> tuple[SettlementState, str]:
    """How settlement went, and why it did not go well."""
    why = ""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        call = await _affordable(run, attempt, end, offered)
        if isinstance(call, str):
            return (SettlementState.FAILED, why) if why else (SettlementState.SKIPPED, call)
        why = await _attempt(run, call)
        if not why:
            return SettlementState.DONE, ""
    return SettlementState.FAILED, why


async def _affordable(run: Run, attempt: int, end: Exit, offered: Registry) -> Call | str:
    """The next call, its cost reserved and its prompt said; or why there is none."""
    await in_worker(run.wake.boundary)
    prompts = await in_worker(partial(_prompts, run, attempt, offered))
    size = sum(map(run.ports.count_message, prompts))
    if run.window.full(run.tokens + size):
        try:
            await begin_anew(run)
        except Stopped as stopped:
            return stopped.exit.detail
    goal, profile = run.wake.goal, run.ports.profile
    verdict = budget.next_call(
        replace(goal.limits, turns=None, wakeups=None),  # It is no turn.
        goal.spent,
        run.ports.clock.now(),
        created_at=goal.created_at,
        input_tokens=run.tokens + size,
        cached_tokens=run.usage.cached,
        max_output=profile.max_output,
        price=profile.price,
    )
    hit = verdict.hit
    if hit is not None and (verdict.affordable is Affordable.NOTHING or hit.kind in _TIME):
        return str(hit)
    room = profile.window - run.tokens - size
    if room < MIN_OUTPUT or run.window.full(run.tokens + size):
        return f"the conversation has {run.tokens} tokens, which leaves no room for it"
    run.say(*prompts)
    allowance = min(verdict.max_output, room)
    await in_worker(run.wake.longterm.attempt, Usage(input=run.tokens, output=allowance))
    return Call(Purpose.SETTLEMENT, allowance, frozenset({Effect.STATE}), last=end, registry=offered)


def _prompts(run: Run, attempt: int, offered: Registry) -> list[User]:
    """What asks for the next attempt. A request that got no reply is simply made again."""
    if attempt > 1 and isinstance(run.messages[-1], User):
        return []
    return [User(invitation(run, closing=True, attempt=attempt, nothing=NOTHING.name in offered.names))]


async def _attempt(run: Run, call: Call) -> str:
    """Make one call and what it asks for; returns why it came to nothing, or an empty text.

    It did if the reply ends its turn, or stored something. Calls of other tools are answered with an error.
    """
    try:
        reply = await ask(run, call)
    except (
        Stopped
    ) as stopped:  # The provider failed: what it said is in the facts of the ending that it precedes.
        return str(stopped.exit.facts["last_call"])
    assert reply is not None, "a call with an ending behind it begins nothing anew"
    if reply.stop not in _WHOLE:
        done = refuse(run, reply.calls, "not executed: the reply was cut off or unreadable")
    else:
        done = await run_calls(run, call, reply.calls, reply.calls)
    await commit(run, done, last=True)
    kept = any(r.effect is Effect.STATE and r.outcome is CallOutcome.SUCCESS for r in done.records)
    return "" if kept or _nothing_to_keep(reply) else _fault(reply, [r.shown for r in done.records])


def _nothing_to_keep(reply: Reply) -> bool:
    return reply.stop in (StopReason.END_TURN, StopReason.STOP_SEQUENCE) and not reply.calls


def _fault(reply: Reply, shown: Sequence[str]) -> str:
    if reply.stop not in _WHOLE or not shown:
        return f"the reply ended with {reply.stop}"
    return shown[0][:300]
