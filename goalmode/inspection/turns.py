"""Every model call of a goal, with the tool calls it led to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goalmode.domain.calls import SUBSTANTIVE, CallOutcome
from goalmode.domain.goal import Goal
from goalmode.inspection.seen import iso, runs
from goalmode.state import locks, reading
from goalmode.state.reading import CallSeen, TurnSeen, WakeupSeen
from goalmode.state.store import Store

_MADE = (CallOutcome.SUCCESS, CallOutcome.FAILED)


def turns(store: Store, goal: Goal, *, wakeup: int | None = None, full: bool = False) -> list[dict[str, Any]]:
    """The calls, oldest first.

    Args:
        wakeup: only those of one wakeup.
        full: with what was said: texts, arguments and results as stored.
    """
    with store.reading() as connection:
        found = reading.turns(connection, goal.id, wakeup=wakeup)
        wakeups = {seen.seq: seen for seen in reading.wakeups(connection, goal.id)}
        texts = reading.texts(connection, found) if full else None
    times = _in_a_row(found)
    return [_turn(store, goal, turn, wakeups[turn.wakeup], texts, times) for turn in found]


def _in_a_row(found: Sequence[TurnSeen]) -> Mapping[tuple[int, int, str], int]:
    """How often each call that read or wrote was made in a row with the same result; by wakeup, turn and id."""
    times: dict[tuple[int, int, str], int] = {}
    before, count = ("", 0), 0
    for turn in found:
        for call in turn.calls:
            if call.effect in SUBSTANTIVE and call.outcome in _MADE:
                same = (call.known_by, turn.wakeup)
                before, count = same, count + 1 if same == before else 1
                times[turn.wakeup, turn.seq, call.call_id] = count
    return times


def _turn(
    store: Store,
    goal: Goal,
    turn: TurnSeen,
    wakeup: WakeupSeen,
    texts: Mapping[int, str] | None,
    times: Mapping[tuple[int, int, str], int],
) -> dict[str, Any]:
    said, arguments = reading.reply_of((texts or {}).get(turn.reply or 0, ""))
    shown: dict[str, Any] = {
        "wakeup": turn.wakeup,
        "seq": turn.seq,
        "purpose": turn.purpose,
        "state": turn.state,
        "stop_reason": turn.stop_reason,
        "stop_raw": turn.stop_raw,
        "stop_native": turn.stop_native,
        "stop_detail": turn.stop_detail,
        "model": turn.model,
        "movement": turn.movement,
        "usage": {
            "tokens": turn.input - turn.cached + turn.output,
            "input_tokens": turn.input,
            "cached_input_tokens": turn.cached,
            "cache_write_tokens": turn.cache_write,
            "output_tokens": turn.output,
            "estimated": turn.estimated,
        },
        "cost_micro": turn.cost_micro,
        "price": turn.price,
        "started_at": iso(turn.started_at),
        "ended_at": iso(turn.ended_at),
        "repairs": list(turn.repairs),
        "calls": [],
    }
    if texts is not None:
        shown["text"] = said
    for call in turn.calls:
        row = _call(call, _outcome(store, goal, call, wakeup))
        row["in_a_row"] = times.get((turn.wakeup, turn.seq, call.call_id), 1)
        if texts is not None:
            row["arguments"] = arguments.get(call.call_id, "")
            row["result"] = texts.get(call.result or 0, "")
        shown["calls"].append(row)
    return shown


def _call(call: CallSeen, outcome: str | None) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "tool": call.tool,
        "effect": call.effect,
        "brief": call.brief,
        "outcome": outcome,
        "exit_code": call.exit_code,
        "milliseconds": call.milliseconds,
        "result_bytes": call.result_bytes,
    }


def _outcome(store: Store, goal: Goal, call: CallSeen, wakeup: WakeupSeen) -> str | None:
    """The call's outcome; None while it runs. Where its process died, what recovery will store: nothing that had not
    begun was interrupted."""
    if call.outcome is not None or runs(store, wakeup):
        return call.outcome
    begun = call.call_id in locks.started(store.lock_file(goal.id, wakeup.fence))
    return (CallOutcome.INTERRUPTED if begun else CallOutcome.SKIPPED).value
