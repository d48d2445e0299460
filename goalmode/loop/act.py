"""Doing what was decided: run the calls, or answer with a prompt. Each returns what came of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import Message, ToolCall, ToolResult
from goalmode.domain.snapshot import Action
from goalmode.domain.steps import Nudge, RunTools
from goalmode.domain.work import WorkState
from goalmode.loop.guards.repetition import STOP_AT, Repetition, no_progress
from goalmode.loop.longterm import Remembering
from goalmode.loop.turn import Call, Run
from goalmode.state.checks import CheckResult
from goalmode.state.movements import Moved
from goalmode.state.tables import Purpose
from goalmode.tools.dispatch import dispatch
from goalmode.tools.plan import plan
from goalmode.tools.registry import ToolContext
from goalmode.tools.workers import in_worker

MAX_FAILED_CONTROLS = 5
"""Rejected or failed control calls and calls to unknown tools, together, that end a wakeup."""

_SURPLUS = (
    "refused: of complete, transition and wait a reply may call one, and only once; this was a further one"
)
_REPEATED = f"not executed: this call was made {STOP_AT} times in a row with the same result"
_ENDED = "not executed: an earlier call of this reply ends the wakeup"


@dataclass
class Done:
    """What a turn came to.

    Attributes:
        records: of its calls, in the order in which they got their results.
        prompts: that follow the results.
        moved: the movement that the goal goes on in. With `afresh` its context is rendered anew.
        new_phase: another movement begins, or a higher bar.
        exit: the ending it leads to, None to go on.
    """

    work: WorkState
    records: list[CallRecord] = field(default_factory=list)
    unstored: list[CallRecord] = field(default_factory=list)
    prompts: list[Message] = field(default_factory=list)
    checks: tuple[CheckResult, ...] = ()
    moved: Moved | None = None
    afresh: bool = False
    new_phase: bool = False
    exit: Exit | None = None
    rejected: int = 0

    @property
    def messages(self) -> list[Message]:
        """What follows the reply: one result for each call, in the calls' order, then prompts."""
        records = sorted(self.records, key=lambda record: record.position)
        return [*(ToolResult(r.call_id, r.tool, r.shown) for r in records), *self.prompts]

    def answer(self, record: CallRecord) -> None:
        """One more call has its result."""
        self.records.append(record)
        self.unstored.append(record)


async def run_tools(run: Run, call: Call, step: RunTools, reply: Sequence[ToolCall]) -> Done:
    """Run the calls of a reply without a claim or a transition."""
    done = await run_calls(run, call, step.calls, reply)
    _refuse_surplus(done, step.surplus, reply)
    return done


async def run_calls(run: Run, call: Call, calls: Sequence[ToolCall], reply: Sequence[ToolCall]) -> Done:
    """Run the calls in the order in which they are given; all of them at once if all only read.

    Args:
        reply: all calls of the reply, in its order.
    """
    done = Done(run.wake.work)
    if not calls:
        return done
    places = _places(reply)
    recent, repeated = run.history.recent, Repetition()

    async def on_record(record: CallRecord) -> None:
        nonlocal recent, repeated
        record = replace(record, position=places[record.call_id])
        done.records.append(record)
        recent, seen = recent.after(record)
        repeated = seen if record.substantive else repeated
        # A lone call's result goes with the outcome; beside others each is committed by itself.
        if len(places) == 1 and record.outcome is not CallOutcome.INTERRUPTED:
            done.unstored.append(record)
        else:
            await in_worker(run.wake.record, record)
            tell(run, record)

    for one in calls:
        run.emit("tool_started", turn=run.history.turn, call_id=one.id, tool=one.name)
    dispatched = await dispatch(
        calls,
        registry=run.offered(call),
        context=_context(run),
        allowed=call.allowed,
        on_record=on_record,
        key=lambda call_id: f"{run.wake.goal.uid}:{run.wake.seq}:{run.seq}:{call_id}",
        stop=lambda: run.ports.stop() is not None or run.wake.lost,
        skip=lambda call: _REPEATED if repeated.asks_again(call) else "",
        wakeup=run.wake.seq,
        cache=run.cache,
        turn=run.seq,
    )
    done.work, done.exit = dispatched.work, dispatched.exit
    return done


@dataclass(frozen=True, slots=True)
class Asked:
    """A control call with its place in the reply, and its arguments, which match the schema."""

    call: ToolCall
    position: int
    arguments: dict[str, Any]

    def record(self, outcome: CallOutcome, shown: str) -> CallRecord:
        return _record(self.call, self.position, outcome, shown)


async def run_control(
    run: Run,
    call: Call,
    control: ToolCall,
    *,
    siblings: Sequence[ToolCall],
    surplus: Sequence[ToolCall],
    reply: Sequence[ToolCall],
    act: Callable[[Done, Asked], Awaitable[None]],
) -> Done:
    """Run the ordinary calls, let `act` answer the control call, refuse further ones: every call gets its result."""
    done = await run_calls(run, call, siblings, reply)
    [planned] = plan([control], run.registry, call.allowed)
    asked = Asked(control, _places(reply)[control.id], planned.arguments or {})
    if done.exit is not None and done.exit.reason is ExitReason.WAITING_HUMAN:
        done.answer(asked.record(CallOutcome.SKIPPED, _ENDED))
    elif planned.outcome is not None:
        effect = planned.tool.effect if planned.tool else None
        record = _record(control, asked.position, planned.outcome, planned.problem, effect=effect)
        done.answer(record)
    else:
        await act(done, asked)
    _refuse_surplus(done, surplus, reply)
    return done


def _refuse_surplus(done: Done, surplus: Sequence[ToolCall], reply: Sequence[ToolCall]) -> None:
    places = _places(reply)
    for one in surplus:
        done.answer(_record(one, places[one.id], CallOutcome.DENIED, _SURPLUS))


def _places(reply: Sequence[ToolCall]) -> dict[str, int]:
    """Where in its reply each call stood: under that number its result is stored."""
    return {call.id: position for position, call in enumerate(reply)}


def tell(run: Run, record: CallRecord) -> None:
    """Report a call whose result has been committed."""
    if record.cache is not None:
        data = {"turn": run.history.turn, "call_id": record.call_id, "tool": record.tool}
        run.emit(record.cache.kind, **data, same_as=record.cache.turn)
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
                **still_open(run),
            }
        case "nudge":
            run.history = replace(history, nudged_at=history.substantive)
            values = still_open(run)
        case "truncated":
            run.history = replace(history, truncations=history.truncations + 1)
            values = {"calls": len(nudge.refused)}
        case "malformed":
            run.history = replace(history, malformed=history.malformed + 1)
    done.prompts.append(run.prompt(nudge.prompt, **values))
    return done


def still_open(run: Run) -> dict[str, Any]:
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
    return done.exit or call.last or _failing(run, done) or _stuck(run)


def warn(run: Run, done: Done) -> None:
    """Tell the model of a repetition that it can still break."""
    seen = run.history.repetition
    if seen is not None and not seen.ends and done.exit is None:
        calls = tuple(map(str, seen.calls))
        done.prompts.append(run.prompt("repeated", calls=calls, count=seen.count, ends_at=STOP_AT))


def _stuck(run: Run) -> Exit | None:
    """The ending of a movement that repeats itself."""
    seen = run.history.repetition
    return no_progress(seen) if seen is not None and seen.ends else None


def _failing(run: Run, done: Done) -> Exit | None:
    """The ending of a wakeup whose control calls keep failing."""
    failed = run.history.failed_controls
    if failed < MAX_FAILED_CONTROLS:
        return None
    last = next((r.shown for r in reversed(done.records) if r.outcome is not CallOutcome.SUCCESS), "")
    detail = f"{failed} control calls were rejected or failed"
    detail = f"{detail}; the last one: {last[:300]}" if last else detail
    return Exit(ExitReason.NO_PROGRESS, detail, {"failed_controls": failed})


def _context(run: Run) -> ToolContext:
    return ToolContext(
        workspace=run.ports.workspace,
        gate=run.wake.gate,
        work=run.wake.work,
        environment=run.ports.environment,
        substantive=run.history.substantive,
        redact=run.ports.redact,
        now=run.ports.clock.now(),
        memory=Remembering(run) if run.wake.goal.settings.user_tools else None,
        confinement=run.ports.confinement,
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
    """The status of a claim or the target of a transition, for lists."""
    try:
        arguments: Any = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(arguments, dict):
        return ""
    return str(arguments.get("status", arguments.get("to", "")))[:40]


def _effect(run: Run, call: ToolCall) -> Effect | None:
    tool = run.registry.lookup(call.name)
    return tool.effect if tool else None


def action(run: Run, record: CallRecord) -> Action:
    """The call as later claims may cite it."""
    return Action(
        run.wake.seq, run.seq, record.call_id, record.tool, record.brief, record.outcome, record.exit_code
    )
