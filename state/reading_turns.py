"""What inspection reads of a goal's turns: model calls with their tool calls, and what was said in them.

Everything takes a connection of `Store.reading`, so that one inspection is one consistent view.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.state import bodies
from goalmode.state import tables as t
from goalmode.state.shape import an_object, held, objects


@dataclass(frozen=True, slots=True)
class CallSeen:
    """One tool call. `outcome` is None as long as none is stored. The bodies are ids.

    Attributes:
        known_by: the same for equal calls with equal results.
    """

    call_id: str
    tool: str
    effect: str | None
    outcome: str | None
    exit_code: int | None
    milliseconds: int
    brief: str
    result_bytes: int
    result: int | None
    known_by: str


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """One model call. Tokens are input (cached and cache_write being parts of it) and output.

    Its cost is in micro-dollars; its price, that of its model when it was made, in micro-dollars for a million tokens.
    """

    wakeup: int
    seq: int
    purpose: str
    state: str
    stop_reason: str
    stop_raw: str | None
    stop_native: str | None
    stop_detail: str
    provider: str
    model: str
    request_id: str | None
    movement: str
    started_at: datetime
    ended_at: datetime | None
    input: int
    cached: int
    cache_write: int
    output: int
    estimated: bool
    cost_micro: int
    price: Mapping[str, int] | None
    repairs: Sequence[Mapping[str, Any]]
    reply: int | None
    calls: tuple[CallSeen, ...]


def turns(
    connection: sa.Connection,
    goal: int,
    *,
    wakeup: int | None = None,
    after: tuple[int, int] | None = None,
    limit: int | None = None,
    offset: int = 0,
    newest: bool = False,
) -> list[TurnSeen]:
    """The goal's model calls with their tool calls, oldest first.

    Args:
        wakeup: only those of the wakeup with this number.
        after: only those behind this one: the wakeup's number and its own.
        limit, offset: only so many, the first so many left out; counted from the newest if `newest` is set.
    """
    place = (t.wakeups.c.seq, t.turns.c.seq)
    statement = (
        sa.select(t.turns, t.wakeups.c.seq.label("wakeup_seq"))
        .join(t.wakeups, t.wakeups.c.id == t.turns.c.wakeup)
        .where(t.wakeups.c.goal == goal)
        .order_by(*(column.desc() if newest else column for column in place))
    )
    if wakeup is not None:
        statement = statement.where(t.wakeups.c.seq == wakeup)
    if after is not None:
        statement = statement.where(
            t.wakeups.c.seq >= after[0], sa.or_(t.wakeups.c.seq > after[0], t.turns.c.seq > after[1])
        )
    if limit is not None:
        statement = statement.limit(limit)
    statement = statement.offset(offset) if offset else statement
    rows = held(connection, statement, lambda row: f"turn {row.wakeup_seq}.{row.seq}")
    calls = _calls(connection, [row.id for row in rows])
    return [_turn(row, calls.get(row.id, ())) for row in (reversed(rows) if newest else rows)]


def _calls(connection: sa.Connection, turns: Sequence[int]) -> Mapping[int, Sequence[CallSeen]]:
    """By the ids of turns: their tool calls, in the order in which they were asked for."""
    found: dict[int, list[CallSeen]] = {}
    for start in range(0, len(turns), 500):
        chunk = t.tool_calls.c.turn.in_(turns[start : start + 500])
        statement = (
            sa.select(t.tool_calls).where(chunk).order_by(t.tool_calls.c.turn, t.tool_calls.c.position)
        )
        rows = held(connection, statement, lambda row: f"call {row.call_id}")
        for row in rows:
            found.setdefault(row.turn, []).append(_call(row))
    return found


def texts(connection: sa.Connection, seen: Sequence[TurnSeen]) -> Mapping[int, str]:
    """The bodies of replies and results, by the ids that turns and calls name."""
    wanted = [turn.reply for turn in seen] + [call.result for turn in seen for call in turn.calls]
    return bodies.shown(connection, wanted)


def reply_of(text: str) -> tuple[str, Mapping[str, str]]:
    """What a stored reply said, and the raw arguments of its calls by their ids; none of one that was pruned.

    Raises:
        StoreUnreadable: it has another shape.
    """
    if text == bodies.PRUNED or not text:
        return text, {}
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    found = an_object("a stored reply", value)
    calls = objects("calls of a stored reply", found.get("calls", []), "id", "arguments")
    return str(found.get("text", "")), {str(call["id"]): str(call["arguments"]) for call in calls}


def _call(row: sa.Row[Any]) -> CallSeen:
    return CallSeen(
        row.call_id,
        row.tool,
        row.effect,
        row.outcome,
        row.exit_code,
        row.ms,
        row.brief,
        row.result_bytes,
        row.result,
        f"{row.tool}:{row.args_sha}:{row.outcome}:{row.result_sha}",
    )


def _turn(row: sa.Row[Any], calls: Sequence[CallSeen]) -> TurnSeen:
    what = f"turn {row.wakeup_seq}.{row.seq}"
    price = None if row.price is None else an_object(f"{what}: price", row.price)
    return TurnSeen(
        wakeup=row.wakeup_seq,
        seq=row.seq,
        purpose=row.purpose,
        state=row.state,
        stop_reason=row.stop_reason,
        stop_raw=row.stop_raw,
        stop_native=row.stop_native,
        stop_detail=row.stop_detail,
        provider=row.provider,
        model=row.model,
        request_id=row.request_id,
        movement=row.movement,
        started_at=row.started_at,
        ended_at=row.ended_at,
        input=row.input,
        cached=row.cached,
        cache_write=row.cache_write,
        output=row.output,
        estimated=row.estimated,
        cost_micro=row.cost_micro,
        price=None if price is None else {k: v for k, v in price.items() if k != "v"},
        repairs=objects(f"{what}: repairs", row.repairs or [], "kind", "message", "why"),
        reply=row.reply,
        calls=tuple(calls),
    )
