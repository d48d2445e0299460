"""Limits, what is spent, and whether one more model call is affordable. Pure arithmetic.

`None` is unlimited and 0 is zero, everywhere. Tokens are input - cached input + output (`Usage.tokens`); money is what
the model's price makes of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from goalmode.domain.cost import MICRO, Price, cost_of, dollars
from goalmode.domain.messages import Usage

MIN_OUTPUT = 256
"""The smallest output allowance, in tokens, with which a call is still worth making."""

UNBOUNDED = 10**15
"""More tokens than any answer has: what a free model allows."""


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

    def plus(self, usage: Usage, price: Price | None) -> Spent:
        """With one call more, which is no turn yet."""
        return replace(
            self,
            input_tokens=self.input_tokens + usage.input,
            cached_input_tokens=self.cached_input_tokens + usage.cached,
            cache_write_tokens=self.cache_write_tokens + usage.cache_write,
            output_tokens=self.output_tokens + usage.output,
            cost_micro=self.cost_micro + cost_of(price, usage),
        )


@dataclass(frozen=True, slots=True)
class LimitHit:
    """Which limit ended it. `limit` and `used` are numbers; ISO times for a deadline, dollars as text for a cost."""

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
    if limits.cost_micro is not None and spent.cost_micro >= limits.cost_micro:
        return LimitHit("cost", dollars(limits.cost_micro), dollars(spent.cost_micro))
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
    price: Price | None = None,
    keep_tokens: int = 0,
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
        price: of the model's tokens. Without one nothing is affordable under a limit of money.
        keep_tokens: of the prompt of one more call that follows the wrap-up: where that is possible, the wrap-up comes
            early enough to leave it affordable. 0: none follows.
    """
    hit = reached(limits, spent, now)
    if hit is not None:
        return Verdict(Affordable.NOTHING, 0, hit)
    if limits.cost_micro is not None and price is None:
        unknown = "an unknown amount: its model has no price"
        return Verdict(Affordable.NOTHING, 0, LimitHit("cost", dollars(limits.cost_micro), unknown))

    last: LimitHit | None = None
    if limits.turns is not None and limits.turns - spent.turns == 1:
        last = LimitHit("turns", limits.turns, spent.turns)
    elif last_wakeup_turns_left is not None and last_wakeup_turns_left <= 1 and limits.wakeups is not None:
        last = LimitHit("wakeups", limits.wakeups, spent.wakeups)

    rooms = [
        _room(purse, input_tokens, cached_tokens, afresh_tokens, keep_tokens)
        for purse in _purses(limits, spent, price)
    ]
    for room in rooms:
        if room.last < MIN_OUTPUT:
            return Verdict(Affordable.NOTHING, 0, room.hit)
        if room.work < MIN_OUTPUT:
            last = last or room.hit
    allowance = min([max_output, *(room.last if last else room.work for room in rooms)])

    for kind, limit, used in _clocks(limits, spent, now, created_at):
        margin = min(limit * 0.1, 60.0)
        if limit - used <= margin * (2 if keep_tokens else 1) and last is None:
            hit = LimitHit(kind, limit, used)
            if limits.deadline is not None and kind == "deadline":
                hit = LimitHit(kind, limits.deadline.isoformat(), "")
            last = used_now(hit, spent, now)

    return Verdict(Affordable.WRAP_UP if last else Affordable.WORK, allowance, last)


def longest_answer(
    limits: Limits, spent: Spent, price: Price | None, *, input_tokens: int, max_output: int
) -> int:
    """Tokens of answer to reserve for a call, at most `max_output`: as long as the limits allow, nothing cached."""
    last = [_room(purse, input_tokens, 0, 0).last for purse in _purses(limits, spent, price)]
    return max(0, min([max_output, *last]))


class _Purse(NamedTuple):
    """What a limit leaves for calls, in a unit of its own, and what a token takes from it.

    `rounding` is what is lost at most where the charges of two calls are each rounded up.
    """

    hit: LimitHit
    left: int
    price: Price
    rounding: int


class _Room(NamedTuple):
    """The longest answer that a limit allows, in tokens: `last` if no call follows, `work` if a wrap-up must."""

    hit: LimitHit
    last: int
    work: int


_TOKEN = Price(input=1, cached=0, output=1, cache_write=1)
"""A limit of tokens is one of money that charges one for each of them."""


def _purses(limits: Limits, spent: Spent, price: Price | None) -> Iterator[_Purse]:
    """One for each limit that is set and that model calls use up."""
    if limits.tokens is not None:
        hit = LimitHit("tokens", limits.tokens, spent.tokens)
        yield _Purse(hit, limits.tokens - spent.tokens, _TOKEN, 0)
    if limits.cost_micro is not None and price is not None:
        hit = LimitHit("cost", dollars(limits.cost_micro), dollars(spent.cost_micro))
        yield _Purse(hit, (limits.cost_micro - spent.cost_micro) * MICRO, price, MICRO)


def _room(
    purse: _Purse, input_tokens: int, cached_tokens: int, afresh_tokens: int, keep_tokens: int = 0
) -> _Room:
    price, cached = purse.price, min(cached_tokens, input_tokens)
    prompt = (input_tokens - cached) * price.new + cached * price.cached
    left = purse.left - prompt
    # After work, a wrap-up must still be affordable: it reads what this call reads, plus this call's answer.
    again = max(prompt, afresh_tokens * price.new) + MIN_OUTPUT * price.output + purse.rounding
    last, work = _longest(left, price.output), _longest(left - again, price.output + price.new)
    if keep_tokens:
        # The call behind the wrap-up reads once more what that read, its answer, and a prompt of its own.
        kept = again + keep_tokens * price.new
        room = _longest(left - kept, price.output + price.new)
        last = room if room >= MIN_OUTPUT else last
        work = _longest(left - again - kept - MIN_OUTPUT * price.new, price.output + 2 * price.new)
    return _Room(purse.hit, last, work)


def _longest(left: int, each: int) -> int:
    """How many tokens can be had for `left`; negative where something is lacking already."""
    if each == 0:
        return -1 if left < 0 else UNBOUNDED
    return left // each


def used_now(hit: LimitHit, spent: Spent, now: datetime) -> LimitHit:
    """The same limit, with what is used of it at `now`."""
    used: Mapping[str, int | float | str] = {
        "turns": spent.turns,
        "wakeups": spent.wakeups,
        "tokens": spent.tokens,
        "cost": dollars(spent.cost_micro),
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
