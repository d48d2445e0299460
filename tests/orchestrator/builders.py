"""The smallest renderer there is, and a goal with a workspace to try it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.exits import Exit, ExitReason, SkipReason
from goalmode.domain.goal import Goal, GoalSpec
from goalmode.domain.messages import Message, Reply, System, ToolCall, ToolResult, Usage, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import StopReason
from goalmode.domain.snapshot import Observed, Snapshot
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.heartbeat import Heartbeat
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake, begin_wakeup
from goalmode.state import goals
from goalmode.state.journal import PlannedCall, TurnOutcome
from goalmode.state.store import Store
from goalmode.state.wakeups import StoredContext
from tests.state.builders import rows

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1", max_output=500)
GO_ON = Exit(ExitReason.MAX_TURNS_EXCEEDED, "turn quota 3, used 3")
STOPPED_EARLY = Exit(ExitReason.EARLY_NO_TOOL, "it said: all done")
DONE = Exit(ExitReason.CURRENT_TASK_DONE, "the claim stood")


@dataclass(frozen=True)
class Rendered:
    text: str
    messages: tuple[Message, ...]
    tokens: int = 100

    def stored(self) -> StoredContext:
        later = [["user", self.text]]
        return StoredContext(self.text, "ab" * 32, self.tokens, "o200k_base", 0, [], later)


@dataclass
class FakeRenderer:
    """Renders the objective and the number of the wakeup. `meanwhile` runs while it renders."""

    profile: ModelProfile = PROFILE
    meanwhile: Callable[[], object] = lambda: None
    seen: list[Snapshot] = field(default_factory=list)

    def observe(self, goal: Goal) -> tuple[Observed, ...]:
        return tuple(Observed(d.path, exists=False) for d in goal.deliverables)

    def rerender(
        self, snapshot: Snapshot, conversation: Sequence[Message], *, limit: int, turns_left: int
    ) -> Rendered:
        self.seen.append(snapshot)
        text = f"wakeup {snapshot.wakeup} goes on: {snapshot.goal.objective}, {turns_left} turns left"
        return Rendered(text, (System("be good"), User(text), *conversation), tokens=limit)

    def render(self, snapshot: Snapshot) -> Rendered:
        self.seen.append(snapshot)
        self.meanwhile()
        text = f"wakeup {snapshot.wakeup}: {snapshot.goal.objective}"
        return Rendered(text, (System("be good"), User(text)))


def new_goal(store: Store, workspace: Path, objective: str = "Write the report.", **fields: Any) -> Goal:
    return create_goal(store, replace(GoalSpec(objective, str(workspace)), **fields))


def begin(store: Store, goal: Goal, renderer: FakeRenderer | None = None, **options: Any) -> Wake:
    """Begin a wakeup that must be possible. Its heartbeat beats when it is told to."""
    found = attempt(store, goal, renderer, **options)
    assert isinstance(found, Wake), found
    return found


def attempt(store: Store, goal: Goal, renderer: FakeRenderer | None = None, **options: Any) -> Wake | Skip:
    heartbeat = options.pop("heartbeat", None) or Heartbeat(store, interval=3_600)
    return begin_wakeup(
        store, goal.id, renderer or FakeRenderer(), heartbeat=heartbeat, jitter=lambda: 0.0, **options
    )


def now(store: Store, goal: Goal) -> Goal:
    """The goal as it is stored now."""
    return goals.get(store, goal.id)


def skipped(found: Wake | Skip) -> SkipReason:
    assert isinstance(found, Skip), found
    return found.reason


def intend(wake: Wake, *tools: str, prefix: str = "c") -> None:
    calls = tuple(ToolCall(f"{prefix}{n}", tool, "{}") for n, tool in enumerate(tools))
    wake.intent(
        Reply(StopReason.TOOL_USE, "", calls, Usage(1_000, output=60)),
        calls=[PlannedCall(call, Effect.WRITE) for call in calls],
    )


def finish(wake: Wake, *, result: str = "ok", prefix: str = "c") -> None:
    made = CallRecord(0, f"{prefix}0", "shell", Effect.WRITE, CallOutcome.SUCCESS, result)
    wake.outcome(
        TurnOutcome([made], [ToolResult(made.call_id, "shell", result)], reserve=Usage(300, output=30))
    )


def turn(wake: Wake, *, result: str = "ok", prefix: str = "c") -> None:
    intend(wake, "shell", prefix=prefix)
    finish(wake, result=result, prefix=prefix)


def abandon(store: Store) -> None:
    """The owner is gone: its process number belongs to somebody else now."""
    rows(store, "UPDATE wakeups SET pid_start = 'long ago' WHERE exit_reason IS NULL")
