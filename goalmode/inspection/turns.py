"""Every model call of a goal, with the tool calls it led to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from goalmode.domain.calls import SUBSTANTIVE, CallOutcome
from goalmode.domain.goal import Goal
from goalmode.inspection.seen import iso, runs
from goalmode.state import locks, reading, reading_turns
from goalmode.state.reading import WakeupSeen
from goalmode.state.reading_turns import CallSeen, TurnSeen
from goalmode.state.store import Store

LOOK_BACK = 20
"""Turns before a page in which equal calls are looked for: a wakeup that repeats itself ends before."""

PAGE = 200
"""Turns that are read at once."""

_MADE = (CallOutcome.SUCCESS, CallOutcome.FAILED)


def turns(
    store: Store,
    goal: Goal,
    *,
    wakeup: int | None = None,
    full: bool = False,
    after: tuple[int, int] | None = None,
    limit: int | None = None,
    offset: int = 0,
    newest: bool = False,
) -> list[dict[str, Any]]:
    """A page of the calls, oldest first; it costs the same however many there are. Without bounds: all of them.

    Args:
        wakeup: only those of one wakeup.
        full: with what was said: texts, arguments and results as stored.
        after: only those behind this one (wakeup, seq).
        limit, offset: only so many, the first so many left out; counted from the newest if `newest` is set.
    """
    paged = after is not None or limit is not None or offset > 0
    with store.reading() as connection:
        read = partial(reading_turns.turns, connection, goal.id)
        found = read(wakeup=wakeup, after=after, limit=limit, offset=offset, newest=newest)
        before = read(**_before(found[0])) if paged and found else []
        numbers = {turn.wakeup for turn in found} if paged or wakeup is not None else None
        wakeups = {seen.seq: seen for seen in reading.wakeups(connection, goal.id, numbers=numbers)}
        texts = reading_turns.texts(connection, found) if full else None
    times = _in_a_row([*before, *found])
    return [store.clean_json(_turn(store, goal, turn, wakeups[turn.wakeup], texts, times)) for turn in found]


def each(
    store: Store,
    goal: Goal,
    *,
    wakeup: int | None = None,
    full: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> Iterator[dict[str, Any]]:
    """The calls one by one, oldest first, read a page at a time: no history is too long for it.

    Args: as of `turns`.
    """
    left, place, skipped = limit, None, offset
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        found = turns(store, goal, wakeup=wakeup, full=full, after=place, limit=size, offset=skipped)
        yield from found
        if len(found) < size:
            return
        place, skipped = (found[-1]["wakeup"], found[-1]["seq"]), 0
        left = None if left is None else left - size


def _before(first: TurnSeen) -> dict[str, Any]:
    """Which turns the first one of a page may repeat: those of its wakeup before it, as far as repetition may go."""
    behind = max(0, first.seq - 1 - LOOK_BACK)
    return {
        "wakeup": first.wakeup,
        "after": (first.wakeup, behind),
        "limit": first.seq - 1 - behind,
    }


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


def reply_of(turn: TurnSeen) -> dict[str, Any]:
    """How a model call ended, in our words and in the provider's."""
    return {
        "seq": turn.seq,
        "purpose": turn.purpose,
        "state": turn.state,
        "stop_reason": turn.stop_reason,
        "stop_raw": turn.stop_raw,
        "stop_native": turn.stop_native,
        "stop_detail": turn.stop_detail,
        "provider": turn.provider,
        "model": turn.model,
        "request_id": turn.request_id,
    }


def _turn(
    store: Store,
    goal: Goal,
    turn: TurnSeen,
    wakeup: WakeupSeen,
    texts: Mapping[int, str] | None,
    times: Mapping[tuple[int, int, str], int],
) -> dict[str, Any]:
    said, arguments = reading_turns.reply_of((texts or {}).get(turn.reply or 0, ""))
    shown: dict[str, Any] = {
        "wakeup": turn.wakeup,
        **reply_of(turn),
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
            row["arguments"] = arguments.get(call.call_id, said if said == reading.PRUNED else "")
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
    begun = not wakeup.lease.owner.is_near() or call.call_id in locks.started(
        store.lock_file(goal.id, wakeup.fence)
    )
    return (CallOutcome.INTERRUPTED if begun else CallOutcome.SKIPPED).value
