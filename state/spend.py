"""What a goal's model calls used up, by what they were made for. Together they are the goal's totals."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from goalmode.state import tables as t


@dataclass(frozen=True, slots=True)
class Spend:
    """All calls of one purpose, failed and lost ones included. Tokens are input - cached input + output."""

    purpose: str
    calls: int
    tokens: int
    cost_micro: int


def by_purpose(connection: sa.Connection, goal: int) -> list[Spend]:
    """One for each purpose that calls were made for, in the order of `Purpose`."""
    turns = t.turns.c
    rows = connection.execute(
        sa.select(
            turns.purpose,
            sa.func.count(),
            sa.func.sum(turns.input - turns.cached + turns.output),
            sa.func.sum(turns.cost_micro),
        )
        .join(t.wakeups, t.wakeups.c.id == turns.wakeup)
        .where(t.wakeups.c.goal == goal)
        .group_by(turns.purpose)
    )
    found = {row[0]: Spend(row[0], *map(int, row[1:])) for row in rows}
    return [found[purpose] for purpose in t.Purpose if purpose in found]
