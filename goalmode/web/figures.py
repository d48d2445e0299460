"""Numbers and times as pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from goalmode.domain.cost import dollars
from goalmode.domain.goal import Goal
from goalmode.domain.text import one_line

NEAR = 0.8
"""The share of a limit from which it is shown as nearly reached."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What is used of one thing, beside its limit. Texts are ready to be shown.

    Attributes:
        name: of the field of `Limits`.
        limit: None where there is none.
        share: of the limit, from 0 to 1; a limit of 0 is reached from the start.
    """

    name: str
    used: str
    limit: str | None = None
    share: float = 0.0

    @property
    def state(self) -> str:
        if self.share >= 1:
            return "reached"
        return "near" if self.share >= NEAR else "fine"


def spends(goal: Goal, now: datetime, *, only_limited: bool = False) -> list[Spend]:
    """What a goal has used up; all of it, or what is limited alone."""
    limits, spent = goal.limits, goal.spent
    known = [
        _spend("turns", spent.turns, limits.turns, count),
        _spend("wakeups", spent.wakeups, limits.wakeups, count),
        _spend("tokens", spent.tokens, limits.tokens, count),
        _spend("active_seconds", spent.active_seconds, limits.active_seconds, span),
        _spend("cost_micro", spent.cost_micro, limits.cost_micro, dollars),
    ]
    if limits.deadline is not None:
        whole = (limits.deadline - goal.created_at).total_seconds()
        passed = (now - goal.created_at).total_seconds()
        share = 1.0 if whole <= 0 else min(1.0, max(0.0, passed / whole))
        known.append(Spend("deadline", "", local(limits.deadline), share))
    return [spend for spend in known if not only_limited or spend.limit is not None]


def _spend(name: str, used: float, limit: float | None, shown: Any) -> Spend:
    if limit is None:
        return Spend(name, shown(used))
    return Spend(name, shown(used), shown(limit), 1.0 if limit <= 0 else min(1.0, used / limit))


def heading(text: str, limit: int = 120) -> str:
    """The first line of a text that says something, cut to `limit` characters."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return one_line(first, limit)


def count(number: float) -> str:
    """A number with its thousands apart."""
    return f"{number:,.0f}"


def span(seconds: float) -> str:
    """A time span in its two largest units: `3 h 5 min`, `40 s`."""
    left = round(seconds)
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    parts: list[str] = []
    for size, unit in units:
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2])


def local(time: datetime | str | None) -> str:
    """A stored time in this machine's zone."""
    if time is None:
        return "–"
    at = datetime.fromisoformat(time) if isinstance(time, str) else time
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def until(time: datetime | str | None, now: datetime) -> str:
    """How long from now a time is; empty where it has come."""
    if time is None:
        return ""
    at = datetime.fromisoformat(time) if isinstance(time, str) else time
    seconds = (at - now).total_seconds()
    return span(seconds) if seconds >= 1 else ""


def series(wakeups: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """What the plots show of wakeups, oldest first: one list a curve."""
    return {
        "wakeup": [w["seq"] for w in wakeups],
        "turns": [w["turns"] for w in wakeups],
        "tokens": [w["tokens"] for w in wakeups],
        "dollars": [w["cost_micro"] / 1_000_000 for w in wakeups],
    }
