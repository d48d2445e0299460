"""Doing what was decided: run the calls, judge the claim, or answer with a prompt. Each returns what came of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anyio import to_thread

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import Message, ToolCall, ToolResult
from goalmode.domain.snapshot import Action
from goalmode.domain.steps import Claim, Nudge
from goalmode.domain.work import WorkState
from goalmode.loop.turn import Call, Run
from goalmode.settle.case import Case, Judgement
from goalmode.state.checks import CheckResult
from goalmode.state.tables import Purpose
from goalmode.tools.builtin.control import ClaimArguments, ClaimStatus, parse_claim
from goalmode.tools.dispatch import dispatch
from goalmode.tools.plan import plan
from goalmode.tools.registry import ToolContext

MAX_FAILED_CONTROLS = 5
"""Rejected or failed control calls and calls to unknown tools, together, that end a wakeup."""

EARNED_AFTER = 3
"""Committed wakeups in which the same obstacle was met, after which a goal may be called blocked."""


@dataclass
class Done:
    """What a turn came to.

    Attributes:
        records: of its calls, in order.
        messages: that follow the reply: one result for each call, then prompts.
        exit: the ending it leads to, None to go on.
    """

    work: WorkState
    records: list[CallRecord] = field(default_factory=list)
    unstored: list[CallRecord] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    checks: tuple[CheckResult, ...] = ()
    exit: Exit | None = None
    rejected: int = 0

    def answer(self, record: CallRecord) -> None:
        """One more call has its result."""
        self.records.append(record)
        self.unstored.append(record)
        self.messages.append(ToolResult(record.call_id, record.tool, record.shown))


async def run_calls(
    run: Run, call: Call, calls: Sequence[ToolCall], *, reply: Sequence[ToolCall] = ()
) -> Done:
    """Run the calls in the order in which they were asked for; all of them at once if all only read.

    Args:
        reply: all calls of the reply, where they are more than `calls`.
    """
    done = Done(run.wake.work)
    places = _places(reply or calls)

    async def on_record(record: CallRecord) -> None:
        record = replace(record, position=places[record.call_id])
        # A lone call's result goes with the outcome; beside others each is committed by itself.
        if len(places) == 1 and record.outcome is not CallOutcome.INTERRUPTED:
            done.unstored.append(record)
        else:
            await to_thread.run_sync(run.wake.record, record)
            tell(run, record)

    for one in calls:
        run.emit("tool_started", turn=run.history.turn, call_id=one.id, tool=one.name)
    dispatched = await dispatch(
        calls,
        registry=run.ports.registry,
        context=_context(run),
        allowed=call.allowed,
        on_record=on_record,
        key=lambda call_id: f"{run.wake.goal.uid}:{run.wake.seq}:{run.seq}:{call_id}",
        stop=lambda: run.ports.stop() is not None or run.wake.lost,
        wakeup=run.wake.seq,
    )
    done.records = list(dispatched.records)
    done.messages = [ToolResult(r.call_id, r.tool, r.shown) for r in dispatched.records]
    done.work, done.exit = dispatched.work, dispatched.exit
    return done


async def put_claim(run: Run, call: Call, claim: Claim, reply: Sequence[ToolCall]) -> Done:
    """Run the ordinary calls, then judge the claim. Every call of the reply gets its result."""
    done = Done(run.wake.work)
    if claim.siblings:
        done = await run_calls(run, call, claim.siblings, reply=reply)
    [planned] = plan([claim.complete], run.ports.registry, call.allowed)
    places = _places(reply)
    position = places[claim.complete.id]
    if planned.problem:
        done.answer(_record(claim.complete, position, CallOutcome.FAILED, planned.problem))
    else:
        parsed = parse_claim(planned.arguments or {}, run.ports.redact)
        if isinstance(parsed, str):
            done.answer(_record(claim.complete, position, CallOutcome.FAILED, parsed))
        else:
            await _judge(run, done, claim.complete, parsed, position)
    for surplus in claim.surplus:
        refused = "refused: a reply may claim completion only once"
        done.answer(_record(surplus, places[surplus.id], CallOutcome.DENIED, refused))
    return done


def _places(reply: Sequence[ToolCall]) -> dict[str, int]:
    """Where in its reply each call stood: under that number its result is stored."""
    return {call.id: position for position, call in enumerate(reply)}


def tell(run: Run, record: CallRecord) -> None:
    """Report a call whose result has been committed."""
    run.emit(
        "tool",
        turn=run.history.turn,
        call_id=record.call_id,
        tool=record.tool,
        brief=record.brief,
        outcome=record.outcome.value,
        exit_code=record.exit_code,
        milliseconds=record.milliseconds,
    )


def answer(run: Run, nudge: Nudge) -> Done:
    """Refuse the reply's calls, if it has any, then say why it was not enough."""
    done = refuse(
        run, nudge.refused, "not executed: the reply was cut off or unreadable; send the call again"
    )
    history = run.history
    values: dict[str, Any] = {}
    run.recovering = nudge.recovery
    match nudge.prompt:
        case "recovery":
            run.history = replace(history, recoveries=history.recoveries + 1)
            values = {
                "attempt": run.history.recoveries,
                "of": run.wake.goal.settings.max_recoveries,
                **_open(run),
            }
        case "nudge":
            run.history = replace(history, nudged_at=history.substantive)
            values = _open(run)
        case "truncated":
            run.history = replace(history, truncations=history.truncations + 1)
            values = {"calls": len(nudge.refused)}
        case "malformed":
            run.history = replace(history, malformed=history.malformed + 1)
    done.messages.append(run.prompt(nudge.prompt, **values))
    return done


def _open(run: Run) -> dict[str, Any]:
    """What a model that stopped could do next."""
    pending = tuple(item.label for item in run.wake.work.pending)
    return {"pending": pending, "missing": run.ports.absent(run.wake.goal)}


def refuse(run: Run, calls: Sequence[ToolCall], why: str) -> Done:
    done = Done(run.wake.work)
    for position, call in enumerate(calls):
        done.answer(_record(call, position, CallOutcome.SKIPPED, why, effect=_effect(run, call)))
    return done


def ending(run: Run, call: Call, done: Done) -> Exit | None:
    """The ending that the turn leads to, None to go on.

    After a wrap-up only success beats the spent budget; after a handoff every explicit ending beats the turn quota.
    """
    if call.purpose is Purpose.WRAP_UP:
        succeeded = done.exit is not None and done.exit.reason is ExitReason.CURRENT_TASK_DONE
        return done.exit if succeeded else call.last
    return done.exit or call.last or _failing(run, done)


def _failing(run: Run, done: Done) -> Exit | None:
    """The ending of a wakeup whose control calls keep failing."""
    failed = run.history.failed_controls
    if failed < MAX_FAILED_CONTROLS:
        return None
    last = next((r.shown for r in reversed(done.records) if r.outcome is not CallOutcome.SUCCESS), "")
    detail = f"{failed} control calls were rejected or failed; the last one: {last[:300]}"
    return Exit(ExitReason.NO_PROGRESS, detail, {"failed_controls": failed})


async def _judge(run: Run, done: Done, call: ToolCall, claim: ClaimArguments, position: int) -> None:
    match claim.status:
        case ClaimStatus.SUCCESS:
            await _judge_success(run, done, call, claim, position)
        case ClaimStatus.NEEDS_USER_INPUT:
            facts = {
                "missing_info": claim.missing_info,
                "why_no_default": claim.why_no_default,
                "summary": claim.summary,
            }
            done.exit = Exit(ExitReason.NEEDS_USER_INPUT, claim.missing_info, facts)
            done.answer(_record(call, position, CallOutcome.SUCCESS, "accepted: the user is asked"))
        case ClaimStatus.BLOCKED:
            await _judge_blocked(run, done, call, claim, position)


async def _judge_success(run: Run, done: Done, call: ToolCall, claim: ClaimArguments, position: int) -> None:
    goal = run.wake.goal
    phase = run.history.phase_substantive + sum(r.substantive for r in done.records)
    if goal.settings.until_budget and phase == 0:
        done.rejected += 1
        done.answer(_record(call, position, CallOutcome.DENIED, run.ports.prompt("recovery", **_open(run))))
        return
    actions = [*run.wake.actions, *(action(run, r) for r in done.records)]
    key = f"{goal.uid}:{run.wake.seq}:{run.seq}:{call.id}"
    environment = {**run.ports.environment, "GOALMODE_IDEMPOTENCY_KEY": key}
    case = Case(goal, done.work, claim.evidence, actions, run.wake.gate, call.id, environment)
    judgement = await run.ports.judge(case)
    done.checks = judgement.checks
    if not judgement.stands:
        done.rejected += 1
        shown = run.ports.prompt("rejected", missing=judgement.missing)
        done.answer(_record(call, position, CallOutcome.DENIED, shown))
    elif goal.settings.until_budget:
        run.history = replace(run.history, phase_substantive=0)
        done.answer(_record(call, position, CallOutcome.SUCCESS, run.ports.prompt("raise_bar")))
    else:
        done.exit = _success(claim, judgement)
        done.answer(_record(call, position, CallOutcome.SUCCESS, "accepted: complete"))


def _success(claim: ClaimArguments, judgement: Judgement) -> Exit:
    facts = {"basis": judgement.basis, "summary": claim.summary, "evidence": list(claim.evidence)}
    return Exit(ExitReason.CURRENT_TASK_DONE, f"{claim.summary} ({judgement.basis})", facts)


async def _judge_blocked(run: Run, done: Done, call: ToolCall, claim: ClaimArguments, position: int) -> None:
    """Blocked is earned: the same obstacle in several committed wakeups."""
    met = await to_thread.run_sync(run.wake.met_obstacle, claim.obstacle)
    if met >= EARNED_AFTER:
        facts = {"obstacle": claim.obstacle, "wakeups": met, "summary": claim.summary}
        done.exit = Exit(ExitReason.TASK_BLOCKED, f"{claim.obstacle} (met in {met} wakeups)", facts)
        done.answer(_record(call, position, CallOutcome.SUCCESS, "accepted: blocked"))
        return
    run.history = replace(run.history, unearned_blocks=run.history.unearned_blocks + 1)
    done.rejected += 1
    shown = run.ports.prompt("not_blocked", obstacle=claim.obstacle, met=met, needed=EARNED_AFTER)
    done.answer(_record(call, position, CallOutcome.DENIED, shown))
    if run.history.unearned_blocks >= 2:
        facts = {"obstacle": claim.obstacle, "wakeups": met, "waited": False}
        done.exit = Exit(ExitReason.YIELDED, f"says it is blocked: {claim.obstacle}", facts)


def _context(run: Run) -> ToolContext:
    return ToolContext(
        workspace=run.ports.workspace,
        gate=run.wake.gate,
        work=run.wake.work,
        environment=run.ports.environment,
        substantive=run.history.substantive,
        redact=run.ports.redact,
        now=run.ports.clock.now(),
    )


def _record(
    call: ToolCall, position: int, outcome: CallOutcome, shown: str, effect: Effect | None = Effect.CONTROL
) -> CallRecord:
    return CallRecord(
        position,
        call.id,
        call.name,
        effect,
        outcome,
        shown,
        body=shown,
        size=len(shown.encode()),
        brief=_brief(call),
    )


def _brief(call: ToolCall) -> str:
    """The status of a claim, for lists."""
    try:
        arguments: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    return str(arguments.get("status", ""))[:40] if isinstance(arguments, dict) else ""


def _effect(run: Run, call: ToolCall) -> Effect | None:
    tool = run.ports.registry.lookup(call.name)
    return tool.effect if tool else None


def action(run: Run, record: CallRecord) -> Action:
    """The call as later claims may cite it."""
    return Action(
        run.wake.seq, run.seq, record.call_id, record.tool, record.brief, record.outcome, record.exit_code
    )
