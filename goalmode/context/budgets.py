"""The last section of a context: the time and what is left of every limit. It changes with each wakeup."""

from __future__ import annotations

from datetime import UTC, datetime

from goalmode.context.escape import line
from goalmode.context.render import Words
from goalmode.domain.cost import dollars
from goalmode.domain.snapshot import Snapshot
from goalmode.domain.wake import has_come


def budget_lines(snapshot: Snapshot, words: Words, turns_left: int) -> list[str]:
    """One line for the time, what woke the goal, the wakeup's turns, each limit that is set, and what is spent."""
    limits, spent = snapshot.goal.limits, snapshot.goal.spent
    lines = [words("now", time=time_text(snapshot.now), wakeup=snapshot.wakeup)]
    if has_come(snapshot.goal.wake_reason):
        lines.append(words("woken", by=line(snapshot.goal.wake_reason)))
    lines.append(words("quota", turns_left=turns_left))
    counted = (
        ("turns", limits.turns, spent.turns),
        ("wakeups", limits.wakeups, spent.wakeups),
        ("tokens", limits.tokens, spent.tokens),
    )
    for kind, limit, used in counted:
        if limit is not None:
            lines.append(words("limit", kind=kind, limit=limit, used=used, left=max(0, limit - used)))
    if limits.cost_micro is not None:
        whole, done = dollars(limits.cost_micro), dollars(spent.cost_micro)
        left = dollars(max(0, limits.cost_micro - spent.cost_micro))
        lines.append(words("limit", kind="cost", limit=whole, used=done, left=left))
    if limits.active_seconds is not None:
        left = _span(limits.active_seconds - spent.active_seconds)
        done, whole = _span(spent.active_seconds), _span(limits.active_seconds)
        lines.append(words("limit", kind="active_seconds", limit=whole, used=done, left=left))
    if limits.deadline is not None:
        left = _span((limits.deadline - snapshot.now).total_seconds())
        lines.append(words("deadline", at=time_text(limits.deadline), left=left))
    lines.append(
        words(
            "spent",
            turns=spent.turns,
            wakeups=spent.wakeups,
            tokens=spent.tokens,
            active=_span(spent.active_seconds),
        )
    )
    return lines


def time_text(at: datetime) -> str:
    """`at` to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _span(seconds: float) -> str:
    """Seconds as `2d 03h 04m`, `3h 04m`, `4m` or `5s`; 0s for what is over."""
    days, rest = divmod(max(0, int(seconds)), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes = rest // 60
    if days:
        return f"{days}d {hours:02}h {minutes:02}m"
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m" if minutes else f"{rest}s"
