"""Short ways to a goal, a claimed wakeup and a turn, straight in the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.cost import Price
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Goal, GoalSpec
from goalmode.domain.messages import Message, Reply, ToolCall, ToolResult, Usage
from goalmode.domain.signals import StopReason
from goalmode.domain.work import WorkState
from goalmode.state import closing, goals, journal, snapshot, wakeups
from goalmode.state.closing import Aftermath
from goalmode.state.journal import OpenTurn, PlannedCall, TurnOutcome
from goalmode.state.store import Store
from goalmode.state.tables import Purpose
from goalmode.state.wakeups import Claimed, StoredContext
from tests import stores

CONTEXT = StoredContext("the context", "ab" * 32, 100, "o200k_base", 0, [], [["user", "the context"]])
USAGE = Usage(input=1_000, output=60)
RESERVE = Usage(input=400, output=200)
GO_ON = Exit(ExitReason.MAX_TURNS_EXCEEDED, "turn quota 3, used 3")
DONE = Exit(ExitReason.CURRENT_TASK_DONE, "the claim stood")


def new_goal(store: Store, objective: str = "Write the report.", **fields: Any) -> Goal:
    return goals.create(store, GoalSpec(objective, "/workspace", **fields), now=store.clock.now())


def claim(store: Store, goal: Goal, *, reserve: Usage = RESERVE, price: Price | None = None) -> Claimed:
    """Claim the goal as it is now; it must be free."""
    claimed = try_claim(store, goal, reserve=reserve, price=price)
    assert claimed is not None
    return claimed


def try_claim(
    store: Store,
    goal: Goal,
    *,
    reserve: Usage = RESERVE,
    price: Price | None = None,
    delivery: int | None = None,
) -> Claimed | None:
    seen = snapshot.snapshot(store, goal.id, now=store.clock.now())
    return wakeups.claim(
        store,
        seen.goal,
        seq=seen.wakeup,
        context=CONTEXT,
        reserve=reserve,
        counted=True,
        now=store.clock.now(),
        price=price,
        delivery=delivery,
    )


def reply(*tools: str, text: str = "", usage: Usage = USAGE, prefix: str = "c") -> Reply:
    """A reply that calls these tools, with ids `c0`, `c1`, …"""
    calls = tuple(ToolCall(f"{prefix}{n}", tool, "{}") for n, tool in enumerate(tools))
    return Reply(StopReason.TOOL_USE if calls else StopReason.END_TURN, text, calls, usage)


def intent(store: Store, claimed: Claimed, said: Reply, *, seq: int = 1, active_ms: int = 0) -> OpenTurn:
    now = store.clock.now()
    return journal.intent(
        store,
        claimed,
        seq=seq,
        purpose=Purpose.WORK,
        reply=said,
        calls=[PlannedCall(call, Effect.WRITE) for call in said.calls],
        counts=True,
        active_ms=active_ms,
        started_at=now,
        now=now,
    )


def record(
    call_id: str, *, position: int = 0, tool: str = "shell", shown: str = "ok", **more: Any
) -> CallRecord:
    return CallRecord(position, call_id, tool, Effect.WRITE, CallOutcome.SUCCESS, shown, **more)


def outcome(
    store: Store,
    claimed: Claimed,
    turn: OpenTurn,
    *records: CallRecord,
    messages: Sequence[Message] | None = None,
    work: WorkState | None = None,
    reserve: Usage = RESERVE,
    revision: int = 1,
    **more: Any,
) -> None:
    results = [ToolResult(r.call_id, r.tool, r.shown) for r in records]
    done = TurnOutcome(records, results if messages is None else messages, work, reserve=reserve, **more)
    now = store.clock.now()
    journal.outcome(store, claimed, turn, done, active_ms=0, revision=revision, now=now)


def take_turn(store: Store, claimed: Claimed, seq: int, *, usage: Usage = USAGE) -> None:
    """One whole turn with one successful call."""
    said = reply("shell", usage=usage, prefix=f"t{seq}-")
    outcome(store, claimed, intent(store, claimed, said, seq=seq), record(f"t{seq}-0"))


def go_on(store: Store, *, seconds: float = 0) -> Aftermath:
    return Aftermath(GoalStatus.ACTIVE, "", store.clock.now() + timedelta(seconds=seconds), "next", 0, 0)


def close(
    store: Store,
    claimed: Claimed,
    exit: Exit = GO_ON,
    after: Aftermath | None = None,
    *,
    revision: int = 1,
    **more: Any,
) -> tuple[Exit, Aftermath]:
    now = store.clock.now()
    after = after or go_on(store)
    return closing.close(store, claimed, exit, after, active_ms=0, now=now, revision=revision, **more)


def finished(store: Store) -> Aftermath:
    return Aftermath(GoalStatus.DONE, "", None, "", 0, 0)


def rows(store: Store | Path, statement: str, *values: object) -> list[Any]:
    """What the store itself holds: one value a row, or a tuple."""
    return stores.rows(_url(store), statement, *values)


def dump(store: Store | Path) -> list[str]:
    """Everything that is committed, as text."""
    return stores.dump(_url(store))


def _url(store: Store | Path) -> str:
    return str(store) if isinstance(store, Path) else store.url


def plans(engine: sa.Engine) -> list[str]:
    """How SQLite goes about each query of this engine from now on; the list grows as they are made."""
    seen: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            cursor_ = conn.connection.dbapi_connection.cursor()
            steps = cursor_.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            seen.append("; ".join(str(row[-1]) for row in steps))

    sa.event.listen(engine, "before_cursor_execute", note)
    return seen
