"""The only ways into and out of a wakeup, for our own loop and for any other driver. Synchronous."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from goalmode.domain import budget
from goalmode.domain.budget import LimitHit
from goalmode.domain.calls import CallRecord
from goalmode.domain.exits import Exit, ExitReason, SkipReason
from goalmode.domain.goal import Control, Goal, Obstacle
from goalmode.domain.messages import NO_USAGE, Message, Reply, Usage
from goalmode.domain.notes import News
from goalmode.domain.profile import ModelProfile
from goalmode.domain.sandbox import SandboxMode
from goalmode.domain.snapshot import Action, Observed, Snapshot
from goalmode.domain.steps import Close, Nudge
from goalmode.errors import ContextDoesNotFit, StoreError, UnknownGoal
from goalmode.loop.guards.early_no_tool import no_tool
from goalmode.loop.history import History
from goalmode.loop.stop import exhausted
from goalmode.orchestrator.after import Standing, after
from goalmode.orchestrator.costs import refuse_unpriced
from goalmode.orchestrator.heartbeat import Heartbeat, heartbeat_of
from goalmode.orchestrator.longterm import LongTerm
from goalmode.orchestrator.progress import REMEMBERED, Progress, keys_of
from goalmode.orchestrator.recover import recover
from goalmode.orchestrator.skip import Skip, other_host, refusal, superseded
from goalmode.orchestrator.sources import notice
from goalmode.state import (
    answers,
    closing,
    events,
    goals,
    journal,
    locks,
    movements,
    notes,
    outside,
    snapshot,
    wake_sources,
    wakeups,
)
from goalmode.state.checks import CheckResult
from goalmode.state.closing import ClaimSuperseded
from goalmode.state.goal_reader import GoalReader
from goalmode.state.journal import OpenTurn, PlannedCall, TurnOutcome
from goalmode.state.movements import Moved
from goalmode.state.store import Store
from goalmode.state.tables import Purpose
from goalmode.state.wakeups import Claimed, StoredContext
from goalmode.tools.registry import EffectGate

NOTHING_DONE = TurnOutcome()


class RenderedContext(Protocol):
    """A rendered context, as `goalmode.context.rebuild` returns it."""

    @property
    def messages(self) -> tuple[Message, ...]: ...
    @property
    def tokens(self) -> int: ...
    def stored(self) -> StoredContext: ...


class Renderer(Protocol):
    """Looks at the deliverables and renders a snapshot. Pure but for reading the workspace."""

    @property
    def profile(self) -> ModelProfile: ...
    def observe(self, goal: Goal) -> tuple[Observed, ...]: ...
    def render(self, snapshot: Snapshot) -> RenderedContext: ...
    def rerender(
        self, snapshot: Snapshot, conversation: Sequence[Message], *, limit: int, turns_left: int
    ) -> RenderedContext: ...


class Wake:
    """A claimed wakeup. Every write carries its fence; once another owner has the goal, every write raises Fenced."""

    def __init__(
        self,
        store: Store,
        heartbeat: Heartbeat,
        renderer: Renderer,
        claimed: Claimed,
        seen: Snapshot,
        context: RenderedContext | None,
        over: Exit | None,
    ) -> None:
        self.renderer = renderer
        self.clock = store.clock
        self.goal = seen.goal
        self.seq, self.fence = claimed.seq, claimed.fence
        self.messages: tuple[Message, ...] = () if context is None else context.messages
        self.context_tokens = 0 if context is None else context.tokens
        self.work = seen.work
        self.actions: list[Action] = list(seen.actions)
        self.questions = seen.questions
        self.over = over
        self.news: tuple[News, ...] = ()
        self.lost = False
        self.progress = Progress(self._earlier_results, store.clean)
        self.progress.begin(seen)
        self.gate: EffectGate = locks.LockGate(
            store.lock_file(claimed.goal, claimed.fence),
            claimed.fence,
            lambda: wakeups.current_fence(store, claimed.goal),
        )
        self._store, self._heartbeat, self._claimed = store, heartbeat, claimed
        self._reader = GoalReader(claimed.goal)
        self._heard = seen.goal.inbox_head
        self.longterm = LongTerm(store, claimed, seen, lambda: self._turn_seq)
        self._turn: OpenTurn | None = None
        self._turn_seq = 0
        self._turns = 0
        self._anew = 0
        self._mark = store.clock.monotonic()
        heartbeat.hold(claimed, self._on_lost)

    def boundary(self) -> Control:
        """Read what the user did meanwhile; `goal` is as of now afterwards, running time included, and so is `news`."""
        with self._store.reading() as connection:
            goal = self._reader.read(connection)
            spoke = goal.inbox_head > self._heard
            self.news = notes.news(connection, goal.id, self._heard) if spoke else ()
        self.goal = self._as_of_now(goal)
        return self.goal.control

    def hear(self) -> None:
        """`news` stands in the conversation now. It is stored as heard with the reply that follows it."""
        self._heard, self.news = self.goal.inbox_head, ()

    def rerender(
        self, conversation: Sequence[Message], *, limit: int, turns_left: int, reserve_output: int
    ) -> None:
        """Begin the conversation anew; see `goalmode.loop.ports.Wakeup`."""
        seen = snapshot.snapshot(
            self._store, self._claimed.goal, now=self._store.clock.now(), running=self.seq
        )
        seen = replace(seen, observed=self.renderer.observe(seen.goal))
        context = self.renderer.rerender(seen, conversation, limit=limit, turns_left=turns_left)
        wakeups.begin_anew(
            self._store,
            self._claimed,
            self._anew + 1,
            context.stored(),
            reserve=Usage(context.tokens, output=reserve_output),
            inbox_seen=seen.goal.inbox_head,
        )
        self._anew += 1
        self.goal = self._as_of_now(seen.goal)
        self.hear()
        self.messages, self.context_tokens = context.messages, context.tokens

    def render_again(self, servers: Sequence[Mapping[str, Any]]) -> None:
        """Render the context again before anything is said; see `goalmode.loop.ports.Wakeup`."""
        seen = snapshot.snapshot(
            self._store, self._claimed.goal, now=self._store.clock.now(), running=self.seq
        )
        seen = replace(seen, observed=self.renderer.observe(seen.goal))
        # As at the claim, which has counted this wakeup since.
        spent = replace(seen.goal.spent, wakeups=seen.goal.spent.wakeups - 1)
        context = self.renderer.render(replace(seen, goal=replace(seen.goal, spent=spent)))
        outside.render_again(
            self._store,
            self._claimed,
            context.stored(),
            reserve=_first_call(seen.goal, self.renderer.profile, context.tokens),
            inbox_seen=seen.goal.inbox_head,
            servers=servers,
            now=self._store.clock.now(),
        )
        self.goal = self._as_of_now(seen.goal)
        self.hear()
        self.messages, self.context_tokens = context.messages, context.tokens

    def control(self) -> Control:
        return wakeups.control(self._store, self._claimed.goal)

    def reserve(self, usage: Usage, *, wrap_up: bool = False) -> bool:
        return journal.reserve(self._store, self._claimed, usage, wrap_up=wrap_up)

    def intent(
        self,
        reply: Reply,
        purpose: Purpose = Purpose.WORK,
        calls: Sequence[PlannedCall] = (),
        *,
        counts: bool = True,
        started_at: datetime | None = None,
    ) -> None:
        """Store a reply, what it cost and the calls about to run. Must be followed by `outcome`."""
        now = self._store.clock.now()
        self._turn_seq += 1
        self._turns += int(counts)
        self.progress.expect([planned.call.arguments for planned in calls])
        self._turn = journal.intent(
            self._store,
            self._claimed,
            seq=self._turn_seq,
            purpose=purpose,
            reply=reply,
            calls=calls,
            counts=counts,
            active_ms=self._active_ms(),
            started_at=started_at or now,
            now=now,
            inbox_seen=self._heard,
        )

    def failed_call(self, usage: Usage, purpose: Purpose, detail: str, *, started_at: datetime) -> None:
        """Charge a model call that failed after its response stream had begun. It is no turn."""
        self._turn_seq += 1
        journal.failed_call(
            self._store,
            self._claimed,
            seq=self._turn_seq,
            purpose=purpose,
            usage=usage,
            detail=detail,
            active_ms=self._active_ms(),
            started_at=started_at,
            now=self._store.clock.now(),
        )

    def record(self, record: CallRecord) -> None:
        """Store one finished call of a batch by itself."""
        assert self._turn is not None, "record follows intent"
        journal.result(self._store, self._claimed, self._turn, record)
        self.progress.note(record)

    def outcome(self, outcome: TurnOutcome = NOTHING_DONE) -> None:
        """Store what the turn came to: results, state patch, and what the next call may cost."""
        assert self._turn is not None, "outcome follows intent"
        marks = self.progress.of_turn(outcome)
        journal.outcome(
            self._store,
            self._claimed,
            self._turn,
            replace(outcome, progress=marks),
            active_ms=self._active_ms(),
            revision=self.goal.revision,
            now=self._store.clock.now(),
        )
        if outcome.work is not None:
            self.work = outcome.work
        if outcome.moved is not None:
            self.goal = replace(self.goal, movement=outcome.moved.to)

    def move(self, moved: Moved) -> None:
        """Store that the goal goes on in another movement, where no outcome does."""
        movements.move(self._store, self._claimed, moved, now=self._store.clock.now())
        self.goal = replace(self.goal, movement=moved.to)

    def no_tool(self, history: History) -> Nudge | Close:
        """The early-no-tool guard, for drivers with a loop of their own."""
        return no_tool(history, self.goal.settings)

    def met_obstacle(self, obstacle: str, requirement: str = "") -> Obstacle:
        return wakeups.met_obstacle(self._store, self._claimed, obstacle, requirement)

    def waits_for(self) -> tuple[str, ...]:
        with self._store.reading() as connection:
            return tuple(map(str, wake_sources.of_goal(connection, self.goal, only_open=True)))

    def close(self, exit: Exit, checks: Sequence[CheckResult] = ()) -> Exit:
        """End the wakeup; see `close_wakeup`."""
        if (
            exit.reason is not ExitReason.USER_ABORTED
        ):  # Whoever stops it does not wait for large files to be read.
            self.progress.look(self.renderer.observe(self.goal))
        standing = Standing(
            self.goal.streak,
            self.goal.failures,
            self._turns,
            progressed=self.progress.total > 0,
            jitter=random.random(),
        )
        now, mark = self._store.clock.now(), self._mark
        held = self.longterm.held
        try:
            stored, _ = closing.close(
                self._store,
                self._claimed,
                exit,
                after(exit, standing, now),
                active_ms=self._active_ms(),
                now=now,
                revision=self.goal.revision if held is None else held.revision,
                checks=checks,
                progress=self.progress.marks,
            )
        except ClaimSuperseded:
            self._mark = mark  # Nothing was charged, and the wakeup goes on.
            raise
        self.let_go()
        locks.discard(self._store.lock_file(self._claimed.goal, self._claimed.fence))
        return stored

    def let_go(self) -> None:
        """Give no more signs of life. For whoever cannot close the wakeup; the next claim finds it interrupted."""
        self._heartbeat.release(self._claimed)

    def _as_of_now(self, goal: Goal) -> Goal:
        """The goal as stored, the time since the last commit included."""
        running = self._store.clock.monotonic() - self._mark
        spent = replace(goal.spent, active_seconds=goal.spent.active_seconds + running)
        return replace(goal, spent=spent)

    def _active_ms(self) -> int:
        """Milliseconds of work since the last commit."""
        mark, self._mark = self._mark, self._store.clock.monotonic()
        return max(0, int((self._mark - mark) * 1000))

    def fenced(self) -> None:
        """Another owner has the goal: nothing of this wakeup goes on, and it leaves no trace but an event."""
        self.end_tools()
        with suppress(StoreError):
            events.fenced(self._store, self._claimed, self._store.clock.now())

    def end_tools(self) -> None:
        """End what the wakeup's tools have started, at once. Nothing is stored."""
        locks.end_tools(self._store.lock_file(self._claimed.goal, self._claimed.fence))

    def _earlier_results(self) -> set[str]:
        with suppress(UnknownGoal):  # Deleted meanwhile: the next commit is fenced.
            return keys_of(snapshot.recent_results(self._store, self._claimed.goal, REMEMBERED))
        return set()

    def _on_lost(self) -> None:
        self.lost = True
        self.end_tools()


def begin_wakeup(
    store: Store,
    goal_id: int,
    renderer: Renderer,
    *,
    heartbeat: Heartbeat | None = None,
    only_if_due: bool = True,
    delivery: int | None = None,
    sandbox: SandboxMode = SandboxMode.NONE,
    jitter: Callable[[], float] = random.random,
) -> Wake | Skip:
    """Claim a goal for one wakeup, its context rendered afresh. Starts the heartbeat.

    A wakeup whose owner is dead, or whose lease ran out, is first closed as INTERRUPTED.

    Args:
        sandbox: what the wakeup's commands will run in, for the record.

    Returns Skip, with nothing stored, if the goal cannot be woken just now.

    Raises:
        BadInput: its cost is limited, and the model has no price; nothing is stored.
    """
    skip = _recover_or_skip(store, goal_id, jitter)
    if skip is not None:
        return skip
    notice(store, goal_id)
    goal = goals.get(store, goal_id)
    skip = refusal(store, goal, only_if_due=only_if_due)
    if skip is not None:
        return skip
    refuse_unpriced(goal.limits, renderer.profile)
    answers.answer_by_default(store, goal, now=store.clock.now())
    seen = snapshot.snapshot(store, goal_id, now=store.clock.now())
    # From here on the fence tells whether somebody else wakes it. Who began before that, or ended, is seen now.
    if seen.last is not None and seen.last.ended_at is None:
        return superseded()
    skip = refusal(store, seen.goal, only_if_due=only_if_due)
    if skip is not None:
        return skip
    seen = replace(seen, observed=renderer.observe(seen.goal))
    context, over = None, _already_over(seen.goal, seen.now)
    if over is None:
        try:
            context = renderer.render(seen)
        except ContextDoesNotFit as error:
            over = Exit(ExitReason.CONTEXT_OVERFLOW, str(error), error.facts)
    claimed = wakeups.claim(
        store,
        seen.goal,
        seq=seen.wakeup,
        context=None if context is None else context.stored(),
        reserve=NO_USAGE if context is None else _first_call(seen.goal, renderer.profile, context.tokens),
        counted=over is None,
        now=store.clock.now(),
        price=renderer.profile.price,
        delivery=delivery,
        sandbox=sandbox,
    )
    if claimed is None:
        return superseded()
    return Wake(store, heartbeat or heartbeat_of(store), renderer, claimed, seen, context, over)


def close_wakeup(wake: Wake, exit: Exit, checks: Sequence[CheckResult] = ()) -> Exit:
    """End a wakeup: exit reason, goal status, next wakeup and streak in one commit.

    Returns the ending as stored; a user's stop that arrived meanwhile beats every ending but success.

    Raises:
        Fenced: another owner has the goal; nothing is stored.
        ClaimSuperseded: success was checked at another revision of the contract than the goal now has.
    """
    return wake.close(exit, checks)


def _recover_or_skip(store: Store, goal_id: int, jitter: Callable[[], float]) -> Skip | None:
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        running = wakeups.open_wakeup(connection, goal_id)
        turns = 0 if running is None else wakeups.turns_of(connection, running.id)
    if running is None:
        return None
    owner = running.lease.owner
    if not store.is_void(running.lease):
        return Skip(
            SkipReason.LEASED,
            f"{owner.name} runs wakeup {running.seq} of it (pid {owner.pid} on {owner.host_label})",
        )
    if not store.owner.reaches(goal.host_label):
        return other_host(goal)
    if not recover(store, goal, running, turns=turns, jitter=jitter()):
        return Skip(
            SkipReason.TOOL_STILL_RUNNING,
            f"a tool that {owner.name} started still runs and could not be ended",
        )
    return None


def _already_over(goal: Goal, now: datetime) -> Exit | None:
    """The ending of a wakeup that a spent limit leaves no call at all."""
    limit = goal.limits.wakeups
    hit = budget.reached(goal.limits, goal.spent, now)
    if hit is None and limit is not None and goal.spent.wakeups >= limit:
        hit = LimitHit("wakeups", limit, goal.spent.wakeups)
    if hit is None:
        return None
    wrapped = goal.wrapped_limits_revision >= goal.limits_revision
    return exhausted(hit, wrap_up="done" if wrapped else "skipped")


def _first_call(goal: Goal, profile: ModelProfile, tokens: int) -> Usage:
    """What the first call may use: the context, and an answer as long as the profile and the limits allow."""
    output = budget.longest_answer(
        goal.limits, goal.spent, profile.price, input_tokens=tokens, max_output=profile.max_output
    )
    return Usage(tokens, output=output)
