"""One model call of a wakeup: what it is for, whether it is affordable, the call itself, and its intent commit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import anyio

from goalmode.context.overflow.sawtooth import work_window
from goalmode.domain import budget
from goalmode.domain.budget import MIN_OUTPUT, Affordable, LimitHit, Verdict
from goalmode.domain.calls import Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import NO_USAGE, Assistant, Fix, Message, Reply, Request, Usage, User
from goalmode.domain.signals import StopReason, exit_for_error
from goalmode.domain.work import WorkState
from goalmode.errors import ModelError, Stopped, charged
from goalmode.loop.guards.settlement import will_settle
from goalmode.loop.history import History
from goalmode.loop.longterm import INVITATION_TOKENS
from goalmode.loop.ports import Event, Ports, Wakeup
from goalmode.loop.stop import asked_to_stop, exhausted
from goalmode.loop.window import OVERFLOWS, PROMPT_RESERVE, Window, make_room, may_shrink, renamed, shrink
from goalmode.model.repair import repair
from goalmode.model.rules import rules_for
from goalmode.model.strict_json import json_object
from goalmode.state.journal import PlannedCall
from goalmode.state.settlement import Pending
from goalmode.state.tables import Purpose
from goalmode.tools.cache import Cache
from goalmode.tools.plan import plan
from goalmode.tools.record import subject
from goalmode.tools.registry import Registry
from goalmode.tools.workers import in_worker, seen_through

SAVING = frozenset({Effect.STATE, Effect.CONTROL})
"""What a wrap-up or a handoff may do: save state, or claim."""

ALL = frozenset(Effect)


@dataclass(frozen=True, slots=True)
class Call:
    """A model call about to be made.

    Attributes:
        last: the ending that follows it, whatever it says, for a wrap-up or a handoff.
        limit: the goal's limit that makes it the wrap-up.
        registry: the only tools on offer, None for those of the movement.
    """

    purpose: Purpose
    max_output: int
    allowed: frozenset[Effect] = ALL
    last: Exit | None = None
    limit: LimitHit | None = None
    registry: Registry | None = None

    @property
    def counts(self) -> bool:
        """Whether it is a turn."""
        return self.purpose not in (Purpose.HANDOFF, Purpose.SETTLEMENT)


@dataclass
class Run:
    """The one mutable thing of a wakeup: its conversation and its counts.

    Attributes:
        seq: of the newest turn, as it is stored: a request that was refused is none.
        settled: messages whose turn is committed; behind them stand only the host's prompts for the next call.
        entered_with: the work state when the movement, or the present bar, began.
        pending: the ending that the wakeup closes with, whatever comes in between; None before it settles.
    """

    wake: Wakeup
    ports: Ports
    history: History = field(default_factory=History)
    recovering: bool = False
    handed_off: bool = False
    seq: int = 0
    messages: list[Message] = field(init=False)
    settled: int = field(init=False)
    tokens: int = field(init=False)
    revision: int = field(init=False)
    window: Window = field(init=False)
    entered_with: WorkState = field(init=False)
    usage: Usage = NO_USAGE
    cache: Cache = field(default_factory=Cache)
    pending: Pending | None = None

    def __post_init__(self) -> None:
        self.window = Window(work_window(self.wake.goal.settings, self.ports.profile))
        self.entered_with = self.wake.work
        self.begin()

    def begin(self) -> None:
        """The conversation is the wakeup's context, and nothing else."""
        self.messages = list(self.wake.messages)
        self.settled = len(self.messages)
        self.tokens = self.wake.context_tokens
        self.revision = self.wake.goal.revision

    @property
    def registry(self) -> Registry:
        """The tools on offer in the movement that the goal is in."""
        return self.ports.registry.offering(self.wake.goal.current.tools)

    def offered(self, call: Call) -> Registry:
        """The tools on offer in one call."""
        return self.registry if call.registry is None else call.registry

    def say(self, *messages: Message) -> None:
        """Append to the conversation. It only ever grows at its end, until it begins anew."""
        self.messages += messages
        self.tokens += sum(self.ports.count_message(message) for message in messages)

    def put_right(self) -> tuple[Fix, ...]:
        """Repair what the provider would refuse of the conversation, as a rule nothing; returns what that was."""
        right = repair(self.messages, rules_for(self.ports.profile), resuming=self.history.pauses > 0)
        if right.fixes:
            before, after = (sum(map(self.ports.count_message, m)) for m in (self.messages, right.messages))
            self.messages, self.tokens = list(right.messages), self.tokens - before + after
            self.settled = sum(place < self.settled for place in right.places)
        return right.fixes

    def prompt(self, name: str, **values: Any) -> User:
        return User(self.ports.prompt(name, **values))

    def emit(self, kind: str, **data: Any) -> None:
        self.ports.sink(Event(kind, {"goal": self.wake.goal.uid, "wakeup": self.wake.seq, **data}))

    @property
    def reserve(self) -> Usage:
        """What the next call may cost: its input, and an answer as long as the profile and the budget allow."""
        profile, goal = self.ports.profile, self.wake.goal
        output = budget.longest_answer(
            goal.limits,
            goal.spent.plus(self.usage, profile.price),
            profile.price,
            input_tokens=self.tokens,
            max_output=profile.max_output,
        )
        return Usage(input=self.tokens, output=output)


async def next_call(run: Run) -> Call:
    """What the next model call is for.

    Raises:
        Stopped: there is none: the user, the budget, the turn quota or the model's window says so, in that order.
    """
    control = await in_worker(run.wake.boundary)
    stop = run.ports.stop() or asked_to_stop(control) or run.wake.over
    if stop is not None:
        raise Stopped(stop)
    goal = run.wake.goal
    if run.history.turn < goal.settings.max_turns or _hands_off(run):
        await make_room(run)

    verdict = _verdict(run)
    if verdict.affordable is not Affordable.WORK:
        return await _wrap_up(run, verdict)
    if run.history.turn >= goal.settings.max_turns:
        return await _handoff(run, verdict)
    purpose = Purpose.RECOVERY if run.recovering else Purpose.WORK
    return Call(purpose, _fitting(run, verdict.max_output))


async def ask(run: Run, call: Call) -> Reply | None:
    """Make the call and commit what came of it, before any of its tools runs.

    Returns None if the provider calls the conversation too long; the next call is made with a new one.

    Raises:
        Stopped: the provider failed for good.
    """
    started = run.ports.clock.now()
    tools = run.offered(call).specs(call.allowed)
    turn = run.history.turn + int(call.counts)
    run.emit("asking", purpose=call.purpose.value, turn=turn, max_turns=run.wake.goal.settings.max_turns)
    fixes = run.put_right()
    try:
        reply = await run.ports.model.complete(Request(tuple(run.messages), tools, call.max_output))
    except ModelError as error:
        await _charge(run, call, error.usage, str(error), started)
        shrinks = error.kind in OVERFLOWS and may_shrink(run.history, run.wake.goal.settings)
        if not shrinks or call.last is not None:
            raise Stopped(_failure(error, call.last)) from None
        shrink(run)
        return None
    except anyio.get_cancelled_exc_class() as cancelled:
        await _charge(run, call, charged(cancelled), "stopped while the reply was coming in", started)
        raise
    reply = replace(reply, fixes=(*fixes, *reply.fixes))
    reply = replace(reply, calls=renamed(run, reply.calls))
    await _commit_intent(run, call, reply, started)
    run.history = replace(run.history, turn=turn)
    run.usage = reply.usage
    run.recovering = False
    run.emit(
        "reply",
        purpose=call.purpose.value,
        turn=turn,
        stop_reason=reply.stop.value,
        stop_raw=reply.stop_raw,
        tokens=reply.usage.tokens,
        input_tokens=reply.usage.input,
        cached_input_tokens=reply.usage.cached,
        cache_write_tokens=reply.usage.cache_write,
        output_tokens=reply.usage.output,
        model=reply.model,
        calls=[c.name for c in reply.calls],
        spent_tokens=run.wake.goal.spent.tokens,
    )
    return reply


async def _charge(run: Run, call: Call, usage: Usage | None, why: str, started: datetime) -> None:
    """Store what a call that came to nothing has cost, if its response stream had begun."""
    if usage is not None:
        run.seq += 1
        await seen_through(run.wake.failed_call, usage, call.purpose, why, started_at=started)


async def _commit_intent(run: Run, call: Call, reply: Reply, started: datetime) -> None:
    # With its subject: of a call that a crash cuts off, nothing else will tell what it was about.
    planned = [
        PlannedCall(one.call, one.tool.effect if one.tool else None, subject(one, run.ports.redact))
        for one in plan(reply.calls, run.offered(call), call.allowed)
    ]
    run.seq += 1
    # A reply that is here was paid for.
    await seen_through(run.wake.intent, reply, call.purpose, planned, counts=call.counts, started_at=started)
    if reply.text or reply.calls or reply.stop is StopReason.PAUSE:
        run.say(_carried(reply.message()))


def _carried(said: Assistant) -> Assistant:
    """A reply as a request can carry it: arguments that are no JSON object are never sent, so they fill no window."""
    return replace(
        said,
        calls=tuple(
            c if json_object(c.arguments) is not None else replace(c, arguments="{}") for c in said.calls
        ),
    )


def _verdict(run: Run) -> Verdict:
    goal, history = run.wake.goal, run.history
    last_wakeup = goal.limits.wakeups is not None and goal.spent.wakeups >= goal.limits.wakeups
    return budget.next_call(
        goal.limits,
        goal.spent,
        run.ports.clock.now(),
        created_at=goal.created_at,
        input_tokens=run.tokens,
        cached_tokens=run.usage.cached,
        afresh_tokens=run.window.next_tooth(run.tokens, run.wake.context_tokens),
        max_output=run.ports.profile.max_output,
        last_wakeup_turns_left=goal.settings.max_turns - history.turn if last_wakeup else None,
        price=run.ports.profile.price,
        keep_tokens=INVITATION_TOKENS + PROMPT_RESERVE if will_settle(goal) else 0,
    )


async def _wrap_up(run: Run, verdict: Verdict) -> Call:
    """The one last call that a spent budget leaves, if it leaves one. Its latch is committed before it is sent."""
    assert verdict.hit is not None
    goal = run.wake.goal
    wrapped = goal.wrapped_limits_revision >= goal.limits_revision
    if verdict.affordable is Affordable.NOTHING or wrapped:
        raise Stopped(exhausted(verdict.hit, wrap_up="done" if wrapped else "skipped"))
    run.say(run.prompt("wrap_up", kind=verdict.hit.kind, limit=verdict.hit.limit, used=verdict.hit.used))
    allowance = _fitting(run, verdict.max_output, instead=exhausted(verdict.hit, wrap_up="skipped"))
    reserve = Usage(input=run.tokens, output=allowance)
    if not await in_worker(lambda: run.wake.reserve(reserve, wrap_up=True)):
        raise Stopped(exhausted(verdict.hit, wrap_up="done"))
    last = exhausted(verdict.hit, wrap_up="done")
    return Call(Purpose.WRAP_UP, allowance, SAVING, last=last, limit=verdict.hit)


async def wrapped_up(run: Run, hit: LimitHit) -> Exit:
    """The ending after a wrap-up: the same limit, with what is used of it now that the wrap-up is paid."""
    await in_worker(run.wake.boundary)
    goal = run.wake.goal
    return exhausted(budget.used_now(hit, goal.spent, run.ports.clock.now()), wrap_up="done")


async def _handoff(run: Run, verdict: Verdict) -> Call:
    """At the end of the turn quota: one request outside it, if work would be lost."""
    quota = run.wake.goal.settings.max_turns
    facts = {"limit": "max_turns", "value": quota, "used": run.history.turn}
    last = Exit(
        ExitReason.MAX_TURNS_EXCEEDED, f"turn quota of the wakeup: {quota}, used {run.history.turn}", facts
    )
    if not _hands_off(run):
        raise Stopped(last)
    run.handed_off = True
    run.say(run.prompt("handoff", max_turns=quota))
    return Call(Purpose.HANDOFF, _fitting(run, verdict.max_output, instead=last), SAVING, last=last)


def _hands_off(run: Run) -> bool:
    """Whether a spent turn quota is followed by a request to save."""
    return run.history.unsaved and not run.handed_off


def _fitting(run: Run, allowance: int, instead: Exit | None = None) -> int:
    """The output allowance that still fits the model's window; where none does, the wakeup ends, with `instead`."""
    room = run.ports.profile.window - run.tokens
    if room < MIN_OUTPUT:
        facts = {"limit": "window", "value": run.ports.profile.window, "used": run.tokens}
        detail = f"the conversation has {run.tokens} tokens, the model's window is {run.ports.profile.window}"
        raise Stopped(instead or Exit(ExitReason.CONTEXT_OVERFLOW, detail, facts))
    return min(allowance, room)


def _failure(error: ModelError, last: Exit | None) -> Exit:
    """A failed call's ending. A failed wrap-up or handoff leaves the ending that it was to precede."""
    if last is not None:
        return replace(last, facts={**last.facts, "last_call": str(error)})
    facts = {"kind": error.kind.value, "http_status": error.status, "type": error.raw_type}
    return Exit(exit_for_error(error.kind), str(error), facts, wake_at=error.reset_at)
