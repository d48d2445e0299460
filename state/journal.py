"""The journal of a wakeup: a turn is two commits, the intent before its tools run and the outcome after."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.calls import CallOutcome, CallRecord, Effect, arguments_digest
from goalmode.domain.cost import Price, cost_of
from goalmode.domain.messages import NO_USAGE, Fix, Message, Reply, ToolCall, ToolResult, Usage
from goalmode.domain.signals import StopReason
from goalmode.domain.work import WorkState
from goalmode.state import bodies, mapping, statements
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult, record_checks
from goalmode.state.movements import Moved, movement_of, store_move
from goalmode.state.said import messages_to_json, reply_to_json
from goalmode.state.store import Store
from goalmode.state.tables import Purpose, TurnState
from goalmode.state.wakeups import Claimed, charge, guard, latch_wrap_up, progressed, reserved

MAX_REPAIRS = 50
"""Stored of one turn."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call about to run, as the intent stores it."""

    call: ToolCall
    effect: Effect | None
    brief: str = ""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn whose reply is stored and whose outcome is not."""

    id: int
    seq: int


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What a turn came to, to be stored in one commit.

    Attributes:
        records: of the calls whose result has not been committed by itself.
        messages: what follows the reply in the conversation: results, then prompts.
        work: the work state after it, None if it is as it was.
        before: the work state that is stored, to tell what changed.
        checks: results of a claim that was judged.
        moved: the movement that the goal goes on in, None if it stays where it is.
        reserve: what the next call may cost.
        counters: named columns of the wakeup: recoveries, rejections.
        progress: the wakeup's marks of progress so far, by what they are of; None where nobody counts them.
        durable: False for an outcome without effects, which the next durable commit syncs.
        whole: ids of the calls whose message is their result as it is stored: it is not stored once more.
    """

    records: Sequence[CallRecord] = ()
    messages: Sequence[Message] = ()
    work: WorkState | None = None
    before: WorkState = WorkState()
    checks: Sequence[CheckResult] = ()
    moved: Moved | None = None
    reserve: Usage = Usage()
    counters: Mapping[str, int] = field(default_factory=dict)
    progress: Mapping[str, int] | None = None
    durable: bool = True
    whole: Collection[str] = ()


def intent(
    store: Store,
    claimed: Claimed,
    *,
    seq: int,
    purpose: Purpose,
    reply: Reply,
    calls: Sequence[PlannedCall],
    counts: bool,
    active_ms: int,
    started_at: datetime,
    now: datetime,
    inbox_seen: int | None = None,
) -> OpenTurn:
    """Store a reply, what it cost and the calls about to run, before any of them runs.

    Args:
        inbox_seen: what users said up to here was in the request; None: as far as was stored before.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
    """
    with store.writing() as connection:
        heard: dict[str, Any] = {} if inbox_seen is None else {"inbox_seen": inbox_seen}
        guard(store, connection, claimed, **reserved(claimed.price, NO_USAGE), **heard)
        turn = statements.insert(
            connection,
            t.turns,
            wakeup=claimed.wakeup,
            seq=seq,
            purpose=purpose,
            state=TurnState.OPEN,
            movement=movement_of(connection, claimed.goal),
            reply=bodies.put_json(connection, store.clean_json(reply_to_json(reply))),
            started_at=started_at,
            **_ending(store, reply),
            **_cost(claimed.price, reply.usage),
        )
        for position, planned in enumerate(calls):
            call_id = store.clean(planned.call.id)
            statements.insert(
                connection,
                t.tool_calls,
                wakeup=claimed.wakeup,
                turn=turn,
                position=position,
                call_id=call_id,
                tool=store.clean(planned.call.name)[:200],
                effect=planned.effect,
                args_sha=arguments_digest(planned.call.arguments),
                brief=store.clean(planned.brief),
                idem_key=f"{claimed.uid}:{claimed.seq}:{seq}:{call_id}",
                ms=0,
                result_bytes=0,
                redactions=0,
            )
        charge(connection, claimed, reply.usage, turns=int(counts), active_ms=active_ms, now=now)
        return OpenTurn(turn, seq)


def failed_call(
    store: Store,
    claimed: Claimed,
    *,
    seq: int,
    purpose: Purpose,
    usage: Usage,
    detail: str,
    active_ms: int,
    started_at: datetime,
    now: datetime,
) -> None:
    """Charge a call that failed after its response stream had begun. It is no turn."""
    with store.writing() as connection:
        guard(store, connection, claimed, **reserved(claimed.price, NO_USAGE))
        reply = Reply(StopReason.MISSING, stop_detail=detail, usage=usage)
        connection.execute(
            sa.insert(t.turns).values(
                wakeup=claimed.wakeup,
                seq=seq,
                purpose=purpose,
                state=TurnState.FAILED,
                movement=movement_of(connection, claimed.goal),
                started_at=started_at,
                ended_at=now,
                **_ending(store, reply),
                **_cost(claimed.price, reply.usage),
            )
        )
        charge(connection, claimed, usage, turns=0, active_ms=active_ms, now=now)


def result(store: Store, claimed: Claimed, turn: OpenTurn, record: CallRecord) -> None:
    """Store one finished call of a batch, so that a crash does not call it interrupted."""
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed)
        _store_record(store, connection, claimed, turn, record)


def outcome(
    store: Store,
    claimed: Claimed,
    turn: OpenTurn,
    done: TurnOutcome,
    *,
    active_ms: int,
    revision: int,
    now: datetime,
) -> None:
    """Store what a turn came to: results, state patch, and what the next call may cost.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
    """
    with store.writing(durable=done.durable) as connection:
        counted = {name: by for name, by in done.counters.items() if by}
        changes = {**reserved(claimed.price, done.reserve), **progressed(done.progress)}
        guard(store, connection, claimed, add=counted, **changes)
        for record in done.records:
            _store_record(store, connection, claimed, turn, record)
        others = [m for m in done.messages if not isinstance(m, ToolResult) or m.call_id not in done.whole]
        messages = store.clean_json(messages_to_json(others))
        results = bodies.put_json(connection, messages) if messages else None
        ended: dict[str, Any] = {"state": TurnState.DONE, "ended_at": now, "results": results}
        statements.update(connection, t.turns, {"id": turn.id}, **ended)
        if done.work is not None and done.work != done.before:
            _store_work(store, connection, claimed, done.before, done.work, now)
        record_checks(store, connection, claimed, revision, done.checks, now)
        if done.moved is not None:
            store_move(store, connection, claimed, done.moved, now)
        charge(connection, claimed, Usage(), turns=0, active_ms=active_ms, now=now)


def reserve(store: Store, claimed: Claimed, usage: Usage, *, wrap_up: bool) -> bool:
    """Reserve what a call may cost, where no outcome did; for the wrap-up also take its latch, before it is sent.

    Returns False, with nothing reserved, if this limit's wrap-up was made already.
    """
    with store.writing(durable=wrap_up) as connection:
        guard(store, connection, claimed)
        if wrap_up and not latch_wrap_up(connection, claimed.goal):
            return False
        guard(store, connection, claimed, **reserved(claimed.price, usage))
        return True


def event(
    store: Store, goal: int, kind: str, data: Mapping[str, Any], *, now: datetime, wakeup: int | None = None
) -> None:
    with store.writing(durable=False) as connection:
        _event(store, connection, goal, kind, data, now=now, wakeup=wakeup)


def _event(
    store: Store,
    connection: sa.Connection,
    goal: int,
    kind: str,
    data: Mapping[str, Any],
    *,
    now: datetime,
    wakeup: int | None,
) -> None:
    row = {"goal": goal, "wakeup": wakeup, "kind": kind, "data": store.clean_json(data), "at": now}
    statements.insert(connection, t.events, **row)


def _ending(store: Store, reply: Reply) -> dict[str, Any]:
    return {
        "stop_reason": reply.stop,
        "stop_raw": None if reply.stop_raw is None else store.clean(reply.stop_raw)[:200],
        "stop_native": None if reply.stop_native is None else store.clean(reply.stop_native)[:200],
        "stop_detail": store.clean(reply.stop_detail)[:2000],
        "provider": reply.provider,
        "model": store.clean(reply.model)[:200],
        "request_id": None if reply.request_id is None else store.clean(reply.request_id)[:200],
        "input": reply.usage.input,
        "cached": reply.usage.cached,
        "cache_write": reply.usage.cache_write,
        "output": reply.usage.output,
        "estimated": reply.usage.estimated,
        "repairs": store.clean_json(_repairs(reply.fixes)),
    }


def _cost(price: Price | None, usage: Usage) -> dict[str, Any]:
    """What a call cost, and the price that makes it so: a later one changes nothing."""
    frozen = None if price is None else mapping.price_to_json(price)
    return {"cost_micro": cost_of(price, usage), "price": frozen}


def _repairs(fixes: Sequence[Fix]) -> list[dict[str, Any]] | None:
    """What was repaired in the conversation before this reply, None where it was right."""
    rows: list[dict[str, Any]] = [
        {"kind": fix.kind.value, "message": fix.message, "why": fix.why} for fix in fixes[:MAX_REPAIRS]
    ]
    if len(fixes) > MAX_REPAIRS:
        rows[-1]["why"] += f" (and {len(fixes) - MAX_REPAIRS} repairs more)"
    return rows or None


def _store_record(
    store: Store, connection: sa.Connection, claimed: Claimed, turn: OpenTurn, record: CallRecord
) -> None:
    body = store.clean(record.body or record.shown)
    skipped = record.outcome is CallOutcome.SKIPPED
    statements.update(
        connection,
        t.tool_calls,
        {"turn": turn.id, "position": record.position, "outcome": None},
        outcome=record.outcome,
        effect=record.effect,
        brief=store.clean(record.brief)[:200],
        exit_code=record.exit_code,
        ms=record.milliseconds,
        result_sha=record.result_sha or sha(body),
        result_bytes=record.size,
        redactions=record.redactions,
        result=None if skipped else bodies.put(connection, body),
    )
    if record.cache is not None:
        kind, now = record.cache.kind, store.clock.now()
        data = {"turn": turn.seq, "call_id": record.call_id, "same_as": record.cache.turn}
        _event(store, connection, claimed.goal, kind, data, now=now, wakeup=claimed.seq)


def _store_work(
    store: Store,
    connection: sa.Connection,
    claimed: Claimed,
    before: WorkState,
    after: WorkState,
    now: datetime,
) -> None:
    """Write the items that changed, and a checkpoint if what the agent said of itself did.

    Files that were written are noted in the newest checkpoint: it is still the one that the agent saved.
    """
    known = {item.number: item for item in before.items}
    for item in after.items:
        old = known.get(item.number)
        if old is None:
            connection.execute(
                sa.insert(t.work_items).values(goal=claimed.goal, **mapping.item_to_row(item, store.clean))
            )
        elif old != item:
            connection.execute(
                sa.update(t.work_items)
                .where(t.work_items.c.goal == claimed.goal, t.work_items.c.number == item.number)
                .values(**mapping.item_to_row(item, store.clean))
            )
    gone = known.keys() - {item.number for item in after.items}
    if gone:
        connection.execute(
            sa.delete(t.work_items).where(
                t.work_items.c.goal == claimed.goal, t.work_items.c.number.in_(gone)
            )
        )
    saved = after.checkpoint != before.checkpoint or after.found != before.found
    if saved or after.written != before.written:
        body = store.clean_json(mapping.checkpoint_to_json(after))
        if saved or not _noted(connection, claimed.goal, body):
            wakeup = claimed.seq if saved else 0
            row = {"goal": claimed.goal, "wakeup": wakeup, "body": body, "at": now}
            connection.execute(sa.insert(t.checkpoints).values(row))


def _noted(connection: sa.Connection, goal: int, body: Mapping[str, Any]) -> bool:
    """Put `body` in the place of the newest checkpoint's; False if there is none."""
    newest = sa.select(sa.func.max(t.checkpoints.c.id)).where(t.checkpoints.c.goal == goal).scalar_subquery()
    noted = connection.execute(sa.update(t.checkpoints).where(t.checkpoints.c.id == newest).values(body=body))
    return noted.rowcount == 1


def sha(text: str) -> str:
    """By which equal arguments and equal results are recognised."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
