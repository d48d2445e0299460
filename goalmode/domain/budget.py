"""Limits, what is spent, and whether one more model call is affordable. Pure arithmetic.

`None` is unlimited and 0 is zero, everywhere. Tokens are input - cached input + output (`Usage.tokens`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

MIN_OUTPUT = 256
"""The smallest output allowance, in tokens, with which a call is still worth making."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A goal's limits. `deadline` is aware UTC wall time; `active_seconds` counts work only, never sleep or waiting."""

    turns: int | None = None
    wakeups: int | None = None
    tokens: int | None = None
    active_seconds: float | None = None
    deadline: datetime | None = None
    cost_micro: int | None = None
    """Micro-dollars."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Totals of a goal since its creation. A resume never resets them."""

    turns: int = 0
    wakeups: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    active_seconds: float = 0.0
    cost_micro: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens - self.cached_input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class LimitHit:
    """Which limit ended it. `limit` and `used` are numbers, or ISO times for a deadline."""

    kind: str
    limit: int | float | str
    used: int | float | str

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} limit {self.limit}, used {self.used}"


class Affordable(StrEnum):
    """What the budget allows for the next call."""

    WORK = "work"
    WRAP_UP = "wrap_up"
    """One last call, for saving state or claiming."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What may be called next, with how large an answer, and which limit is the reason if it is not work."""

    affordable: Affordable
    max_output: int
    hit: LimitHit | None = None


def reached(limits: Limits, spent: Spent, now: datetime) -> LimitHit | None:
    """The first limit that is used up, or None."""
    if limits.turns is not None and spent.turns >= limits.turns:
        return LimitHit("turns", limits.turns, spent.turns)
    if limits.tokens is not None and spent.tokens >= limits.tokens:
        return LimitHit("tokens", limits.tokens, spent.tokens)
    if limits.active_seconds is not None and spent.active_seconds >= limits.active_seconds:
        return LimitHit("active_seconds", limits.active_seconds, round(spent.active_seconds, 1))
    if limits.deadline is not None and now >= limits.deadline:
        return LimitHit("deadline", limits.deadline.isoformat(), now.isoformat())
    return None


def next_call(
    limits: Limits,
    spent: Spent,
    now: datetime,
    *,
    created_at: datetime,
    input_tokens: int,
    cached_tokens: int,
    max_output: int,
    afresh_tokens: int = 0,
    last_wakeup_turns_left: int | None = None,
) -> Verdict:
    """Whether the next call may be work, must be the wrap-up, or cannot be made at all.

    Args:
        input_tokens: the rendered input of the next call, counted or estimated.
        cached_tokens: the cached input that this wakeup's last call reported; a conversation only grows until it
            begins anew.
        afresh_tokens: the input of the call after it if the conversation begins anew before that one, else 0.
        max_output: the output allowance wanted; it shrinks to what is left, down to `MIN_OUTPUT`.
        created_at: start of the span that a deadline limits.
        last_wakeup_turns_left: turns left in this wakeup if the goal's wakeup limit allows no other, else None.
    """
    hit = reached(limits, spent, now)
    if hit is not None:
        return Verdict(Affordable.NOTHING, 0, hit)

    last: LimitHit | None = None
    if limits.turns is not None and limits.turns - spent.turns == 1:
        last = LimitHit("turns", limits.turns, spent.turns)
    elif last_wakeup_turns_left is not None and last_wakeup_turns_left <= 1 and limits.wakeups is not None:
        last = LimitHit("wakeups", limits.wakeups, spent.wakeups)

    allowance = max_output
    if limits.tokens is not None:
        charge = max(0, input_tokens - cached_tokens)
        left = limits.tokens - spent.tokens - charge
        if left < MIN_OUTPUT:
            return Verdict(Affordable.NOTHING, 0, LimitHit("tokens", limits.tokens, spent.tokens))
        # After work, a wrap-up must still be affordable: it reads what this call reads, plus this call's answer.
        work_allowance = (left - max(charge, afresh_tokens) - MIN_OUTPUT) // 2
        if work_allowance < MIN_OUTPUT:
            last = last or LimitHit("tokens", limits.tokens, spent.tokens)
        allowance = min(max_output, left if last else work_allowance)

    for kind, limit, used in _clocks(limits, spent, now, created_at):
        if limit - used <= min(limit * 0.1, 60.0) and last is None:
            hit = LimitHit(kind, limit, used)
            if limits.deadline is not None and kind == "deadline":
                hit = LimitHit(kind, limits.deadline.isoformat(), "")
            last = used_now(hit, spent, now)

    return Verdict(Affordable.WRAP_UP if last else Affordable.WORK, allowance, last)


def used_now(hit: LimitHit, spent: Spent, now: datetime) -> LimitHit:
    """The same limit, with what is used of it at `now`."""
    used: Mapping[str, int | float | str] = {
        "turns": spent.turns,
        "wakeups": spent.wakeups,
        "tokens": spent.tokens,
        "active_seconds": round(spent.active_seconds, 1),
        "deadline": now.isoformat(),
    }
    return replace(hit, used=used[hit.kind])


def _clocks(
    limits: Limits, spent: Spent, now: datetime, created_at: datetime
) -> list[tuple[str, float, float]]:
    """(kind, limit, used) in seconds for each time limit that is set."""
    clocks: list[tuple[str, float, float]] = []
    if limits.active_seconds is not None:
        clocks.append(("active_seconds", float(limits.active_seconds), spent.active_seconds))
    if limits.deadline is not None:
        span = (limits.deadline - created_at).total_seconds()
        clocks.append(("deadline", span, (now - created_at).total_seconds()))
    return clocks
